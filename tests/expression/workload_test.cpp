#include "codegen/expression/workload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "base/error.h"
#include "codegen/expression/padding.h"
#include "codegen/expression/parse.h"
#include "codegen/expression/reference.h"
#include "tests/expression/support.h"

namespace graft::codegen {
namespace {

std::string refusal_of(std::string_view text) {
  return refusal([&] { return parse_workload(text); });
}

const std::vector<std::string> examples = {
    "matmul(m=3,n=4,k=5)",
    "dense(m=2,n=4,k=3,dtype=f64)",
    "conv2d(c=3,h=7,w=8,k=4,r=3,s=2,stride=2,pad=1)",
    "conv2d(c=3,h=7,w=8,k=4,r=3,s=2)",
    "conv2d_nchwc(c=8,h=5,w=6,k=4,r=3,s=3,pad=1,block=2)",
    "depthwise_conv2d(c=3,h=7,w=8,r=3,s=3,stride=2,pad=1)",
    "batch_matmul(b=2,m=3,n=4,k=5)",
    "conv1d(n=2,c=3,w=9,k=4,s=3,stride=2,pad=1)",
    "conv2d_clamp(c=3,h=7,w=8,k=4,r=3,s=3,pad=1,limit=2)",
    "conv2d_residual(c=3,h=7,w=8,k=4,r=3,s=3,stride=2,pad=1)",
    "grouped_conv2d(c=6,h=7,w=8,k=4,r=3,s=3,pad=1,groups=2)",
    "dilated_conv2d(c=3,h=9,w=8,k=4,r=3,s=3,pad=2,dilation=2)",
    "transposed_conv2d(c=3,h=3,w=4,k=2,r=4,s=2,stride=2)",
    "depthwise_conv2d_nchwc(c=8,h=5,w=6,r=3,s=3,pad=1,block=4)",
    "conv3d(c=2,t=4,h=5,w=6,k=3,a=2,r=3,s=3,pad=1)",
    "max_pool2d(c=3,h=7,w=8,r=3,s=3,stride=2,pad=1)",
    "avg_pool2d(c=3,h=7,w=8,r=3,s=3,stride=2,pad=1)",
    "conv2d_nhwc(c=3,h=7,w=8,k=4,r=3,s=2,stride=2,pad=1)",
    "depthwise_conv2d_nhwc(c=3,h=7,w=8,r=3,s=3,stride=2,pad=1)",
    "max_pool2d_nhwc(c=3,h=7,w=8,r=3,s=3,stride=2,pad=1)",
    "avg_pool2d_nhwc(c=3,h=7,w=8,r=3,s=3,stride=2,pad=1)",
    "softmax(m=3,n=5)",
    "layer_norm(m=3,n=5)",
};

TEST(Workload, canonical_text_has_all_parameters_in_order_and_the_type_last) {
  const std::string canonical = "conv2d(n=1,c=64,h=56,w=56,k=64,r=3,s=3,stride=1,pad=1,dtype=f32)";
  EXPECT_EQ(parse_workload(" conv2d( pad = 1, s=3,r=3, k=64, w=56,h=56,c=64 ) ").text(), canonical);
  EXPECT_EQ(parse_workload("conv2d(dtype=f32,c=64,h=56,w=56,k=64,r=3,s=3,pad=1,n=1)").text(), canonical);
  EXPECT_EQ(parse_workload("resnet18.C2").text(), canonical);
  EXPECT_EQ(parse_workload(canonical).text(), canonical);
  EXPECT_EQ(hash(parse_workload("resnet18.C2")), hash(Workload{canonical}));
}

// The dimensions of a tensor's elements in another order: dimension d of the result is dimension order[d].
std::vector<double> turned(const Elements& from, const std::vector<std::int64_t>& shape,
                           const std::vector<std::size_t>& order) {
  std::vector<double> to;
  std::vector<std::int64_t> at(shape.size(), 0);
  for (std::size_t e = 0; e < from.size(); ++e) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const auto own = std::find(order.begin(), order.end(), d) - order.begin();
      offset = offset * shape[d] + at[std::size_t(own)];
    }
    to.push_back(from[std::size_t(offset)]);
    for (std::size_t d = order.size(); d-- > 0;) {
      if (++at[d] < shape[order[d]]) break;
      at[d] = 0;
    }
  }
  return to;
}

