// Quantised operators against plain loops in integers, each result rounded once in single precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "codegen/expression/target.h"
#include "graph/fold.h"
#include "graph/plan.h"
#include "tests/graph/support/drawn.h"
#include "tests/graph/support/onnx_file.h"
#include "tests/graph/support/reference.h"
#include "tests/graph/support/run_plan.h"
#include "tests/graph/support/small.h"
#include "tests/support/refusal.h"

namespace {

using namespace graft::graph;
using file::attribute;
using file::GraphFile;
using graft::codegen::contains;
using graft::codegen::Elements;
using graft::codegen::refusal;
using List = std::vector<std::int64_t>;

int onnx_type(DType type) {
  return type == DType::u8 ? file::u8 : type == DType::i8 ? file::i8 : type == DType::i32 ? file::i32 : file::f32;
}

// Operands of a node as they go into a file: inputs of the model, or constants.
struct Data {
  DType type;
  Shape shape;
  std::vector<double> numbers;
};

Data scale_of(std::vector<double> numbers) {
  const std::int64_t count = std::int64_t(numbers.size());
  return {DType::f32, count == 1 ? Shape{} : Shape{count}, std::move(numbers)};
}

class Random : public Drawn {
 public:
  using Drawn::Drawn;
  DType byte() { return upto(2) ? DType::u8 : DType::i8; }
  double within(DType type) { return double(upto(256)) + graft::codegen::lowest(type); }
  Data data(DType type, const Shape& shape) {
    Data data{type, shape, {}};
    for (std::int64_t e = 0; e < elements_of(shape); ++e)
      data.numbers.push_back(type == DType::i32 ? double(upto(2001) - 1000) : within(type));
    return data;
  }
};

void add(GraphFile& graph, std::map<std::string, Elements>& inputs, const std::string& name, const Data& data,
         bool is_constant) {
  if (is_constant) {
    graph.weight_of(
        file::tensor(name, data.shape, onnx_type(data.type), graft::codegen::as_bytes(data.numbers, data.type)));
  } else {
    graph.input(name, data.shape, onnx_type(data.type));
    inputs[name] = Elements(data.numbers);
  }
}

// The result of a node whose operands up to `inputs` are inputs; the plan of it computes the same.
std::vector<double> result_of(const std::string& operation, const std::vector<Data>& operands,
                              const std::vector<std::string>& attributes, std::size_t inputs = 1,
                              bool has_plan = true) {
  GraphFile graph;
  std::map<std::string, Elements> given;
  std::vector<std::string> names;
  for (std::size_t o = 0; o < operands.size(); ++o) {
    names.push_back(operands[o].numbers.empty() ? "" : "x" + std::to_string(o));
    if (!names.back().empty()) add(graph, given, names.back(), operands[o], o >= inputs);
  }
  graph.node(operation, names, {"y"}, attributes).output("y");
  const Graph ready = folded(file::read(graph, 21), "m.onnx");
  graft::base::Monitor nobody;
  const Elements is = reference(ready, given, "m.onnx", nobody).front();
  std::vector<double> numbers;
  for (std::size_t e = 0; e < is.size(); ++e) numbers.push_back(is[e]);
  if (has_plan) {
    const graft::codegen::Target target = vector_target();
    const Elements planned_result = run(planned(ready, target, "m.onnx"), given).front();
    for (std::size_t e = 0; e < is.size(); ++e) EXPECT_EQ(planned_result[e], is[e]) << operation << ", element " << e;
  }
  return numbers;
}

double at(const Data& data, std::int64_t place) {
  return data.numbers.empty() ? 0 : data.numbers[data.numbers.size() == 1 ? 0 : std::size_t(place)];
}

double requantised(double sum, float factor, double zero, DType type) {
  const double rounded = double(std::nearbyint(float(sum) * factor)) + zero;
  return std::clamp(rounded, graft::codegen::lowest(type), graft::codegen::highest(type));
}

struct Convolution {
  std::int64_t groups = 1, c = 1, k = 1, h = 5, w = 5, r = 1, s = 1, stride = 1, begin = 0, end = 0;
  std::int64_t rows() const { return (h + begin + end - r) / stride + 1; }
  std::int64_t columns() const { return (w + begin + end - s) / stride + 1; }
  std::vector<double> sums(const Data& x, const Data& x_zero, const Data& weights, const Data& zero) const {
    const std::int64_t in = c / groups, out = k / groups;
    std::vector<double> y;
    for (std::int64_t o = 0; o < k; ++o)
      for (std::int64_t p = 0; p < rows(); ++p)
        for (std::int64_t q = 0; q < columns(); ++q) {
          double sum = 0;
          for (std::int64_t i = 0; i < in; ++i)
            for (std::int64_t u = 0; u < r; ++u)
              for (std::int64_t v = 0; v < s; ++v) {
                const std::int64_t at_h = p * stride + u - begin, at_w = q * stride + v - begin;
                if (at_h < 0 || at_h >= h || at_w < 0 || at_w >= w) continue;
                sum += (x.numbers[std::size_t(((o / out * in + i) * h + at_h) * w + at_w)] - at(x_zero, 0)) *
                       (weights.numbers[std::size_t(((o * in + i) * r + u) * s + v)] - at(zero, o));
              }
          y.push_back(sum);
        }
    return y;
  }
  std::vector<std::string> attributes() const {
    return {attribute("strides", List{stride, stride}), attribute("pads", List{begin, begin, end, end}),
            attribute("group", groups)};
  }
};

Convolution drawn_convolution(Random& random) {
  Convolution one;
  one.groups = 1 + random.upto(3);
  const bool is_depthwise = random.upto(3) == 0;
  one.c = one.groups * (is_depthwise ? 1 : 1 + random.upto(4)), one.k = one.groups * (1 + random.upto(3));
  one.h = 4 + random.upto(4), one.w = 4 + random.upto(4), one.r = 1 + random.upto(3), one.s = 1 + random.upto(3);
  one.stride = 1 + random.upto(2), one.begin = random.upto(2), one.end = random.upto(2);
  return one;
}

// The zero points of weights are those of channels, one, or left out.
Data zeros_of_weights(Random& random, DType type, std::int64_t channels) {
  if (random.upto(3) == 0) return {type, {}, {}};
  return random.upto(2) ? random.data(type, {channels}) : random.data(type, {});
}

TEST(Quantised, ConvolutionsOfAllTypesAndZeroPoints) {
  Random random(1);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    const Convolution one = drawn_convolution(random);
    const DType x_type = random.byte(), w_type = random.byte(), y_type = random.byte();
    const Data x = random.data(x_type, {1, one.c, one.h, one.w}), x_zero = random.data(x_type, {});
    const Data w = random.data(w_type, {one.k, one.c / one.groups, one.r, one.s});
    Data w_zero = zeros_of_weights(random, w_type, one.k);
    if (w_zero.numbers.empty()) w_zero = {w_type, {}, {0}};
    // Powers of two: many sums are halves between integers, which rounding makes even.
    std::vector<double> w_scales(random.upto(2) ? std::size_t(one.k) : 1);
    for (double& scale : w_scales) scale = std::ldexp(1.0, -int(random.upto(4)));
    const Data y_zero = random.data(y_type, {}), bias = random.data(DType::i32, {one.k});
    const bool has_bias = random.upto(2) != 0, has_constants = random.upto(3) != 0;
    std::vector<Data> operands = {x, scale_of({0.5}), x_zero, w, scale_of(w_scales), w_zero, scale_of({64}), y_zero};
    if (has_bias) operands.push_back(bias);
    const std::vector<double> sums = one.sums(x, x_zero, w, w_zero);
    std::vector<double> expected;
    for (std::size_t e = 0; e < sums.size(); ++e) {
      const std::int64_t channel = std::int64_t(e) / (one.rows() * one.columns());
      const float scale = float(w_scales.size() == 1 ? w_scales[0] : w_scales[std::size_t(channel)]);
      expected.push_back(
          requantised(sums[e] + (has_bias ? at(bias, channel) : 0), 0.5F * scale / 64.0F, at(y_zero, 0), y_type));
    }
    EXPECT_EQ(result_of("QLinearConv", operands, one.attributes(), has_constants ? 1 : operands.size(), has_constants),
              expected);
    EXPECT_EQ(result_of("ConvInteger", {x, w, x_zero, w_zero}, one.attributes(), has_constants ? 1 : 2), sums);
    // A zero point that is not known before: what pads hold is computed.
    std::vector<Data> others = {x, w, x_zero, w_zero};
    EXPECT_EQ(result_of("ConvInteger", others, one.attributes(), 4, false), sums);
  }
}

