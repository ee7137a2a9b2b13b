#include "codegen/expression/parse.h"

#include <gtest/gtest.h>

#include "tests/expression/support.h"

namespace graft::codegen {
namespace {

Computation parse(std::string_view text, const Parameters& parameters = {}, DType dtype = DType::f32) {
  return parse_computation(text, parameters, dtype, "text");
}
std::string refusal_of(std::string_view text, const Parameters& parameters = {}) {
  return refusal([&] { return parse(text, parameters); });
}

TEST(Parse, reads_a_matmul) {
  const Computation c = parse("input A[3,5]; constant B[5,4]; output C[i,j] += A[i,l] * B[l,j] where i=3, j=4, l=5");
  ASSERT_EQ(c.tensors.size(), 3u);
  EXPECT_EQ(c.tensors[0], (Tensor{"A", DType::f32, {3, 5}, Role::input}));
  EXPECT_EQ(c.tensors[1], (Tensor{"B", DType::f32, {5, 4}, Role::constant}));
  EXPECT_EQ(c.tensors[2], (Tensor{"C", DType::f32, {3, 4}, Role::output}));
  ASSERT_EQ(c.stages.size(), 1u);
  EXPECT_EQ(c.stages[0].combine, Combine::sum);
  EXPECT_EQ(c.stages[0].axes, (std::vector<Axis>{{"i", 3}, {"j", 4}, {"l", 5}}));
  ASSERT_EQ(c.stages[0].value.loads.size(), 2u);
  EXPECT_EQ(c.stages[0].value.loads[1],
            (Access{.tensor = 1, .index = {Affine::variable(2), Affine::variable(1)}, .padded = false}));
}

TEST(Parse, reads_a_literal) {
  const std::string text =
      "input A[3]; literal B[2,3] = {1,0,-0.5,0.1,2,-3}; literal n[] : i32 = {4}; output C[i] += B[i,l] * A[l] * n[] "
      "where i=2, l=3";
  const Computation c = parse(text);
  ASSERT_EQ(c.tensors.size(), 4u);
  EXPECT_EQ(c.tensors[1], (Tensor{"B", DType::f32, {2, 3}, Role::temporary, {1, 0, -0.5, 0.1, 2, -3}}));
  EXPECT_EQ(c.tensors[2], (Tensor{"n", DType::i32, {}, Role::temporary, {4}}));
  EXPECT_EQ(c.stage_writing(1), -1);
  EXPECT_EQ(to_text(c), text);
  EXPECT_EQ(parse(to_text(c)), c);
}

TEST(Parse, refuses_literals_that_are_none) {
  const auto with = [](const std::string& literal) {
    return refusal_of(literal + "; input A[2]; output C[i] = A[i] where i=2");
  };
  EXPECT_TRUE(contains(with("literal B[2] = {1}"), "B: has 2 elements, got 1 numbers"));
  EXPECT_TRUE(contains(with("literal B[2] = {1,2,3}"), "B: has 2 elements, got 3 numbers"));
  EXPECT_TRUE(contains(with("literal B[2] : i32 = {1,0.5}"), "B: 0.5 is not a number of type i32"));
  EXPECT_TRUE(contains(with("literal B[2]"), "expected '='"));
  EXPECT_TRUE(contains(with("literal B[2] = {}"), "expected a number"));
  EXPECT_TRUE(contains(refusal_of("literal B[2] = {1,2}; B[i] = B[i]; input A[2]; output C[i] = A[i] where i=2"), "B"));
}

TEST(Parse, parameters_and_integer_arithmetic_stand_in_forms_and_extents) {
  const Computation c = parse(
      "input X[h + 2*pad]; output Y[y] += X[stride*y - (-1)*u] where y=(h + 2*pad - r)/stride + 1, u=exact(2*r, 2)",
      {{"h", 7}, {"pad", 1}, {"stride", 2}, {"r", 3}});
  EXPECT_EQ(c.tensors[0].shape, (std::vector<std::int64_t>{9}));
  EXPECT_EQ(c.tensors[1].shape, (std::vector<std::int64_t>{4}));
  EXPECT_EQ(c.stages[0].value.loads[0].index[0], Affine::variable(0, 2) + Affine::variable(1));
}

TEST(Parse, division_rounds_down) {
  EXPECT_TRUE(contains(refusal_of("input X[4]; output Y[y] = X[y] where y=(1 - 2)/2 + 1"), "extent 0"));
}

TEST(Parse, operators_bind_as_usual) {
  const auto value = [](const std::string& text) {
    return parse("input A[2]; input B[2]; output C[i] = " + text + " where i=2").stages[0].value;
  };
  EXPECT_EQ(value("A[i] + A[i]*B[i] - B[i]"), value("(A[i] + (A[i] * B[i])) - B[i]"));
  EXPECT_NE(value("A[i] - (A[i] - B[i])"), value("A[i] - A[i] - B[i]"));
  EXPECT_EQ(value("A[i]/B[i]*2"), value("(A[i]/B[i])*2"));
  EXPECT_EQ(value("-A[i]*B[i]"), value("neg(A[i])*B[i]"));
  EXPECT_EQ(value("-2*A[i]").nodes[0].number, -2);
  EXPECT_EQ(value("1.5e-3").root().number, 1.5e-3);
}

TEST(Parse, every_stage_may_have_its_own_extents) {
  const Computation c = parse("input A[4]; T[i] = A[i] where i=4; output B[i] = T[2*i] where i=2");
  EXPECT_EQ(c.stages[0].axes[0].extent, 4);
  EXPECT_EQ(c.stages[1].axes[0].extent, 2);
  EXPECT_EQ(parse(to_text(c)), c);
}

TEST(Parse, types_are_the_default_or_written) {
  const Computation c = parse("input A[4] : i32; output B[i] : f64 = A[i] where i=4");
  EXPECT_EQ(c.tensors[0].dtype, DType::i32);
  EXPECT_EQ(c.tensors[1].dtype, DType::f64);
  EXPECT_EQ(parse("input A[4]; output B[i] = A[i] where i=4", {}, DType::f64).tensors[0].dtype, DType::f64);
}

TEST(Parse, text_comes_back_as_an_equal_computation) {
  for (const char* text : {
           "input A[3,5]; input B[5,4]; output C[i,j] += A[i,l] * B[l,j] where i=3, j=4, l=5",
           "input A[4]; output M[i] max= A[i + r] - -2 where i=3, r=2",
           "input A[4] : i32; output B[i] : f64 = A[-i + 3] * 0.1 where i=4",
           "input A[4]; S[] += exp(A[i]); output B[i] = exp(A[i]) / S[] where i=4",
           "input A[2,3]; output B[i | q,p] += A[p,q] where i=5, p=2, q=3",
           "input A[2]; output B[i | p] += A[i] where i=2, p=3",
           "input A[2]; output B[i] = 1 - (A[i] - (2 - A[i])) / (A[i] / (A[i] * 3)) where i=2",
           "input A[2]; output B[i] = min(neg(A[i]), sqrt(max(A[i], 1e-30))) * (1 + 2) where i=2",
           "input A[2]; output B[i] = rsqrt(log(pow(A[i], 2))) + tanh(sigmoid(erf(abs(floor(A[i]))))) where i=2",
           "input A[2]; output B[i] = select(A[i] < 1, A[i], 2) * select(A[i] <= 1 + A[i], A[i] - 1, -2) where i=2",
           "input A[2]; output B[i] = select(A[i] > 1, select(A[i] >= 0, 1, 2), 3) where i=2",
           "input A[4] : i32; output B[i] += select(A[l] == 3, A[i], 1) + select(A[i] != A[l], 1, 0) where i=4, l=4",
           "input A[4]; P[p] = pad(A[p - 1]); input B[3]; output C[i] += P[i + u] * B[u] where p=6, i=4, u=3",
           "input A[4]; T[i] = A[i] where i=4; output B[i] = T[2*i] where i=2",
           "output A[i.0,i.1] = 3 where i.0=2, i.1=4; input unread[7]",
       }) {
    const Computation c = parse(text);
    EXPECT_EQ(parse(to_text(c)), c) << text << "\n" << to_text(c);
    EXPECT_EQ(to_text(parse(to_text(c))), to_text(c)) << text;
  }
}

TEST(Parse, random_values_come_back_equal) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    base::Stream stream(seed, "value");
    Computation c = parse("input A[9,9]; input B[9]; output C[i,j] += A[i,l] * B[j] where i=2, j=3, l=4");
    std::vector<Value> parts;
    const auto index = [&] {
      Affine form(stream.below(2));
      for (int v = 0; v < 3; ++v) form += Affine::variable(v, stream.below(2));
      return form;
    };
    // The reduced axis stands in the first part, so it needs no list on the left.
    parts.push_back(Value::load({.tensor = 1, .index = {Affine::variable(2)}}));
    for (int i = 0; i < 6; ++i) {
      if (stream.below(3) == 0) parts.push_back(Value::constant(double(stream.below(9) - 4) / 3));
      const bool two = stream.below(2) == 0;
      Access access{.tensor = two ? 0 : 1, .index = {index()}, .padded = stream.below(3) == 0};
      if (two) access.index.push_back(index());
      parts.push_back(Value::load(std::move(access)));
    }
    while (parts.size() > 1) {
      const Op op = Op(2 + stream.below(std::int64_t(Op::select) - 2));
      Value last = std::move(parts.back());
      parts.pop_back();
      if (parts.size() > 2 && stream.below(3) == 0) {
        const Op comparison = Op(std::int64_t(Op::less) + stream.below(6));
        Value third = std::move(parts.back()), second = std::move(parts[parts.size() - 2]);
        parts.resize(parts.size() - 2);
        parts.back() = Value::apply(Op::select, Value::apply(comparison, std::move(parts.back()), std::move(second)),
                                    std::move(third), std::move(last));
      } else if (operands_of(op) == 1) {
        parts.push_back(Value::apply(op, std::move(last)));
      } else {
        parts.back() = Value::apply(op, std::move(parts.back()), std::move(last));
      }
    }
    c.stages[0].value = std::move(parts[0]);
    EXPECT_EQ(parse(to_text(c)), c) << "seed " << seed << ": " << to_text(c);
  }
}