TEST(Workload, ChannelsLastComputeTheSameOfTurnedOperands) {
  using Order = std::vector<std::size_t>;
  const Order last = {0, 2, 3, 1};
  const std::tuple<std::string, std::string, Order> pairs[] = {
      {"conv2d", "(n=2,c=3,h=7,w=8,k=4,r=3,s=2,stride=2,pad=1)", {2, 3, 1, 0}},
      {"depthwise_conv2d", "(n=2,c=3,h=7,w=8,r=3,s=2,stride=2,pad=1)", {1, 2, 0}},
      {"max_pool2d", "(n=2,c=3,h=7,w=8,r=3,s=2,stride=2,pad=1)", {}},
      {"avg_pool2d", "(n=2,c=3,h=7,w=8,r=3,s=2,stride=2,pad=1)", {}},
  };
  for (const auto& [name, parameters, weights] : pairs) {
    SCOPED_TRACE(name);
    const Computation first = parse_workload(name + parameters).computation(),
                      second = parse_workload(name + "_nhwc" + parameters).computation();
    const Reference expected = reference(first, 1);
    std::vector<Elements> operands(second.tensors.size());
    for (const auto& [tensor, order] : {std::pair<std::string, Order>("X", last), {"W", weights}}) {
      if (second.tensor_named(tensor) < 0) continue;
      const std::size_t from = std::size_t(first.tensor_named(tensor));
      operands[std::size_t(second.tensor_named(tensor))] =
          Elements(turned(expected.tensors[from], first.tensors[from].shape, order));
    }
    const Reference is = reference(second, std::move(operands));
    const std::size_t y = std::size_t(first.tensor_named("Y"));
    const std::vector<double> should = turned(expected.tensors[y], first.tensors[y].shape, last);
    const Elements& got = is.tensors[std::size_t(second.tensor_named("Y"))];
    ASSERT_EQ(got.size(), should.size());
    for (std::size_t e = 0; e < should.size(); ++e) EXPECT_NEAR(got[e], should[e], 1e-12) << e;
  }
}

TEST(Workload, every_operator_is_among_the_examples_and_comes_back) {
  std::set<std::string> seen;
  for (const std::string& example : examples) {
    const Workload workload = parse_workload(example);
    seen.insert(example.substr(0, example.find('(')));
    EXPECT_EQ(parse_workload(workload.text()), workload);
    const Computation c = workload.computation();
    const std::string text = to_text(c);
    EXPECT_EQ(parse_computation(text, {}, DType::f32, "text"), c) << text;
    EXPECT_EQ(parse_workload(text).text(), text);
    EXPECT_EQ(parse_workload(text).computation(), c);
    EXPECT_EQ(flops(parse_workload(text)), flops(workload));
  }
  for (const Operator& op : operators()) EXPECT_TRUE(seen.contains(op.name)) << op.name;
}

TEST(Workload, an_index_expression_has_a_normal_form) {
  const Workload workload = parse_workload(
      "input A[512,512] : f32;input B[512,512];\n"
      "output C[i,j]+=A[i,l]*B[l,j] where l=512,j=512,i=512");
  EXPECT_EQ(workload.text(),
            "input A[512,512]; input B[512,512]; output C[i,j] += A[i,l] * B[l,j] where i=512, j=512, l=512");
  EXPECT_EQ(workload.computation(), parse_workload("matmul(m=512,n=512,k=512)").computation());
}