std::vector<double> products(const Data& a, const Data& a_zero, const Data& b, const Data& b_zero, std::int64_t m,
                             std::int64_t n, std::int64_t k) {
  std::vector<double> y;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t l = 0; l < k; ++l)
        sum +=
            (a.numbers[std::size_t(i * k + l)] - at(a_zero, i)) * (b.numbers[std::size_t(l * n + j)] - at(b_zero, j));
      y.push_back(sum);
    }
  return y;
}

TEST(Quantised, ProductsOfAllTypesAndZeroPoints) {
  Random random(2);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    const std::int64_t m = 1 + random.upto(5), n = 1 + random.upto(5), k = 1 + random.upto(9);
    const DType a_type = random.byte(), b_type = random.byte(), y_type = random.byte();
    const Data a = random.data(a_type, {m, k}), b = random.data(b_type, {k, n});
    const Data a_zero = random.data(a_type, random.upto(2) ? Shape{m} : Shape{});
    const Data b_zero = zeros_of_weights(random, b_type, n), y_zero = random.data(y_type, {});
    const std::vector<double> sums = products(a, a_zero, b, b_zero, m, n, k);
    const std::size_t inputs = random.upto(2) ? 1 : 2;
    EXPECT_EQ(result_of("MatMulInteger", {a, b, a_zero, b_zero}, {}, inputs), sums);
    std::vector<double> scales(random.upto(2) ? std::size_t(n) : 1), expected;
    for (double& scale : scales) scale = std::ldexp(1.0, -int(random.upto(4)));
    for (std::size_t e = 0; e < sums.size(); ++e) {
      const float scale = float(scales.size() == 1 ? scales[0] : scales[e % std::size_t(n)]);
      expected.push_back(requantised(sums[e], 0.5F * scale / 32.0F, at(y_zero, 0), y_type));
    }
    const Data zero = b_zero.numbers.empty() ? Data{b_type, {}, {0}} : b_zero;
    EXPECT_EQ(
        result_of("QLinearMatMul", {a, scale_of({0.5}), a_zero, b, scale_of(scales), zero, scale_of({32}), y_zero}, {},
                  inputs == 1 ? 1 : 4),
        expected);
  }
}