TEST(Parse, refusals_name_the_place_and_the_remedy) {
  struct Case {
    std::string text, expected;
  };
  const std::vector<Case> cases = {
      {"input A[4];\noutput B[i] = A[i]", "text:2:10: axis 'i' has no extent; add 'where i=...'"},
      {"input A[4]; output B[i] += A[i + j] where i=2", "text:1:34: axis 'j' has no extent; add 'where j=...'"},
      {"input A[4]; output B[i] = A[i + 1] where i=4", "text:1:20: B: index 0 of A runs through 1..4, outside of 0..3"},
      {"input A[4]; T[i] = A[i]; output T[i] = A[i] where i=4", "text:1:33: tensor 'T' is written twice"},
      {"input A[4]; constant A[4]; output T[i] = A[i] where i=4", "tensor 'A' is named twice"},
      {"input A[4]; output B[i] = sqr(A[i]) where i=4",
       "text:1:27: unknown function 'sqr'; did you mean 'sqrt'? known: pad, position, ceil, max, "},
      {"input A[4]; output B[i] = cosine(A[i]) where i=4",
       "unknown function 'cosine'; known: pad, position, ceil, max, min, neg, exp, sqrt, rsqrt, log, pow, tanh, "
       "sigmoid, "
       "erf, "
       "abs, floor, select, round, cast_f32"},
      {"input A[4]; output B[i] = tan(A[i]) where i=4", "text:1:27: unknown function 'tan'; write sin(...) / cos(...)"},
      {"input A[4] : i32; output B[i] : i32 = sin(A[i]) where i=4", "B: sin needs a floating-point type, not i32"},
      {"input A[4]; output B[i] = cel(A[i]) where i=4", "unknown function 'cel'; did you mean 'ceil'?"},
      {"input A[4] : i32; output B[i] : i32 = select(A[i] > 0, A[i], -inf) where i=4", "B: -inf does not fit i32"},
      {"input A[4]; output B[] : f16 *= A[i] where i=4", "B: products into f16; write a stage of type f32"},
      {"input A[4]; output B[i] *= A[i] where i=4", "'*=' has no axis to reduce over; write '='"},
      {"input A[4]; output B[i] = select(A[i] > 0 and A[i], 1, 2) where i=4", "expected a comparison"},
      {"input A[4]; output B[i] = select(A[i], 1, 2) where i=4",
       "text:1:38: expected a comparison (<, <=, >, >=, == or !=)"},
      {"input A[4]; output B[i] = select((A[i] < 1), 1, 2) where i=4", "expected ')'"},
      {"input A[4]; output B[i] = A[i] < 1 where i=4",
       "text:1:32: a comparison may only be the first operand of select(a < b, c, d)"},
      {"input A[4]; output B[i] = select(A[i] < 1, 1) where i=4", "expected ','"},
      {"input A[4] : i32; output B[i] : i32 = floor(A[i]) where i=4", "B: floor needs a floating-point type, not i32"},
      {"input A[4] : i32; output B[i] : i32 = pow(A[i], 2) where i=4", "B: pow needs a floating-point type, not i32"},
      {"input Left[4]; output B[i] = Lefd[i] where i=4", "unknown tensor 'Lefd'; did you mean 'Left'?"},
      {"output B[i] = B[i] where i=4", "'B' is read by the stage that writes it: a recurrence (scan)"},
      {"input A[4]; output B[i] = A[j] where i=4, j=4",
       "axis 'j' is not on the left; only '+=', '*=', 'max=' and 'min=' reduce"},
      {"input A[4]; output B[i] += A[i] where i=4", "'+=' has no axis to reduce over; write '='"},
      {"input A[4]; output B[i] = A[i] where i=0", "text:1:38: axis 'i': extent 0 must be at least 1"},
      {"input A[0]; output B[i] = A[i] where i=1", "text:1:7: A: extent 0 must be at least 1"},
      {"input A[4] : f8; output B[i] = A[i] where i=4", "text:1:14: unknown type 'f8'; known: f32, f64, i32"},
      {"input A[4]; T[i] = A[i] where i=4", "there is no output"},
      {"input A[4]; output B[i] = A[i] where i=4, i=4", "axis 'i' has two extents"},
      {"input A[4]; output B[i] = A[i] where i=4, q=4", "text:1:43: no stage has an axis 'q'"},
      {"input A[4]; output B[i] = A[i] where i=4/0", "division by zero"},
      {"input A[exact(7, 2)]; output B[i] = A[i] where i=4", "text:1:15: 7 (7) is not divisible by 2 (2)"},
      {"input A[i]; output B[i] = A[i] where i=4", "text:1:9: unknown parameter 'i'"},
      {"input A[4]; output B[i] = A[i] + k where i=4",
       "'k' is neither a number, nor an axis of this stage, nor a load 'k[...]'"},
      {"input A[4]; output B[i,i] = A[i] where i=4", "axis 'i' appears twice"},
      {"input A[4]; output B[i] A[i] where i=4", "expected '=', '+=', '*=', 'max=' or 'min='"},
      {"input A[4]; output B[i] = A[i] wher i=4", "text:1:32: expected ';' or 'where'"},
      {"input A[4]; output B[i] = (A[i] where i=4", "expected ')'"},
      {"input A[3000000000]; output B[i] = A[i] where i=4", "a number is too large"},
      {"", "there is no output"},
  };
  for (const Case& one : cases)
    EXPECT_TRUE(contains(refusal_of(one.text), one.expected)) << one.text << "\n  " << refusal_of(one.text);
  EXPECT_TRUE(contains(refusal_of("input A[4]; output B[k] = A[k] where k=4", {{"k", 4}}), "'k' is a parameter"));
  EXPECT_TRUE(contains(refusal_of("input A[hight]; output B[i] = A[i] where i=4", {{"height", 4}}),
                       "unknown parameter 'hight'; did you mean 'height'?"));
}