TEST(Workload, names_roles_and_types) {
  const Computation c = parse_workload("dense(m=2,n=4,k=3,dtype=f64)").computation();
  ASSERT_EQ(c.tensors.size(), 5u);
  EXPECT_EQ(c.tensors[0], (Tensor{"X", DType::f64, {2, 3}, Role::input}));
  EXPECT_EQ(c.tensors[1], (Tensor{"W", DType::f64, {4, 3}, Role::constant}));
  EXPECT_EQ(c.tensors[2], (Tensor{"bias", DType::f64, {4}, Role::constant}));
  EXPECT_EQ(c.tensors[3].role, Role::temporary);
  EXPECT_EQ(c.tensors[4], (Tensor{"Y", DType::f64, {2, 4}, Role::output}));
}

TEST(Workload, shapes_of_a_strided_padded_convolution) {
  const Computation c = parse_workload("resnet18.C1").computation();
  EXPECT_EQ(c.tensors[std::size_t(c.tensor_named("P"))].shape, (std::vector<std::int64_t>{1, 3, 230, 230}));
  EXPECT_EQ(c.tensors[std::size_t(c.tensor_named("Y"))].shape, (std::vector<std::int64_t>{1, 64, 112, 112}));
  EXPECT_TRUE(c.stages[0].value.loads[0].padded);
}

TEST(Workload, without_padding_there_is_no_pad_stage) {
  for (const char* text : {"conv2d(c=3,h=7,w=8,k=4,r=3,s=2)", "conv2d_nchwc(c=8,h=5,w=6,k=4,r=3,s=3,block=2)",
                           "depthwise_conv2d(c=3,h=7,w=8,r=3,s=3,stride=2)", "resnet18.C3"}) {
    const Computation c = parse_workload(text).computation();
    EXPECT_EQ(c.stages.size(), 1u) << text;
    EXPECT_EQ(c.tensor_named("P"), -1) << text;
    EXPECT_EQ(c.tensors[std::size_t(c.stages[0].value.loads[0].tensor)].name, "X") << text;
    EXPECT_EQ(checked(c, text), c);
  }
}

TEST(Workload, only_whole_copies_of_the_same_type_are_dropped) {
  for (const char* text : {"input A[4]; T[i] = A[i] where i=3; output B[i] = T[i] + T[i] where i=3",
                           "input A[4]; T[i] = A[-i + 3] where i=4; output B[i] = T[i] + T[i] where i=4",
                           "input A[4] : f64; T[i] = A[i]; output B[i] = T[i] + T[i] where i=4",
                           "input A[4]; output B[i] = A[i] where i=4"}) {
    const Computation c = parse_computation(text, {}, DType::f32, "text");
    EXPECT_EQ(parse_workload(text).computation(), c) << text;
  }
  EXPECT_EQ(parse_workload("input A[4]; T[i] = A[i]; S[i] = T[i]; output B[i] = S[i] where i=4").text(),
            "input A[4]; output B[i] = A[i] where i=4");
}

TEST(Workload, padding_has_a_normal_form) {
  EXPECT_EQ(
      parse_workload("input A[4]; output B[i] = pad(A[i-1],0) + pad(A[i], 2.50)+pad(A[i] ,- inf) where i=6").text(),
      "input A[4]; output B[i] = pad(A[i - 1]) + pad(A[i],2.5) + pad(A[i],-inf) where i=6");
  EXPECT_EQ(parse_workload("input A[4] : i32; output B[i] : i32 = pad(A[i], inf) where i=6").text(),
            "input A[4] : i32; output B[i] : i32 = pad(A[i],2147483647) where i=6");
  struct Case {
    std::string padding, expected;
  };
  for (const Case& one : std::vector<Case>{{"nan", "expected a number, 'inf' or '-inf'"},
                                           {"1.5", "B: 1.5 is not an integer, as i32 is"},
                                           {"2147483648", "B: 2147483648 does not fit i32"},
                                           {"", "expected a name"}}) {
    const std::string refused =
        refusal_of("input A[4] : i32; output B[i] : i32 = pad(A[i], " + one.padding + ") where i=6");
    EXPECT_TRUE(contains(refused, one.expected)) << refused;
  }
}