TEST(Quantised, StacksOfMatricesHaveZeroPointsOfTheirOwn) {
  Random random(3);
  const Data a = random.data(DType::u8, {2, 3, 4}), b = random.data(DType::i8, {2, 4, 2});
  const Data a_zero = random.data(DType::u8, {2, 3, 1}), b_zero = random.data(DType::i8, {2, 1, 2});
  std::vector<double> expected;
  for (std::size_t z = 0; z < 2; ++z) {
    const auto part = [&](const Data& of) {
      const std::size_t size = of.numbers.size() / 2;
      return Data{of.type,
                  {},
                  {of.numbers.begin() + std::ptrdiff_t(z * size), of.numbers.begin() + std::ptrdiff_t((z + 1) * size)}};
    };
    const std::vector<double> sums = products(part(a), part(a_zero), part(b), part(b_zero), 3, 2, 4);
    expected.insert(expected.end(), sums.begin(), sums.end());
  }
  EXPECT_EQ(result_of("MatMulInteger", {a, b, a_zero, b_zero}, {}, 1), expected);
  EXPECT_EQ(result_of("MatMulInteger", {a, b, a_zero, b_zero}, {}, 4), expected);
}

TEST(Quantised, HalvesBecomeEvenAndTheEndsOfTheRangeHold) {
  const Data x{DType::f32, {8}, {1, 3, 5, -1, -3, 500, -500, 2}};
  EXPECT_EQ(result_of("QuantizeLinear", {x, scale_of({2}), {DType::i8, {}, {3}}}, {}),
            (std::vector<double>{3, 5, 5, 3, 1, 127, -128, 4}));
  const Data sums{DType::i32, {3}, {16777216, -7, 0}};
  EXPECT_EQ(result_of("DequantizeLinear", {sums, scale_of({0.5})}, {}), (std::vector<double>{8388608, -3.5, 0}));
}