TEST(Parse, infinities_are_numbers) {
  const Computation c = parse("input A[4]; output B[i] = select(A[i] > inf, A[i] - -inf, -inf) where i=4");
  std::vector<double> numbers;
  for (const ValueNode& node : c.stages[0].value.nodes)
    if (node.op == Op::constant) numbers.push_back(node.number);
  EXPECT_EQ(numbers, (std::vector<double>{INFINITY, -INFINITY, -INFINITY}));
  EXPECT_EQ(parse(to_text(c)), c) << to_text(c);
}

TEST(Parse, products_of_bytes_are_kept_in_i32_as_sums_are) {
  const Computation c =
      parse_computation("input A[4]; output B[] *= A[i] where i=4", {}, DType::i8, "text", std::nullopt);
  EXPECT_EQ(c.tensors[1].dtype, DType::i32);
  EXPECT_EQ(c.stages[0].combine, Combine::product);
}

TEST(Parse, deep_nesting_is_refused_not_overflowed) {
  for (const std::string& open : {std::string("("), std::string("-"), std::string("neg(")}) {
    std::string text = "input A[4]; output B[i] = ";
    for (int i = 0; i < 100000; ++i) text += open;
    EXPECT_TRUE(contains(refusal_of(text), "nested deeper")) << open;
    text = "input A[4]; output B[i] = A[";
    for (int i = 0; i < 100000; ++i) text += open;
    EXPECT_NE(refusal_of(text), "no error") << open;
  }
}

TEST(Parse, damaged_text_is_refused_or_read_but_never_crashes) {
  const std::string text =
      "input A[3,5]; constant B[5,4] : f64; T[i,j | l] += pad(A[i,l - 1]) * B[l,j]; output C[i,j] : f64 = "
      "max(T[i,j],-0.5) where i=3, j=4, l=5";
  ASSERT_EQ(refusal_of(text), "no error");
  const std::string letters = "[](),;:=+-*/|. 0159ABijlTx";
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    base::Stream stream(seed, "damage");
    std::string damaged = text;
    for (std::int64_t n = 1 + stream.below(3); n > 0; --n)
      damaged[std::size_t(stream.below(std::int64_t(damaged.size())))] =
          letters[std::size_t(stream.below(std::int64_t(letters.size())))];
    const std::string message = refusal_of(damaged);
    EXPECT_FALSE(message.empty()) << "seed " << seed;
    if (message == "no error") {
      EXPECT_EQ(parse(to_text(parse(damaged))), parse(damaged)) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace graft::codegen