TEST(Workload, flops_of_known_operators) {
  EXPECT_EQ(flops(parse_workload("matmul(m=512,n=512,k=512)")), 2 * 512LL * 512 * 512);
  EXPECT_EQ(flops(parse_workload("dense(m=2,n=3,k=5)")), 2 * 2 * 3 * 5 + 2 * 2 * 3);
  EXPECT_EQ(flops(parse_workload("depthwise_conv2d(c=4,h=8,w=8,r=3,s=3,pad=1)")), 2 * 4 * 8 * 8 * 9);
  EXPECT_EQ(flops(parse_workload("conv2d_nchwc(c=64,h=56,w=56,k=64,r=3,s=3,pad=1)")),
            flops(parse_workload("resnet18.C2")));
  const auto mflop = [](const char* name) { return double(flops(parse_workload(name))) / 1e6; };
  EXPECT_NEAR(mflop("resnet18.C1"), 236.0, 0.05);
  EXPECT_NEAR(mflop("resnet18.C2"), 231.2, 0.05);
  EXPECT_NEAR(mflop("resnet18.C8"), 12.8, 0.05);
}

TEST(Workload, twelve_layers_of_resnet18) {
  std::set<std::string> texts;
  for (int layer = 1; layer <= 12; ++layer) texts.insert(parse_workload("resnet18.C" + std::to_string(layer)).text());
  EXPECT_EQ(texts.size(), 12u);
  EXPECT_TRUE(texts.contains("conv2d(n=1,c=256,h=14,w=14,k=512,r=1,s=1,stride=2,pad=0,dtype=f32)"));
}

TEST(Workload, refusals_name_the_place_and_the_remedy) {
  struct Case {
    std::string text, expected;
  };
  const std::vector<Case> cases = {
      {"matmull(m=1,n=1,k=1)", "workload:1:1: unknown operator 'matmull'; did you mean 'matmul'?"},
      {"fourier(m=1)", "unknown operator 'fourier'; known: matmul, batch_matmul, dense"},
      {"matmul(m=4,n=4)", "matmul is missing parameter 'k'; write 'k=...'"},
      {"matmul", "matmul is missing parameter 'm'"},
      {"matmul()", "matmul is missing parameter 'm'"},
      {"matmul(m=0,n=4,k=4)", "workload:1:8: m must be at least 1, got 0"},
      {"matmul(m=4,n=-3,k=4)", "workload:1:12: n must be at least 1, got -3"},
      {"matmul(m=4,n=4,k=4,m=4)", "parameter 'm' is given twice"},
      {"matmul(m=4,n=4,k=4,dtype=f32,dtype=f32)", "parameter 'dtype' is given twice"},
      {"matmul(m=4,n=4,k=4,dtype=f8)", "workload:1:26: unknown type 'f8'; known: f32, f64, i32, i8, u8"},
      {"matmul(m=4,n=4,k=4,q=4)", "matmul has no parameter 'q'"},
      {"matmul(m=4,n=4,k=4,dtpye=f32)", "matmul has no parameter 'dtpye'; did you mean 'dtype'?"},
      {"matmul(m=x,n=4,k=4)", "expected an integer, got 'x'"},
      {"matmul(m=4,n=4,k=99999999999999999999)", "does not fit 64 bits"},
      {"matmul(m=4,n=4,k=4000000000)", "too large"},
      {"matmul(m=4,n=4,k=4", "expected ','"},
      {"matmul(m=4,n=4,k=4,)", "expected a name"},
      {"matmul(m=4,n=4,k=4) x", "unexpected text after the workload"},
      {"conv2d(c=3,h=7,w=7,k=4,r=3,s=3,pad=-1)", "pad must be at least 0, got -1"},
      {"conv2d(c=3,h=2,w=7,k=4,r=3,s=3)",
       "conv2d(n=1,c=3,h=2,w=7,k=4,r=3,s=3,stride=1,pad=0,dtype=f32): axis 'y': extent 0 must be at least 1"},
      {"conv2d(c=3,h=2,w=7,k=4,r=3,s=3,stride=3)", "axis 'y': extent 0 must be at least 1"},
      {"conv2d_nchwc(c=24,h=7,w=7,k=32,r=3,s=3)", "dtype=f32): c (24) is not divisible by block (16)"},
      {"conv2d_nchwc(c=32,h=7,w=7,k=24,r=3,s=3)", "k (24) is not divisible by block (16)"},
      {"grouped_conv2d(c=6,h=7,w=7,k=4,r=3,s=3,groups=4)", "c (6) is not divisible by groups (4)"},
      {"transposed_conv2d(c=6,h=7,w=7,k=4,r=3,s=3,groups=4)", "c (6) is not divisible by groups (4)"},
      {"transposed_conv2d(c=6,h=2,w=2,k=4,r=3,s=3,pad=4)", "extent 0 must be at least 1"},
      {"conv3d(c=3,d=4,h=5,w=5,k=2,a=3,r=3,s=3)", "conv3d has no parameter 'd'; known: dtype, out, n, c, t, "},
      {"softmax(m=4,n=4,dtype=i32)", "E: exp needs a floating-point type, not i32"},
      {"dilated_conv2d(c=3,h=4,w=7,k=4,r=3,s=3)", "axis 'y': extent 0 must be at least 1"},
      {"suite:resnet18", "'suite:resnet18' is a list of workloads, and one is expected here; graft tune-all"},
      {"resnet18.C13", "unknown layer 'resnet18.C13'; did you mean"},
      {"", "there is no output"},
      {"input A[4]; output B[i] = A[j] where i=4", "workload:1:29: axis 'j' is not on the left"},
  };
  for (const Case& one : cases)
    EXPECT_TRUE(contains(refusal_of(one.text), one.expected)) << one.text << "\n  " << refusal_of(one.text);
}