TEST(Quantised, RangesAreFoundInTheInput) {
  // The example that ONNX gives, without a half that rounding in between decides.
  GraphFile graph;
  graph.input("x", {6}).node("DynamicQuantizeLinear", {"x"}, {"y", "scale", "zero"});
  graph.output("y").output("scale").output("zero");
  const std::map<std::string, Elements> inputs = {{"x", Elements(std::vector<double>{0, 2, -3, -2.4, 1.34, 0.5})}};
  const Graph ready = folded(file::read(graph), "m.onnx");
  graft::base::Monitor nobody;
  const std::vector<Elements> is = reference(ready, inputs, "m.onnx", nobody);
  const double expected[] = {153, 255, 0, 31, 221, 179};
  for (std::size_t e = 0; e < 6; ++e) EXPECT_EQ(is[0][e], expected[e]) << e;
  EXPECT_NEAR(is[1][0], 5.0 / 255, 1e-8);
  EXPECT_EQ(is[2][0], 153);
  // Minimum and maximum are found once for all results.
  const graft::codegen::Target target = vector_target();
  const Plan plan = planned(ready, target, "m.onnx");
  EXPECT_LE(plan.calls.size(), 7u);
  const std::vector<Elements> run_results = run(plan, inputs);
  for (std::size_t e = 0; e < 6; ++e) EXPECT_EQ(run_results[0][e], expected[e]) << e;
}

std::vector<std::string> operations(const Graph& graph) {
  std::vector<std::string> all;
  for (const Node& node : graph.nodes) all.push_back(node.operation);
  return all;
}

// A quantised convolution is one kernel whose sums are those of bytes: zero points are known before.
TEST(Quantised, ZeroPointsLeaveProductsOfBytes) {
  GraphFile graph;
  Random random(4);
  std::map<std::string, Elements> inputs;
  const Data w{DType::u8, {2, 3, 1, 1}, {100, 128, 200, 0, 255, 128}};
  add(graph, inputs, "x", random.data(DType::u8, {1, 3, 8, 8}), false);
  add(graph, inputs, "w", w, true);
  add(graph, inputs, "one", scale_of({1}), true);
  add(graph, inputs, "zero", {DType::u8, {}, {7}}, true);
  add(graph, inputs, "w_zero", {DType::u8, {}, {128}}, true);
  graph.node("QLinearConv", {"x", "one", "zero", "w", "one", "w_zero", "one", "zero"}, {"y"}).output("y");
  const Graph ready = folded(file::read(graph), "m.onnx");
  const Value& weights = ready.values[std::size_t(ready.nodes[0].operands[3])];
  EXPECT_EQ(weights.type, DType::i8);
  EXPECT_EQ(weights.known->integers(), (List{-28, 0, 72, -128, 127, 0}));
  EXPECT_EQ(ready.nodes[0].operands[5], -1);
  const graft::codegen::Target target = vector_target();
  const Plan plan = planned(ready, target, "m.onnx");
  ASSERT_EQ(plan.kernels.size(), 1u);
  const std::string text = plan.kernels[0].workload.text();
  EXPECT_TRUE(contains(text, ": i32 += x4[b,i,y0 + u0,y1 + u1] * x3[o,i,u0,u1];")) << text;
  EXPECT_FALSE(contains(text, "- 7) *")) << text;
}

