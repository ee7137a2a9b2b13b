// Types of values, and what conversions, integers, positions and gathers give, by the reference with given operands.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "codegen/expression/parse.h"
#include "codegen/expression/reference.h"
#include "codegen/expression/workload.h"
#include "tests/expression/support.h"

namespace graft::codegen {
namespace {

using List = std::vector<double>;

Computation parse(const std::string& text) {
  return parse_computation(text, {}, DType::f32, "text");
}

std::string refusal_of(const std::string& text) {
  return refusal([&] { return parse(text); });
}

// The first output for these operands, in the order of their declaration.
List output_of(const std::string& text, std::vector<List> given) {
  const Computation what = parse(text);
  EXPECT_EQ(parse(to_text(what)), what) << text << "\n" << to_text(what);
  std::vector<Elements> operands(what.tensors.size());
  std::size_t next = 0;
  for (std::size_t t = 0; t < what.tensors.size(); ++t)
    if (what.tensors[t].role == Role::input || what.tensors[t].role == Role::constant) operands[t] = given[next++];
  const Reference result = reference(what, operands);
  for (std::size_t t = 0; t < what.tensors.size(); ++t)
    if (what.tensors[t].role == Role::output) return result.tensors[t].numbers();
  return {};
}

TEST(Types, an_integer_is_converted_once_where_it_is_stored) {
  // Not when it is loaded: 300 as i8 is 44.
  EXPECT_EQ(output_of("input A[3] : i32; output B[i] : i8 = max(min(A[i], 127), -128) where i=3", {{300, -300, 5}}),
            (List{127, -128, 5}));
  EXPECT_EQ(output_of("input A[3] : i32; output B[i] : i8 = A[i] where i=3", {{300, -129, 5}}), (List{44, 127, 5}));
  EXPECT_EQ(output_of("input A[1] : u8; input B[1] : i8; output C[i] : i8 = max(A[i], B[i]) where i=1", {{200}, {1}}),
            (List{-56}));
}

TEST(Types, operations_work_in_the_widest_type_of_operands_and_target) {
  EXPECT_EQ(widest(DType::i8, DType::u8), DType::i32);
  EXPECT_EQ(widest(DType::i8, DType::i32), DType::i32);
  EXPECT_EQ(widest(DType::i64, DType::i32), DType::i64);
  EXPECT_EQ(widest(DType::i64, DType::f32), DType::f32);
  EXPECT_EQ(widest(DType::f32, DType::f64), DType::f64);
  EXPECT_EQ(output_of("input A[2] : i8; input B[2] : u8; output C[] : i32 += A[i] * B[i] where i=2",
                      {{-128, 127}, {255, 255}}),
            (List{-255}));
  // Bytes alone stay bytes.
  EXPECT_EQ(output_of("input A[1] : u8; output B[i] : u8 = A[i] * 2 / 2 where i=1", {{200}}), (List{72}));
  EXPECT_EQ(output_of("input A[1] : u8; output B[i] : u8 = cast_i32(A[i]) * 2 / 2 where i=1", {{200}}), (List{200}));
  // A comparison works in the type of its operands: 2^24 + 1 cannot be held by f32.
  EXPECT_EQ(output_of("input A[1] : i32; output B[i] = select(A[i] > 16777216, 1, 0) where i=1", {{16777217}}),
            (List{1}));
}

// The reference holds integers in double precision: beyond 2^53 it says by how much it may be off, and of what wraps
// around that it may be anything.
// A named operator of bytes sums them in i32, and gives that, unless it says otherwise.
TEST(Types, operators_of_bytes_sum_in_i32) {
  const auto output = [](const std::string& text, List a, List b) {
    const Computation what = parse_workload(text).computation();
    std::vector<Elements> operands(what.tensors.size());
    operands[0] = Elements(a), operands[1] = Elements(b);
    return std::pair(what.tensors.back().dtype, reference(what, operands).tensors.back().numbers());
  };
  const std::pair<const char*, std::pair<DType, List>> expected[] = {
      {"matmul(m=1,n=1,k=2,dtype=i8)", {DType::i32, {25400}}},
      {"matmul(m=1,n=1,k=2,dtype=u8)", {DType::i32, {25400}}},
      {"matmul(m=1,n=1,k=2,dtype=i8,out=i8)", {DType::i8, {56}}},
      {"matmul(m=1,n=1,k=2,dtype=i8,out=f32)", {DType::f32, {25400}}},
      {"matmul(m=1,n=1,k=2,out=f64)", {DType::f64, {25400}}},
      {"matmul(m=1,n=1,k=2,dtype=bf16)", {DType::f32, {25400}}},
  };
  for (const auto& [text, result] : expected) EXPECT_EQ(output(text, {100, 127}, {127, 100}), result) << text;
  EXPECT_EQ(parse_workload("matmul(m=1,n=1,k=2,dtype=i8,out=i32)").text(), "matmul(m=1,n=1,k=2,dtype=i8)");
  EXPECT_EQ(parse_workload("matmul(out=i8,m=1,n=1,k=2,dtype=i8)").text(), "matmul(m=1,n=1,k=2,dtype=i8,out=i8)");
  const Computation padded = parse_workload("conv2d(c=2,h=4,w=4,k=3,r=3,s=3,pad=1,dtype=i8)").computation();
  for (const Tensor& tensor : padded.tensors)
    EXPECT_EQ(tensor.dtype, tensor.role == Role::output ? DType::i32 : DType::i8) << tensor.name;
  for (const auto& [text, message] :
       {std::pair("matmul(m=1,n=1,k=2,out=i9)", "unknown type 'i9'"),
        std::pair("matmul(m=1,n=1,k=2,out=i8,out=i8)", "parameter 'out' is given twice"),
        std::pair("matmul(m=1,n=1,k=2,out=i8)", "i8"), std::pair("matmul(m=1,n=1,k=2,out=f16)", "f16")})
    EXPECT_NE(refusal([&] { parse_workload(text); }).find(message), std::string::npos) << text;
}

TEST(Types, conditions_may_be_joined) {
  const List a = {-3, -1, 0, 1, 2, 5};
  const auto chosen = [&](const std::string& condition) {
    return output_of("input A[6]; output B[i] = select(" + condition + ", 1, 0) where i=6", {a});
  };
  EXPECT_EQ(chosen("A[i] > 0 and A[i] < 5"), (List{0, 0, 0, 1, 1, 0}));
  EXPECT_EQ(chosen("A[i] < 0 || A[i] == 5"), (List{1, 1, 0, 0, 0, 1}));
  EXPECT_EQ(chosen("A[i] < 0 and A[i] > -2 or A[i] > 0 && i != 3 && i < 5"), (List{0, 1, 0, 0, 1, 0}));
  EXPECT_EQ(output_of("input A[4]; output B[i] = ceil(A[i]) + 10 * floor(A[i]) where i=4", {{-1.5, 2, 2.25, 0}}),
            (List{-21, 22, 23, 0}));
}

TEST(Types, integers_beyond_double_precision_have_magnitudes) {
  const auto magnitudes = [](const std::string& result) {
    const Computation what = parse("input A[3] : i64; output B[i]" + result + " where i=3");
    return reference(what, {Elements(List{0x1p60, 5, -0x1p53}), Elements()}).magnitude[1].numbers();
  };
  EXPECT_EQ(magnitudes(" : i64 = A[i] - 1"), (List{256, 0, 2}));
  const List wrapped = magnitudes(" : i32 = cast_i32(A[i])");
  EXPECT_EQ(wrapped[0], std::numeric_limits<double>::infinity());
  EXPECT_EQ(wrapped[1], 0);
  EXPECT_EQ(magnitudes(" : u8 = select(A[i] > 4, 1, 0)"), (List{0, 0, 0}));
  EXPECT_EQ(magnitudes(" : u8 = select(A[i] > 1152921504606846975, 1, 0)"), (List{1, 0, 0}));
}

// f16 and bf16 are types of storage: what is computed with them is computed in f32.
TEST(Types, numbers_of_16_bits_are_computed_in_f32) {
  EXPECT_EQ(widest(DType::bf16, DType::f16), DType::f32);
  EXPECT_EQ(widest(DType::bf16, DType::i64), DType::f32);
  EXPECT_EQ(widest(DType::f16, DType::f64), DType::f64);
  for (const char* type : {"f16", "bf16"}) {
    const std::string of = type;
    const Computation product = parse("input A[4,6] : " + of + "; input B[6,5] : " + of +
                                      "; output C[i,j] += A[i,l] * B[l,j] where i=4, j=5, l=6");
    for (const NodeType& node : types_of(product, product.stages[0])) EXPECT_EQ(node.operands, DType::f32);
    EXPECT_EQ(refusal_of("input A[4] : " + of + "; output B[z] : " + of + " += A[l] where z=1, l=4"),
              "text:1:" + std::to_string(23 + of.size()) + ": B: sums into " + of +
                  "; write a stage of type f32, and convert it in the next one");
    // The largest of rounded numbers is the largest, rounded: no stage is needed for it.
    EXPECT_EQ(output_of("input A[3]; output B[z] : " + of + " max= A[l] where z=1, l=3", {{1, 3, 2}}), (List{3}));
    // Named operators: what is summed, and what is on the way to an output, is f32.
    const Computation layer =
        parse_workload("conv2d_residual(c=4,h=5,w=6,k=8,r=3,s=3,pad=1,dtype=" + of + ")").computation();
    for (const Tensor& tensor : layer.tensors) {
      const bool is_on_the_way = tensor.name == "T" || tensor.name == "S";
      EXPECT_EQ(name_of(tensor.dtype), is_on_the_way ? "f32" : of) << tensor.name;
    }
  }
}

// A result in 16 bits may be off by a few roundings of its own size, not by those of all the terms that were summed.
TEST(Types, numbers_of_16_bits_have_bounds_of_their_size) {
  const Computation what = parse("input A[256]; T[z] += A[l]; output B[z] : bf16 = T[z] where z=1, l=256");
  std::vector<Elements> operands(what.tensors.size());
  std::vector<double> numbers(256, 1);
  for (std::size_t i = 0; i < 128; ++i) numbers[i] = -1;
  numbers[0] = 0;
  operands[0] = numbers;
  const Reference result = reference(what, operands);
  const std::size_t b = std::size_t(what.tensor_named("B"));
  EXPECT_EQ(result.tensors[b][0], 1);
  const double allowed = tolerance(DType::bf16, result.reduction_length[b], result.magnitude[b][0]);
  EXPECT_GE(allowed, 0x1p-8);
  EXPECT_LE(allowed, 0.07);
}

TEST(Types, conversions_say_what_is_lost) {
  const List values = {0.5, 1.5, 2.5, -0.5, -1.5, 3.7, -3.7, 300, -300, NAN, INFINITY, 1e20};
  const auto of = [&](const std::string& value, const std::string& type) {
    return output_of("input A[12]; output B[i] : " + type + " = " + value + " where i=12", {values});
  };
  const List rounded = of("round(A[i])", "f32");
  EXPECT_EQ(List(rounded.begin(), rounded.begin() + 7), (List{0, 2, 2, 0, -2, 4, -4}));
  EXPECT_TRUE(std::signbit(rounded[3]));
  EXPECT_EQ(of("cast_i8(A[i])", "i8"), (List{0, 1, 2, 0, -1, 3, -3, 127, -128, 0, 127, 127}));
  EXPECT_EQ(of("saturate_u8(round(A[i]))", "u8"), (List{0, 2, 2, 0, 0, 4, 0, 255, 0, 0, 255, 255}));
  EXPECT_EQ(of("round(A[i])", "i32"), (List{0, 2, 2, 0, -2, 4, -4, 300, -300, 0, 2147483647, 2147483647}));
  EXPECT_EQ(output_of("input A[4] : i32; output B[i] : u8 = saturate_u8(A[i]) where i=4", {{-1, 256, 255, 7}}),
            (List{0, 255, 255, 7}));
  EXPECT_EQ(output_of("input A[4] : i32; output B[i] : u8 = cast_u8(A[i]) where i=4", {{-1, 256, 255, 7}}),
            (List{255, 0, 255, 7}));
}

TEST(Types, integers_divide_down_and_shift) {
  const List a = {7, -7, 7, -7, 5, -2147483648.0}, b = {2, 2, -2, -2, 0, -1};
  const auto of = [&](const std::string& sign) {
    return output_of("input A[6] : i32; input B[6] : i32; output C[i] : i32 = A[i] " + sign + " B[i] where i=6",
                     {a, b});
  };
  EXPECT_EQ(of("/"), (List{3, -4, -4, 3, 0, -2147483648.0}));
  EXPECT_EQ(of("%"), (List{1, 1, -1, -1, 0, 0}));
  EXPECT_EQ(of(">>"), (List{1, -2, 7, -7, 5, -2147483648.0}));  // by at least 0
  EXPECT_EQ(of("<<"), (List{28, -28, 7, -7, 5, -2147483648.0}));
  EXPECT_EQ(output_of("input A[2] : u8; output B[i] : u8 = A[i] >> 40 where i=2", {{255, 128}}), (List{1, 1}));
  EXPECT_EQ(output_of("input A[1] : i32; output B[i] : i32 = A[i] * A[i] where i=1", {{2147483647}}), (List{1}));
}

TEST(Types, bits_of_integers) {
  const auto of = [&](const std::string& operation, const std::string& type, const List& a, const List& b) {
    return output_of("input A[3] : " + type + "; input B[3] : " + type + "; output C[i] : " + type + " = " + operation +
                         "(A[i], B[i]) where i=3",
                     {a, b});
  };
  EXPECT_EQ(of("bit_and", "i32", {12, -1, -8}, {10, 77, 13}), (List{8, 77, 8}));
  EXPECT_EQ(of("bit_or", "i8", {12, -128, -8}, {10, 3, 13}), (List{14, -125, -3}));
  EXPECT_EQ(of("bit_xor", "u8", {12, 255, 128}, {10, 3, 128}), (List{6, 252, 0}));
  EXPECT_EQ(of("bit_xor", "i64", {0x1p40, -1, 5}, {1, 0x1p40, -1}), (List{0x1p40 + 1, -0x1p40 - 1, -6}));
  EXPECT_THROW(parse("input A[2]; output B[i] = bit_and(A[i], A[i]) where i=2"), graft::base::UserError);
}

TEST(Types, text_binds_shifts_below_sums) {
  const Computation what = parse("input A[2] : i32; output B[i] : i32 = A[i] + 1 << 2 % 3 where i=2");
  EXPECT_EQ(what.stages[0].value.root().op, Op::shift_left);
  EXPECT_EQ(to_text(what), "input A[2] : i32; output B[i] : i32 = A[i] + 1 << 2 % 3 where i=2");
  EXPECT_EQ(to_text(parse("input A[2] : i32; output B[i] : i32 = A[i] + (1 << 2) where i=2")),
            "input A[2] : i32; output B[i] : i32 = A[i] + (1 << 2) where i=2");
}

TEST(Types, what_rounding_decides_may_come_out_either_way) {
  const Computation what = parse("input A[3]; output B[i] : i32 = cast_i32(A[i] * 3) where i=3");
  std::vector<Elements> operands(2);
  operands[0] = {0.25, 1 / 3.0, 0.5};
  const Reference result = reference(what, operands);
  EXPECT_EQ(tolerance(DType::i32, result.reduction_length[1], result.magnitude[1][0]), 0);
  EXPECT_EQ(tolerance(DType::i32, result.reduction_length[1], result.magnitude[1][1]), 1);  // 0.9999999 or 1
  EXPECT_EQ(tolerance(DType::i32, result.reduction_length[1], result.magnitude[1][2]), 0);
}

TEST(Positions, axes_are_numbers) {
  EXPECT_EQ(output_of("input A[2,3]; output B[i,j] = select(j <= i, A[i,j], -1) where i=2, j=3", {{1, 2, 3, 4, 5, 6}}),
            (List{1, -1, -1, 4, 5, -1}));
  EXPECT_EQ(output_of("input A[3]; output B[i] += select(l < i + 1, A[l], 0) where i=3, l=3", {{1, 2, 4}}),
            (List{1, 3, 7}));
  EXPECT_EQ(output_of("output B[i,j] : i32 = 10*i + position(2*j + 1) where i=2, j=2", {}), (List{1, 3, 11, 13}));
  // The order of reduced axes survives, where positions show them in another one.
  const Computation what = parse("input A[3,4]; output B[i | l,k] += select(k < l, A[l,k], 0) where i=2, l=3, k=4");
  EXPECT_EQ(parse(to_text(what)), what);
}

TEST(Gather, indices_may_be_values) {
  const List x = {0, 1, 2, 3, 4, 5};
  EXPECT_EQ(output_of("input T[4] : i32; input X[3,2]; output Y[i,j] = X[T[i],j] where i=4, j=2", {{2, 0, -5, 99}, x}),
            (List{4, 5, 0, 1, 0, 1, 4, 5}));  // beyond the ends: the nearest
  EXPECT_EQ(
      output_of("input T[4] : i64; input X[3,2]; output Y[i] = pad(X[T[i],1], -1) where i=4", {{2, 0, -5, 99}, x}),
      (List{5, 1, -1, -1}));
  EXPECT_EQ(output_of("input X[6]; output Y[i] = X[i / 2] where i=12", {x}),
            (List{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5}));
  EXPECT_EQ(output_of("input X[6]; output Y[i] = X[(i + 4) % 6] where i=6", {x}), (List{4, 5, 0, 1, 2, 3}));
  EXPECT_EQ(
      output_of("input T[2] : i8; input X[3,2]; output Y[i,j] = X[T[i] + 1,1 - T[j]] where i=2, j=2", {{1, 0}, x}),
      (List{4, 5, 2, 3}));
}

TEST(Gather, what_cannot_be_is_refused_by_its_name) {
  const std::pair<std::string, std::string> cases[] = {
      {"input X[5]; output Y[i] = X[i / 2] where i=12", "index 0 of X runs through 0..5, outside of 0..4"},
      {"input X[5]; output Y[i] = X[i % 6] where i=12", "index 0 of X runs through 0..5, outside of 0..4"},
      {"input T[4]; input X[3]; output Y[i] = X[T[i]] where i=4", "an index of type f32; write cast_i32(...)"},
      {"input A[4]; output B[i] = B[i - 1] + A[i] where i=4", "'B' is read by the stage that writes it: a recurrence"},
      {"input T[4] : i32; input X[4]; output Y[T[i]] = X[i] where i=4", "scatter"},
      {"input A[4]; output B[i % 2] += A[i] where i=4", "scatter"},
      {"input A[4]; output B[2*i] = A[i] where i=4", "its axes do not reach every element once"},
      {"input A[4]; output B[i] : i32 += A[l] where i=4, l=4", "reduces values of type f32 into i32"},
      {"input A[4] : i32; output B[] : i8 max= A[l] where l=4", "write a stage of type i32, and convert it"},
      {"input A[4]; output B[i] = A[i] % 2 where i=4", "% needs integers, not f32; write cast_i32(...)"},
      {"input A[4] : i32; output B[i] : i32 = exp(A[i]) where i=4", "exp needs a floating-point type, not i32"},
      {"input A[4] : i32; output B[i] : i32 = A[i] * 0.5 where i=4", "0.5 is not an integer, as i32 is"},
      {"input X[3]; output Y[0*i + j] = X[j] where i=1, j=3",
       "text:1:24: axis 'i' does not move the element that is written"},
      {"output B[i] : i32 = position(i*i) where i=4", "text:1:30: position takes a form that is affine in the axes"},
      {"input A[4]; output B[i] = A where i=4", "'A' is a tensor; write a load 'A[...]'"},
      {"input A[4]; output B[i] = A[i] + q where i=4", "'q' is neither a number, nor an axis of this stage"},
  };
  for (const auto& [text, expected] : cases)
    EXPECT_NE(refusal_of(text).find(expected), std::string::npos) << text << "\n  " << refusal_of(text);
}

TEST(Targets, a_stage_may_store_by_forms_of_its_axes) {
  EXPECT_EQ(output_of("input X[2,3]; output Y[2*i + j] = X[j,i] where i=3, j=2", {{0, 1, 2, 3, 4, 5}}),
            (List{0, 3, 1, 4, 2, 5}));
  const Computation what = parse("input X[2,3]; output Y[3*j + i | l] += X[j,l] where i=3, j=2, l=3");
  EXPECT_EQ(what.tensors[1].shape, std::vector<std::int64_t>{6});
}

// Adds each element of X times the filter into the result, as transposed convolutions are defined.
TEST(TransposedConvolution, is_what_scattering_gives) {
  struct Case {
    int c, h, w, k, r, s, stride, pad, output_padding, groups, dilation;
  };
  const Case cases[] = {{2, 3, 4, 3, 4, 4, 2, 0, 0, 1, 1}, {2, 3, 4, 3, 3, 3, 2, 1, 1, 1, 1},
                        {4, 5, 3, 6, 3, 5, 2, 1, 0, 2, 1}, {1, 4, 4, 1, 3, 2, 3, 0, 2, 1, 1},
                        {2, 4, 3, 2, 3, 3, 2, 2, 1, 1, 2}, {3, 4, 4, 3, 2, 2, 1, 0, 0, 3, 3},
                        {1, 3, 3, 2, 5, 5, 4, 3, 3, 1, 1}, {2, 1, 7, 2, 1, 1, 2, 0, 1, 2, 1}};
  for (const Case& t : cases) {
    const Workload workload =
        parse_workload("transposed_conv2d(c=" + std::to_string(t.c) + ",h=" + std::to_string(t.h) +
                       ",w=" + std::to_string(t.w) + ",k=" + std::to_string(t.k) + ",r=" + std::to_string(t.r) +
                       ",s=" + std::to_string(t.s) + ",stride=" + std::to_string(t.stride) +
                       ",pad=" + std::to_string(t.pad) + ",output_padding=" + std::to_string(t.output_padding) +
                       ",groups=" + std::to_string(t.groups) + ",dilation=" + std::to_string(t.dilation) + ")");
    SCOPED_TRACE(workload.text());
    EXPECT_EQ(parse_workload(workload.text()), workload);
    const Computation what = workload.computation();
    const Reference result = reference(what, 3);
    const auto of = [&](const char* name) { return result.tensors[std::size_t(what.tensor_named(name))].numbers(); };
    const List x = of("X"), weights = of("W"), y = of("Y");
    const int rows = (t.h - 1) * t.stride - 2 * t.pad + t.dilation * (t.r - 1) + t.output_padding + 1;
    const int columns = (t.w - 1) * t.stride - 2 * t.pad + t.dilation * (t.s - 1) + t.output_padding + 1;
    List expected(std::size_t(t.k * rows * columns));
    for (int i = 0; i < t.c; ++i)
      for (int o = 0; o < t.k / t.groups; ++o)
        for (int p = 0; p < t.h; ++p)
          for (int q = 0; q < t.w; ++q)
            for (int u = 0; u < t.r; ++u)
              for (int v = 0; v < t.s; ++v) {
                const int to_row = p * t.stride + u * t.dilation - t.pad,
                          to_column = q * t.stride + v * t.dilation - t.pad;
                if (to_row < 0 || to_row >= rows || to_column < 0 || to_column >= columns) continue;
                const int channel = i / (t.c / t.groups) * (t.k / t.groups) + o;
                expected[std::size_t((channel * rows + to_row) * columns + to_column)] +=
                    x[std::size_t((i * t.h + p) * t.w + q)] *
                    weights[std::size_t(((i * (t.k / t.groups) + o) * t.r + u) * t.s + v)];
              }
    ASSERT_EQ(y.size(), expected.size());
    for (std::size_t e = 0; e < y.size(); ++e) ASSERT_NEAR(y[e], expected[e], 1e-12) << e;
  }
}

TEST(TransposedConvolution, keeps_the_texts_of_stored_workloads) {
  EXPECT_EQ(parse_workload("transposed_conv2d(c=3,h=3,w=4,k=2,r=4,s=2,stride=2,groups=1,pad=0)").text(),
            "transposed_conv2d(n=1,c=3,h=3,w=4,k=2,r=4,s=2,stride=2,dtype=f32)");
  EXPECT_EQ(parse_workload("transposed_conv2d(c=3,h=3,w=4,k=2,r=4,s=2)").computation().tensors.back().shape.size(), 6u);
}

}  // namespace
}  // namespace graft::codegen