// What it computes decides, not its letters, and not how it is written.
TEST(Workload, KeyIsOfTheComputation) {
  const auto key = [](const std::string& text) { return parse_workload(text).key(); };
  const std::uint64_t matmul = key("matmul(m=8,n=4,k=16)");
  EXPECT_EQ(key("input A[8,16]; input B[16,4]; output C[i,j] += A[i,l] * B[l,j] where i=8, j=4, l=16"), matmul);
  EXPECT_EQ(key("input U[8,16]; input V[16,4]; output W[r,s] += U[r,t] * V[t,s] where r=8, s=4, t=16"), matmul);
  EXPECT_EQ(key("conv2d(c=4,h=9,w=9,k=4,r=3,s=3,pad=1)"),
            key(to_text(parse_workload("conv2d(c=4,h=9,w=9,k=4,r=3,s=3,pad=1)").computation())));
  for (const char* const other :
       {"matmul(m=8,n=4,k=17)", "matmul(m=8,n=4,k=16,dtype=f64)", "dense(m=8,n=4,k=16)",
        // The second operand is known before, transposed, comes first.
        "input A[8,16]; constant B[16,4]; output C[i,j] += A[i,l] * B[l,j] where i=8, j=4, l=16",
        "input A[8,16]; input B[4,16]; output C[i,j] += A[i,l] * B[j,l] where i=8, j=4, l=16",
        "input B[16,4]; input A[8,16]; output C[i,j] += A[i,l] * B[l,j] where i=8, j=4, l=16"})
    EXPECT_NE(key(other), matmul) << other;
}

TEST(Workload, ANameIsItsOwnKeyAndComputesNothing) {
  const Workload name("table(name=net)");
  EXPECT_FALSE(names_computation(name));
  EXPECT_EQ(name.key(), hash(name));
  EXPECT_EQ(name, Workload("table(name=net)"));
  EXPECT_THROW((void)name.computation(), base::UserError);
  EXPECT_THROW((void)name.padded(), base::UserError);
  EXPECT_EQ(Workload().text(), "");
}

TEST(Workload, CopiesShareTheirComputation) {
  const Workload workload = parse_workload("matmul(m=8,n=4,k=16)"), copy = workload;
  EXPECT_EQ(&workload.computation(), &copy.computation());
  EXPECT_EQ(workload.padded(), with_padding_stages(workload.computation()));
}

}  // namespace
}  // namespace graft::codegen