// Three channels do not make a group of four bytes, and so windows of three become four wide, the last weights being
// zeros.
TEST(Quantised, WindowsOfFewChannelsGetZerosForDotProducts) {
  for (const std::int64_t channels : {3, 4}) {
    GraphFile graph;
    Random random(6);
    std::map<std::string, Elements> inputs;
    add(graph, inputs, "x", random.data(DType::u8, {1, channels, 6, 6}), false);
    add(graph, inputs, "w", random.data(DType::i8, {2, channels, 3, 3}), true);
    add(graph, inputs, "zero", {DType::u8, {}, {7}}, true);
    add(graph, inputs, "w_zero", {DType::i8, {}, {0}}, true);
    graph.node("ConvInteger", {"x", "w", "zero", "w_zero"}, {"y"},
               {attribute("pads", List{1, 1, 1, 1}), attribute("strides", List{2, 2}),
                attribute("kernel_shape", List{3, 3}), attribute("auto_pad", "NOTSET")});
    graph.output("y");
    const Graph as_given = file::read(graph), ready = folded(as_given, "m.onnx");
    const Array& weights = *ready.values[std::size_t(ready.nodes[0].operands[1])].known;
    const Array& before = *as_given.values[std::size_t(as_given.nodes[0].operands[1])].known;
    if (channels == 4) {
      EXPECT_EQ(weights, before);
      continue;
    }
    ASSERT_EQ(weights.shape, (Shape{2, 3, 3, 4}));
    for (std::size_t row = 0; row < 18; ++row) {
      for (std::size_t e = 0; e < 3; ++e) EXPECT_EQ(weights.integer(4 * row + e), before.integer(3 * row + e));
      EXPECT_EQ(weights.integer(4 * row + 3), 0);
    }
    graft::base::Monitor nobody;
    const std::vector<Elements> is = reference(ready, inputs, "m.onnx", nobody);
    EXPECT_EQ(is[0], reference(as_given, inputs, "m.onnx", nobody)[0]);
    EXPECT_EQ(is[0].size(), 18u);
  }
}

// A model of DequantizeLinear, an operator and QuantizeLinear.
class Groups : public testing::Test {
 protected:
  void add_constant(const std::string& name, const Data& data) { add(graph_, inputs_, name, data, true); }
  // The operand `name` from integers of a zero point.
  void dequantised(const std::string& name, const Data& data, const Data& zero, const Data& scale, bool is_constant,
                   const std::vector<std::string>& attributes = {}) {
    add(graph_, inputs_, name + ".q", data, is_constant);
    add_constant(name + ".zero", zero);
    add_constant(name + ".scale", scale);
    graph_.node("DequantizeLinear", {name + ".q", name + ".scale", name + ".zero"}, {name}, attributes);
  }
  void quantised(const std::string& name, const Data& zero, const Data& scale) {
    add_constant("y.zero", zero);
    add_constant("y.scale", scale);
    graph_.node("QuantizeLinear", {name, "y.scale", "y.zero"}, {"y"}).output("y");
  }
  Graph ready() const { return folded(file::read(graph_), "m.onnx"); }
  std::vector<double> results() const {
    graft::base::Monitor nobody;
    const Elements is = reference(ready(), inputs_, "m.onnx", nobody).front();
    std::vector<double> numbers;
    for (std::size_t e = 0; e < is.size(); ++e) numbers.push_back(is[e]);
    return numbers;
  }
  GraphFile graph_;
  std::map<std::string, Elements> inputs_;
  const Data x_ = Random(5).data(DType::u8, {1, 2, 4, 4}), w_ = Random(6).data(DType::i8, {3, 2, 3, 3}),
             bias_ = Random(7).data(DType::i32, {3});
  void convolution(double bias_scale) {
    dequantised("x", x_, {DType::u8, {}, {9}}, scale_of({0.5}), false);
    dequantised("w", w_, {DType::i8, {3}, {0, 0, 0}}, scale_of({0.25, 0.5, 1}), true, {attribute("axis", 0)});
    dequantised("b", bias_, {DType::i32, {3}, {0, 0, 0}}, scale_of({bias_scale, 2 * bias_scale, 4 * bias_scale}), true,
                {attribute("axis", 0)});
    graph_.node("Conv", {"x", "w", "b"}, {"sum"}, {attribute("pads", List{1, 1, 1, 1})});
  }
  std::vector<double> expected(double zero) const {
    const Convolution one{.c = 2, .k = 3, .h = 4, .w = 4, .r = 3, .s = 3, .begin = 1, .end = 1};
    const std::vector<double> sums = one.sums(x_, {DType::u8, {}, {9}}, w_, {DType::i8, {}, {}});
    std::vector<double> all;
    for (std::size_t e = 0; e < sums.size(); ++e)
      all.push_back(requantised(sums[e] + at(bias_, std::int64_t(e / 16)),
                                0.5F * float(0.25 * double(1 << (e / 16))) / 16, zero, DType::u8));
    return all;
  }
};

TEST_F(Groups, AConvolutionIsOneOfIntegers) {
  convolution(0.125);
  graph_.node("Relu", {"sum"}, {"positive"});
  quantised("positive", {DType::u8, {}, {0}}, scale_of({16}));
  EXPECT_EQ(operations(ready()), std::vector<std::string>{"QLinearConv"});
  EXPECT_EQ(results(), expected(0));
}

TEST_F(Groups, ARangeThatHasNegativeNumbersKeepsItsRelu) {
  convolution(0.125);
  graph_.node("Relu", {"sum"}, {"positive"});
  quantised("positive", {DType::u8, {}, {3}}, scale_of({16}));
  EXPECT_EQ(operations(ready()).back(), "QuantizeLinear");
  for (const double number : results()) EXPECT_GE(number, 3);
}

TEST_F(Groups, ABiasOfAnotherScaleIsAddedAsItIsWritten) {
  convolution(0.25);
  quantised("sum", {DType::u8, {}, {0}}, scale_of({16}));
  EXPECT_EQ(operations(ready()).back(), "QuantizeLinear");
}

TEST_F(Groups, ASecondReaderNeedsTheNumbers) {
  convolution(0.125);
  quantised("sum", {DType::u8, {}, {0}}, scale_of({16}));
  graph_.output("sum");
  EXPECT_EQ(operations(ready()).back(), "QuantizeLinear");
}

TEST_F(Groups, PoolingOfOneScaleIsOfIntegers) {
  dequantised("x", x_, {DType::u8, {}, {9}}, scale_of({0.5}), false);
  graph_.node("MaxPool", {"x"}, {"largest"}, {attribute("kernel_shape", List{4, 4})});
  quantised("largest", {DType::u8, {}, {9}}, scale_of({0.5}));
  EXPECT_EQ(operations(ready()), std::vector<std::string>{"MaxPool"});
  EXPECT_EQ(results(), (std::vector<double>{*std::max_element(x_.numbers.begin(), x_.numbers.begin() + 16),
                                            *std::max_element(x_.numbers.begin() + 16, x_.numbers.end())}));
}

TEST_F(Groups, SumsAndProductsOfTwo) {
  const Data other = Random(8).data(DType::u8, {1, 2, 4, 4});
  dequantised("x", x_, {DType::u8, {}, {9}}, scale_of({0.5}), false);
  dequantised("z", other, {DType::u8, {}, {4}}, scale_of({0.25}), false);
  graph_.node("Add", {"x", "z"}, {"sum"});
  quantised("sum", {DType::u8, {}, {10}}, scale_of({0.5}));
  EXPECT_EQ(operations(ready()), std::vector<std::string>{"com.microsoft.QLinearAdd"});
  std::vector<double> sums;
  for (std::size_t e = 0; e < 32; ++e)
    sums.push_back(std::clamp(std::nearbyint(x_.numbers[e] - 9 + (other.numbers[e] - 4) / 2 + 10), 0.0, 255.0));
  EXPECT_EQ(results(), sums);
}

TEST_F(Groups, MeansOfChannels) {
  dequantised("x", x_, {DType::u8, {}, {9}}, scale_of({0.5}), false);
  graph_.node("GlobalAveragePool", {"x"}, {"mean"});
  quantised("mean", {DType::u8, {}, {1}}, scale_of({0.25}));
  EXPECT_EQ(operations(ready()), std::vector<std::string>{"com.microsoft.QLinearGlobalAveragePool"});
  std::vector<double> means;
  for (std::size_t c = 0; c < 2; ++c) {
    double sum = 0;
    for (std::size_t e = 0; e < 16; ++e) sum += x_.numbers[c * 16 + e] - 9;
    means.push_back(requantised(sum, 0.5F / (0.25F * 16), 1, DType::u8));
  }
  EXPECT_EQ(results(), means);
}

TEST_F(Groups, GeneralProducts) {
  const Data a = Random(9).data(DType::i8, {3, 6}), b = Random(10).data(DType::i8, {4, 6}),
             c = Random(11).data(DType::i32, {4});
  dequantised("x", a, {DType::i8, {}, {-3}}, scale_of({0.5}), false);
  dequantised("w", b, {DType::i8, {4}, {0, 0, 0, 0}}, scale_of({0.5, 1, 0.25, 2}), true, {attribute("axis", 0)});
  dequantised("b", c, {DType::i32, {4}, {0, 0, 0, 0}}, scale_of({0.25, 0.5, 0.125, 1}), true, {attribute("axis", 0)});
  graph_.node("Gemm", {"x", "w", "b"}, {"sum"}, {attribute("transB", 1)});
  quantised("sum", {DType::i8, {}, {5}}, scale_of({64}));
  EXPECT_EQ(operations(ready()), std::vector<std::string>{"com.microsoft.QGemm"});
  std::vector<double> expected;
  const float scales[] = {0.25F, 0.5F, 0.125F, 1};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 4; ++j) {
      double sum = c.numbers[j];
      for (std::size_t l = 0; l < 6; ++l) sum += (a.numbers[i * 6 + l] + 3) * b.numbers[j * 6 + l];
      expected.push_back(requantised(sum, scales[j] / 64, 5, DType::i8));
    }
  EXPECT_EQ(results(), expected);
}

// Scales of columns, as exporters give them to weights.
TEST_F(Groups, ProductsWithAScaleForEachColumn) {
  const Data a = Random(9).data(DType::u8, {3, 6}), b = Random(10).data(DType::i8, {6, 2});
  const auto sum = [&](std::size_t i, std::size_t j) {
    double all = 0;
    for (std::size_t l = 0; l < 6; ++l) all += (a.numbers[i * 6 + l] - 7) * b.numbers[l * 2 + j];
    return all;
  };
  dequantised("x", a, {DType::u8, {}, {7}}, scale_of({0.5}), false);
  dequantised("w", b, {DType::i8, {2}, {0, 0}}, scale_of({0.5, 2}), true, {attribute("axis", -1)});
  graph_.node("MatMul", {"x", "w"}, {"product"});
  const GraphFile without_output = graph_;
  graph_.output("product");
  EXPECT_EQ(operations(ready()), (std::vector<std::string>{"MatMulInteger", "CastLike", "Mul", "Identity"}));
  const std::vector<double> floats = results();
  graph_ = without_output;
  quantised("product", {DType::u8, {}, {100}}, scale_of({64}));
  EXPECT_EQ(operations(ready()), std::vector<std::string>{"QLinearMatMul"});
  const float scales[] = {0.25F, 1};
  const std::vector<double> bytes = results();
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 2; ++j) {
      EXPECT_EQ(floats[2 * i + j], sum(i, j) * scales[j]);
      EXPECT_EQ(bytes[2 * i + j], requantised(sum(i, j), scales[j] / 64, 100, DType::u8));
    }
}

TEST_F(Groups, ScalesMayBeWhatConstantNodesGive) {
  graph_.node("Constant", {}, {"s"}, {attribute("value_float", 0.5)}).node("Identity", {"s"}, {"scale"});
  add(graph_, inputs_, "x.q", x_, false);
  add_constant("zero", {DType::u8, {}, {9}});
  graph_.node("DequantizeLinear", {"x.q", "scale", "zero"}, {"x"});
  graph_.node("MaxPool", {"x"}, {"largest"}, {attribute("kernel_shape", List{4, 4})});
  graph_.node("QuantizeLinear", {"largest", "scale", "zero"}, {"y"}).output("y");
  EXPECT_EQ(operations(ready()), std::vector<std::string>{"MaxPool"});
}

TEST_F(Groups, GeneralProductsWhoseResultIsNotQuantised) {
  const Data a = Random(9).data(DType::i8, {3, 6}), b = Random(10).data(DType::i8, {6, 4});
  dequantised("x", a, {DType::i8, {}, {-3}}, scale_of({0.5}), false);
  dequantised("w", b, {DType::i8, {4}, {0, 0, 0, 0}}, scale_of({0.5, 1, 0.25, 2}), true, {attribute("axis", 1)});
  graph_.node("Gemm", {"x", "w"}, {"sum"}).output("sum");
  EXPECT_EQ(operations(ready()), std::vector<std::string>{"com.microsoft.QGemm"});
  const float scales[] = {0.25F, 0.5F, 0.125F, 1};
  const std::vector<double> is = results();
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 4; ++j) {
      double sum = 0;
      for (std::size_t l = 0; l < 6; ++l) sum += (a.numbers[i * 6 + l] + 3) * b.numbers[l * 4 + j];
      EXPECT_EQ(is[4 * i + j], sum * scales[j]);
    }
}

// Three rows in blocks of two, the last of which has one.
TEST(Quantised, BlocksHaveScalesOfTheirOwn) {
  const Data x = {DType::i8, {3, 2}, {1, -2, 3, 4, -5, 6}}, scales = {DType::f32, {2, 2}, {0.5, 2, 0.25, 4}},
             zeros = {DType::i8, {2, 2}, {1, 0, -1, 2}}, y = {DType::f32, {3, 2}, {0, -4, 1, 8, -1, 16}};
  const std::vector<std::string> attributes = {attribute("axis", 0), attribute("block_size", 2)};
  EXPECT_EQ(result_of("DequantizeLinear", {x, scales, zeros}, attributes, 1, false), y.numbers);
  EXPECT_EQ(result_of("QuantizeLinear", {y, scales, zeros}, attributes, 1, false), x.numbers);
  EXPECT_TRUE(contains(
      refusal([&] {
        (void)result_of("DequantizeLinear", {x, {DType::f32, {3, 2}, {1, 1, 1, 1, 1, 1}}, zeros}, attributes, 1, false);
      }),
      "operand 1 is [3,2], its input [3,2] in blocks of 2"));
}

// Without a scale of the result, it is the number itself.
TEST(Quantised, GeneralProductsInFloatingPoint) {
  const Data a = {DType::u8, {2, 3}, {1, 2, 3, 4, 5, 6}}, b = {DType::i8, {3, 2}, {1, -1, 2, -2, 3, -3}};
  const std::vector<Data> operands = {a,
                                      scale_of({0.5}),
                                      {DType::u8, {}, {1}},
                                      b,
                                      scale_of({0.25, 2}),
                                      {DType::i8, {2}, {0, 1}},
                                      {DType::i32, {2}, {10, -10}}};
  std::vector<double> expected;
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t j = 0; j < 2; ++j) {
      double sum = operands[6].numbers[j];
      for (std::size_t l = 0; l < 3; ++l) sum += (a.numbers[i * 3 + l] - 1) * (b.numbers[l * 2 + j] - double(j));
      expected.push_back(sum * 0.5 * (j == 0 ? 0.25 : 2));
    }
  EXPECT_EQ(result_of("com.microsoft.QGemm", operands, {}, 6, false), expected);
}

TEST(Quantised, WhatDoesNotFitIsRefused) {
  Random random(12);
  const Data x = random.data(DType::u8, {1, 2, 4, 4}), w = random.data(DType::i8, {3, 2, 1, 1});
  const auto refused = [&](const std::vector<Data>& operands) {
    return refusal([&] { (void)result_of("ConvInteger", operands, {}, 1, false); });
  };
  EXPECT_TRUE(contains(refused({x, w, random.data(DType::u8, {2})}), "its zero point is not one number"));
  EXPECT_TRUE(contains(refused({x, w, random.data(DType::u8, {}), random.data(DType::i8, {2})}),
                       "operand 3 is [2], there are 3 channels"));
  EXPECT_TRUE(contains(refused({x, random.data(DType::i32, {3, 2, 1, 1})}), "operand 1 of type i32"));
}

}  // namespace
