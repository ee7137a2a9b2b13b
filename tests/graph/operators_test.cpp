// Operators against plain loops that say what ONNX says, written without the index expressions.
#include "graph/operators.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "codegen/expression/parse.h"
#include "codegen/expression/workload.h"
#include "tests/graph/support/onnx_file.h"
#include "tests/support/refusal.h"

namespace {

using namespace graft::graph;
using graft::codegen::contains;
using graft::codegen::Elements;
using graft::codegen::refusal;
using Numbers = std::vector<double>;
using List = std::vector<std::int64_t>;

Numbers drawn(const Shape& shape, unsigned seed) {
  std::mt19937 random(seed);
  Numbers numbers(std::size_t(elements_of(shape)));
  for (double& number : numbers) number = double(int(random() % 2001) - 1000) / 256;
  return numbers;
}

void expect_near(const Elements& is, const Numbers& should, const std::string& what) {
  ASSERT_EQ(is.size(), should.size()) << what;
  for (std::size_t e = 0; e < should.size(); ++e)
    ASSERT_NEAR(is[e], should[e], 1e-9 * (1 + std::abs(should[e]))) << what << ", element " << e;
}

// One node of the inputs' shapes, x0, x1, ...; the result is y.
struct One {
  std::string operation;
  std::vector<Shape> shapes;
  std::vector<std::string> attributes;
  int version = 17;
};

Elements result_of(const One& one, const std::vector<Numbers>& inputs) {
  file::GraphFile graph;
  std::map<std::string, Elements> by_name;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < one.shapes.size(); ++i) {
    names.push_back("x" + std::to_string(i));
    graph.input(names.back(), one.shapes[i]);
    by_name[names.back()] = inputs[i];
  }
  graph.node(one.operation, names, {"y"}, one.attributes).output("y");
  return file::results(graph, by_name, one.version).front();
}

Elements result_of(const One& one, unsigned seed = 1) {
  std::vector<Numbers> inputs;
  for (const Shape& shape : one.shapes) inputs.push_back(drawn(shape, seed++));
  return result_of(one, inputs);
}

// A convolution over two spatial dimensions, from its definition.
struct Convolution {
  std::int64_t n = 1, c = 1, h = 1, w = 1, k = 1, r = 1, s = 1, groups = 1;
  std::int64_t stride[2] = {1, 1}, dilation[2] = {1, 1}, begin[2] = {0, 0}, end[2] = {0, 0};
  std::int64_t rows() const { return (h + begin[0] + end[0] - dilation[0] * (r - 1) - 1) / stride[0] + 1; }
  std::int64_t columns() const { return (w + begin[1] + end[1] - dilation[1] * (s - 1) - 1) / stride[1] + 1; }
  Numbers expected(const Numbers& x, const Numbers& weights, const Numbers& bias) const {
    const std::int64_t in = c / groups, out = k / groups;
    Numbers y;
    for (std::int64_t b = 0; b < n; ++b)
      for (std::int64_t o = 0; o < k; ++o)
        for (std::int64_t p = 0; p < rows(); ++p)
          for (std::int64_t q = 0; q < columns(); ++q) {
            double sum = bias.empty() ? 0 : bias[std::size_t(o)];
            for (std::int64_t i = 0; i < in; ++i)
              for (std::int64_t u = 0; u < r; ++u)
                for (std::int64_t v = 0; v < s; ++v) {
                  const std::int64_t at_h = p * stride[0] + u * dilation[0] - begin[0];
                  const std::int64_t at_w = q * stride[1] + v * dilation[1] - begin[1];
                  if (at_h < 0 || at_h >= h || at_w < 0 || at_w >= w) continue;
                  sum += x[std::size_t(((b * c + o / out * in + i) * h + at_h) * w + at_w)] *
                         weights[std::size_t(((o * in + i) * r + u) * s + v)];
                }
            y.push_back(sum);
          }
    return y;
  }
  std::vector<std::string> attributes() const {
    return {file::attribute("strides", List{stride[0], stride[1]}),
            file::attribute("dilations", List{dilation[0], dilation[1]}),
            file::attribute("pads", List{begin[0], begin[1], end[0], end[1]}), file::attribute("group", groups)};
  }
};

TEST(Operators, ConvolutionsOfEveryKind) {
  std::mt19937 random(7);
  const auto upto = [&](int most) { return std::int64_t(random() % unsigned(most)); };
  for (int round = 0; round < 60; ++round) {
    Convolution one;
    one.groups = 1 + upto(3);
    one.n = 1 + upto(2), one.c = one.groups * (1 + upto(2)), one.k = one.groups * (1 + upto(2));
    one.h = 5 + upto(4), one.w = 5 + upto(4), one.r = 1 + upto(3), one.s = 1 + upto(3);
    for (int d = 0; d < 2; ++d) {
      one.stride[d] = 1 + upto(3), one.dilation[d] = 1 + upto(2);
      one.begin[d] = upto(3), one.end[d] = upto(3);
    }
    const bool has_bias = upto(2) != 0;
    One node{"Conv", {{one.n, one.c, one.h, one.w}, {one.k, one.c / one.groups, one.r, one.s}}, one.attributes()};
    if (has_bias) node.shapes.push_back({one.k});
    std::vector<Numbers> inputs;
    for (const Shape& shape : node.shapes)
      inputs.push_back(drawn(shape, unsigned(round) * 3 + unsigned(inputs.size())));
    expect_near(result_of(node, inputs), one.expected(inputs[0], inputs[1], has_bias ? inputs[2] : Numbers()),
                "round " + std::to_string(round));
  }
}

// The pads of SAME are so that the extents are those of the input over the stride; an odd one is at the end or
// beginning.
TEST(Operators, ConvolutionsWithPadsOfTheirOwn) {
  for (const bool upper : {true, false}) {
    Convolution one{.c = 2, .h = 7, .w = 6, .k = 3, .r = 2, .s = 3};
    one.stride[0] = 1, one.stride[1] = 2;
    one.begin[0] = upper ? 0 : 1, one.end[0] = upper ? 1 : 0;  // (7-1)*1 + 2 - 7 = 1
    one.begin[1] = upper ? 0 : 1, one.end[1] = upper ? 1 : 0;  // (3-1)*2 + 3 - 6 = 1
    const Numbers x = drawn({1, 2, 7, 6}, 1), w = drawn({3, 2, 2, 3}, 2);
    const One node{
        "Conv",
        {{1, 2, 7, 6}, {3, 2, 2, 3}},
        {file::attribute("strides", List{1, 2}), file::attribute("auto_pad", upper ? "SAME_UPPER" : "SAME_LOWER")}};
    expect_near(result_of(node, {x, w}), one.expected(x, w, {}), upper ? "upper" : "lower");
  }
}

// Each element of the input adds its window of weights to the result.
TEST(Operators, TransposedConvolutions) {
  std::mt19937 random(3);
  const auto upto = [&](int most) { return std::int64_t(random() % unsigned(most)); };
  for (int round = 0; round < 40; ++round) {
    const std::int64_t groups = 1 + upto(2), in = 1 + upto(2), out = 1 + upto(2) + (round % 3 == 0 ? 7 : 0),
                       length = 3 + upto(4), kernel = 1 + upto(3);
    const std::int64_t stride = 1 + upto(3), dilation = 1 + upto(2), begin = upto(2), end = upto(2),
                       more = upto(int(stride));
    const std::int64_t extent = stride * (length - 1) + more + dilation * (kernel - 1) + 1 - begin - end;
    if (extent < 1) continue;
    const Shape shape_x = {2, groups * in, length}, shape_w = {groups * in, out, kernel};
    const Numbers x = drawn(shape_x, unsigned(round)), w = drawn(shape_w, unsigned(round) + 99),
                  bias = drawn({groups * out}, 5);
    Numbers y;
    for (int b = 0; b < 2; ++b)
      for (const double each : bias) y.insert(y.end(), std::size_t(extent), each);
    for (std::int64_t b = 0; b < 2; ++b)
      for (std::int64_t c = 0; c < groups * in; ++c)
        for (std::int64_t at = 0; at < length; ++at)
          for (std::int64_t o = 0; o < out; ++o)
            for (std::int64_t u = 0; u < kernel; ++u) {
              const std::int64_t to = at * stride + u * dilation - begin;
              if (to < 0 || to >= extent) continue;
              y[std::size_t((b * groups * out + c / in * out + o) * extent + to)] +=
                  x[std::size_t((b * groups * in + c) * length + at)] * w[std::size_t((c * out + o) * kernel + u)];
            }
    const One node{"ConvTranspose",
                   {shape_x, shape_w, {groups * out}},
                   {file::attribute("strides", List{stride}), file::attribute("dilations", List{dilation}),
                    file::attribute("pads", List{begin, end}), file::attribute("group", groups),
                    file::attribute("output_padding", List{more})}};
    expect_near(result_of(node, {x, w, bias}), y, "round " + std::to_string(round));
  }
}

TEST(Operators, PoolingWithPadsAndRoundedUp) {
  std::mt19937 random(11);
  const auto upto = [&](int most) { return std::int64_t(random() % unsigned(most)); };
  for (int round = 0; round < 60; ++round) {
    const std::int64_t length = 4 + upto(6), kernel = 1 + upto(3), stride = 1 + upto(3), begin = upto(int(kernel)),
                       end = upto(int(kernel));
    const bool up = upto(2) != 0, with_pads = upto(2) != 0;
    const std::int64_t room = length + begin + end - kernel;
    std::int64_t extent = (up ? (room + stride - 1) / stride : room / stride) + 1;
    if (up && (extent - 1) * stride >= length + begin) --extent;
    const Numbers x = drawn({1, 2, length}, unsigned(round));
    Numbers largest, means;
    for (std::int64_t c = 0; c < 2; ++c)
      for (std::int64_t p = 0; p < extent; ++p) {
        double best = -INFINITY, sum = 0;
        int inside = 0, counted = 0;
        for (std::int64_t at = p * stride - begin; at < p * stride - begin + kernel; ++at) {
          counted += at < length + end;
          if (at < 0 || at >= length) continue;
          ++inside;
          best = std::max(best, x[std::size_t(c * length + at)]);
          sum += x[std::size_t(c * length + at)];
        }
        largest.push_back(best);
        means.push_back(sum / (with_pads ? counted : inside));
      }
    const std::vector<std::string> attributes = {
        file::attribute("kernel_shape", List{kernel}), file::attribute("strides", List{stride}),
        file::attribute("pads", List{begin, end}), file::attribute("ceil_mode", up ? 1 : 0)};
    const std::string what = "round " + std::to_string(round);
    expect_near(result_of({"MaxPool", {{1, 2, length}}, attributes}, {x}), largest, what);
    std::vector<std::string> more = attributes;
    more.push_back(file::attribute("count_include_pad", with_pads ? 1 : 0));
    expect_near(result_of({"AveragePool", {{1, 2, length}}, more}, {x}), means, what);
  }
}

TEST(Operators, ProductsBroadcast) {
  const Numbers a = drawn({2, 1, 3, 4}, 1), b = drawn({5, 4, 2}, 2);
  Numbers y;
  for (std::size_t p = 0; p < 2; ++p)
    for (std::size_t q = 0; q < 5; ++q)
      for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t j = 0; j < 2; ++j) {
          double sum = 0;
          for (std::size_t l = 0; l < 4; ++l) sum += a[(p * 3 + i) * 4 + l] * b[(q * 4 + l) * 2 + j];
          y.push_back(sum);
        }
  expect_near(result_of({"MatMul", {{2, 1, 3, 4}, {5, 4, 2}}, {}}, {a, b}), y, "batches");
  expect_near(result_of({"MatMul", {{3}, {3}}, {}}, {{1, 2, 3}, {4, 5, 6}}), {32}, "vectors");
  expect_near(result_of({"MatMul", {{2, 3}, {3}}, {}}, {{1, 2, 3, 4, 5, 6}, {1, 0, 2}}), {7, 16}, "a column");
  expect_near(result_of({"Gemm",
                         {{2, 1}, {2, 2}, {1}},
                         {file::attribute("transA", 1), file::attribute("alpha", 0.5), file::attribute("beta", 2.0)}},
                        {{2, 4}, {1, 2, 3, 4}, {10}}),
              {27, 30}, "Gemm");
  expect_near(result_of({"Einsum", {{2, 2}}, {file::attribute("equation", "ii->i")}}, {{1, 2, 3, 4}}), {1, 4},
              "diagonal");
}

TEST(Operators, ElementsOneByOne) {
  const Shape shape = {3, 4};
  const Numbers x = drawn(shape, 4);
  const auto judge = [&](const std::string& operation, const std::function<double(double)>& f,
                         const std::vector<std::string>& attributes = {}) {
    Numbers y;
    for (const double each : x) y.push_back(f(each));
    expect_near(result_of({operation, {shape}, attributes, 20}, {x}), y, operation);
  };
  judge("Relu", [](double v) { return std::max(v, 0.0); });
  judge("LeakyRelu", [](double v) { return v < 0 ? double(0.01f) * v : v; });
  judge("Elu", [](double v) { return v < 0 ? 0.5 * std::expm1(v) : v; }, {file::attribute("alpha", 0.5)});
  judge("Sigmoid", [](double v) { return 1 / (1 + std::exp(-v)); });
  judge("Tanh", [](double v) { return std::tanh(v); });
  judge("Softplus", [](double v) { return std::log1p(std::exp(v)); });
  judge("Mish", [](double v) { return v * std::tanh(std::log1p(std::exp(v))); });
  judge("HardSwish", [](double v) { return v * std::clamp(v / 6 + 0.5, 0.0, 1.0); });
  judge("HardSigmoid", [](double v) { return std::clamp(double(0.2f) * v + 0.5, 0.0, 1.0); });
  judge("Gelu", [](double v) { return 0.5 * v * (1 + std::erf(v / std::sqrt(2.0))); });
  judge("Ceil", [](double v) { return std::ceil(v); });
  judge("Round", [](double v) { return std::nearbyint(v); });
  judge("Sin", [](double v) { return std::sin(v); });
  judge("Cos", [](double v) { return std::cos(v); });
  judge("Sign", [](double v) { return v > 0 ? 1.0 : v < 0 ? -1.0 : 0.0; });
}

TEST(Operators, WavesOfLargeNumbers) {
  Numbers x;
  for (int i = -40; i <= 40; ++i) x.push_back(i * 0.785398163397448 + i * i * i);
  Numbers sines, cosines;
  for (const double each : x) sines.push_back(std::sin(each)), cosines.push_back(std::cos(each));
  const Shape shape = {std::int64_t(x.size())};
  expect_near(result_of({"Sin", {shape}, {}}, {x}), sines, "sine");
  expect_near(result_of({"Cos", {shape}, {}}, {x}), cosines, "cosine");
}

TEST(Operators, InverseAndHyperbolicFunctions) {
  const double inf = std::numeric_limits<double>::infinity();
  Numbers all = {0, 1e-12, 1e-5, 0.01, 0.4, 0.99, 1, 1.01, 2.5, 40, 88, 1e8, 1e12, inf};
  for (std::size_t i = all.size(); i-- > 1;) all.push_back(-all[i]);
  const auto judge = [&](const std::string& operation, double (*f)(double), double least, double most) {
    Numbers x, y;
    for (const double each : all)
      if (each >= least && each <= most) x.push_back(each), y.push_back(f(each));
    const Elements is = result_of({operation, {{std::int64_t(x.size())}}, {}}, {x});
    for (std::size_t e = 0; e < y.size(); ++e)
      EXPECT_TRUE(is[e] == y[e] || std::abs(is[e] - y[e]) <= 1e-13 * std::abs(y[e]))
          << operation << " of " << x[e] << " is " << is[e] << ", not " << y[e];
  };
  judge("Tan", std::tan, -100, 100);
  judge("Atan", std::atan, -inf, inf);
  judge("Asin", std::asin, -1, 1);
  judge("Acos", std::acos, -1, 1);
  judge("Sinh", std::sinh, -inf, inf);
  judge("Cosh", std::cosh, -inf, inf);
  judge("Asinh", std::asinh, -inf, inf);
  judge("Acosh", std::acosh, 1, inf);
  judge("Atanh", std::atanh, -1, 1);
  for (const char* const operation : {"Asin", "Acos", "Acosh", "Atanh"})
    for (const double outside : {-1.5, -3.0}) {
      const Elements is = result_of({operation, {{1}}, {}}, {{outside}});
      EXPECT_TRUE(std::isnan(is[0])) << operation << " of " << outside;
    }
}

TEST(Operators, OfNothingGiveWhatSumsAndProductsBeginWith) {
  const Shape nothing = {2, 0};
  const std::vector<std::pair<const char*, double>> of_nothing = {{"ReduceSum", 0},
                                                                  {"ReduceProd", 1},
                                                                  {"ReduceMax", -INFINITY},
                                                                  {"ReduceMin", INFINITY},
                                                                  {"ReduceL1", 0},
                                                                  {"ReduceL2", 0},
                                                                  {"ReduceSumSquare", 0},
                                                                  {"ReduceLogSum", -INFINITY},
                                                                  {"ReduceLogSumExp", -INFINITY}};
  for (const auto& [operation, value] : of_nothing) {
    const Elements is = result_of({operation, {nothing}, {file::attribute("keepdims", 0)}}, {{}});
    EXPECT_EQ(is, Elements({value})) << operation;
  }
  const Elements mean = result_of({"ReduceMean", {nothing}, {file::attribute("keepdims", 0)}}, {{}});
  EXPECT_TRUE(std::isnan(mean[0]));
  EXPECT_EQ(result_of({"MatMul", {nothing, {0, 3}}, {}}, {{}, {}}), Elements({0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(result_of({"Gemm", {nothing, {0, 3}, {3}}, {}}, {{}, {}, {1, 2, 3}}), Elements({1, 2, 3, 1, 2, 3}));
}

TEST(Operators, RemaindersHaveTheSignOfTheDividend) {
  expect_near(
      result_of({"Mod", {{3}, {3}}, {file::attribute("fmod", 1)}}, {{1e8, -1125899906842624, 5}, {3, 7, INFINITY}}),
      {1, -4, 5}, "fmod of large quotients");
  expect_near(result_of({"Mod", {{4}, {4}}, {file::attribute("fmod", 1)}}, {{5.5, -5.5, 5.5, -6}, {2, 2, -2, -4}}),
              {1.5, -1.5, 1.5, -2}, "remainder");
}

// An operator is what version 7 has since the version that its standard names; what came before is not taken for it.
TEST(Operators, EarlyVersionsAreKnownWhereTheyMeanTheSame) {
  expect_near(result_of({"Elu", {{2}}, {}, 6}, {{-1, 2}}), {std::expm1(-1.0), 2}, "version 6");
  EXPECT_EQ(
      refusal([] {
        return result_of({"Elu", {{2}}, {}, 5});
      }),
      "m.onnx: 1 node cannot be computed: 1 x 'Elu': version 5 of operators, where it is known from 6 on, as node 0 "
      "(Elu)");
  EXPECT_TRUE(contains(refusal([] { return result_of({"Add", {{2}, {2}}, {}, 6}); }), "from 7 on"));
}

TEST(Operators, IntegersDivideTowardsZero) {
  const List a = {7, -7, 7, -7, 6}, b = {2, 2, -2, -2, 3};
  const auto result = [&](const std::string& operation, const std::vector<std::string>& attributes = {}) {
    file::GraphFile graph;
    graph.input("a", Shape{5}, file::i64)
        .integers("b", {5}, b)
        .node(operation, {"a", "b"}, {"y"}, attributes)
        .output("y");
    return file::results(graph, {{"a", Numbers(a.begin(), a.end())}}).front();
  };
  EXPECT_EQ(result("Div"), (Elements{3, -3, -3, 3, 2}));
  EXPECT_EQ(result("Mod"), (Elements{1, 1, -1, -1, 0}));
  EXPECT_EQ(result("Mod", {file::attribute("fmod", 1)}), (Elements{1, -1, 1, -1, 0}));
}

TEST(Operators, SoftmaxIsFlatBeforeVersion13) {
  const Shape shape = {2, 3, 2};
  const Numbers x = drawn(shape, 9);
  const auto softmax = [&](std::size_t block, std::size_t stride, std::size_t count) {
    Numbers y(x.size());
    for (std::size_t e = 0; e < x.size(); ++e) {
      const std::size_t first = e / block * block + e % stride;
      double sum = 0;
      for (std::size_t i = 0; i < count; ++i) sum += std::exp(x[first + i * stride]);
      y[e] = std::exp(x[e]) / sum;
    }
    return y;
  };
  expect_near(result_of({"Softmax", {shape}, {file::attribute("axis", 1)}, 12}, {x}), softmax(6, 1, 6), "flat");
  expect_near(result_of({"Softmax", {shape}, {file::attribute("axis", 1)}, 13}, {x}), softmax(6, 2, 3), "one axis");
  expect_near(result_of({"Softmax", {shape}, {}, 13}, {x}), softmax(2, 1, 2), "the last axis");
}

TEST(Operators, NormalisationsHaveMeanZeroAndVarianceOne) {
  const Shape shape = {2, 4, 3};
  const Numbers x = drawn(shape, 21), scale = drawn({4}, 22), shift = drawn({4}, 23);
  const auto expected = [&](std::size_t each) {  // over `each` channels
    Numbers y(x.size());
    const std::size_t count = each * 3;
    for (std::size_t begin = 0; begin < x.size(); begin += count) {
      double mean = 0, variance = 0;
      for (std::size_t i = 0; i < count; ++i) mean += x[begin + i] / double(count);
      for (std::size_t i = 0; i < count; ++i) variance += (x[begin + i] - mean) * (x[begin + i] - mean) / double(count);
      for (std::size_t i = begin; i < begin + count; ++i)
        y[i] = (x[i] - mean) / std::sqrt(variance + double(1e-5f)) * scale[i / 3 % 4] + shift[i / 3 % 4];
    }
    return y;
  };
  expect_near(result_of({"InstanceNormalization", {shape, {4}, {4}}, {}}, {x, scale, shift}), expected(1), "instance");
  expect_near(
      result_of({"GroupNormalization", {shape, {4}, {4}}, {file::attribute("num_groups", 2)}, 21}, {x, scale, shift}),
      expected(2), "groups");
}

TEST(Operators, PlacesOfSlicesPadsAndGathers) {
  const auto result = [](const std::string& operation, const Shape& shape, const std::vector<List>& operands,
                         const std::vector<std::string>& attributes = {}) {
    file::GraphFile graph;
    graph.input("x", shape);
    std::vector<std::string> names = {"x"};
    for (const List& operand : operands) {
      names.push_back(operand.empty() ? "" : "w" + std::to_string(names.size()));
      if (!operand.empty()) graph.integers(names.back(), {std::int64_t(operand.size())}, operand);
    }
    graph.node(operation, names, {"y"}, attributes).output("y");
    Numbers x;
    for (std::int64_t e = 0; e < elements_of(shape); ++e) x.push_back(double(e));
    return file::results(graph, {{"x", x}}).front();
  };
  EXPECT_EQ(result("Slice", {5}, {{INT64_MAX}, {INT64_MIN}, {0}, {-2}}), (Elements{4, 2, 0}));
  EXPECT_EQ(result("Slice", {2, 3}, {{-2}, {INT64_MAX}, {1}}), (Elements{1, 2, 4, 5}));
  EXPECT_EQ(result("Pad", {3}, {{2, 1}}, {file::attribute("mode", "reflect")}), (Elements{2, 1, 0, 1, 2, 1}));
  EXPECT_EQ(result("Pad", {3}, {{1, 2}}, {file::attribute("mode", "edge")}), (Elements{0, 0, 1, 2, 2, 2}));
  EXPECT_EQ(result("Pad", {3}, {{2, 2}}, {file::attribute("mode", "wrap")}), (Elements{1, 2, 0, 1, 2, 0, 1}));
  EXPECT_EQ(result("Pad", {3}, {{1, -1}}), (Elements{0, 0, 1}));
  EXPECT_EQ(result("Gather", {3, 2}, {{-1, 0}}), (Elements{4, 5, 0, 1}));
  EXPECT_EQ(result("Gather", {3, 2}, {{-1, 0, 1}}, {file::attribute("axis", 1)}),
            (Elements{1, 0, 1, 3, 2, 3, 5, 4, 5}));
  EXPECT_EQ(result("Tile", {1, 2}, {{2, 2}}), (Elements{0, 1, 0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(result("Expand", {2, 1}, {{3, 1, 2}}), (Elements{0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1}));
  EXPECT_EQ(result("Transpose", {2, 3}, {}), (Elements{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(result("DepthToSpace", {1, 4, 1, 2}, {}, {file::attribute("blocksize", 2)}),
            (Elements{0, 2, 1, 3, 4, 6, 5, 7}));
  EXPECT_TRUE(contains(refusal([&] { return result("Gather", {3, 2}, {{3}}); }), "index 3 of 3 elements"));
}

TEST(Operators, ConcatenationOfManyAndOfNothing) {
  file::GraphFile graph;
  std::vector<std::string> names;
  std::map<std::string, Elements> inputs;
  Numbers expected;
  for (int i = 0; i < 7; ++i) {
    names.push_back("x" + std::to_string(i));
    graph.input(names.back(), Shape{1, 1 + i % 3});
    Numbers x;
    for (int e = 0; e < 1 + i % 3; ++e) expected.push_back(i * 10 + e), x.push_back(expected.back());
    inputs[names.back()] = x;
    if (i == 3) graph.weight("none", {1, 0}, {}), names.push_back("none");
  }
  graph.node("Concat", names, {"y"}, {file::attribute("axis", -1)}).output("y");
  EXPECT_EQ(file::results(graph, inputs).front(), Elements(expected));
}

TEST(Operators, ResizesByCoordinates) {
  const auto result = [](const std::vector<std::string>& attributes, const std::vector<float>& scales, Numbers x) {
    file::GraphFile graph;
    graph.input("x", Shape{std::int64_t(x.size())}).weight("scales", {std::int64_t(scales.size())}, scales);
    graph.node("Resize", {"x", "", "scales"}, {"y"}, attributes).output("y");
    return file::results(graph, {{"x", x}}).front();
  };
  const std::string linear = file::attribute("mode", "linear");
  const auto coordinates = [](const char* kind) { return file::attribute("coordinate_transformation_mode", kind); };
  expect_near(result({linear}, {2}, {0, 4}), {0, 1, 3, 4}, "half_pixel");
  expect_near(result({linear, coordinates("align_corners")}, {2.5}, {0, 4}), {0, 1, 2, 3, 4}, "align_corners");
  expect_near(result({linear, coordinates("asymmetric")}, {2}, {0, 4}), {0, 2, 4, 4}, "asymmetric");
  expect_near(result({coordinates("asymmetric"), file::attribute("nearest_mode", "floor")}, {3}, {5, 6}),
              {5, 5, 5, 6, 6, 6}, "nearest, a whole factor");
  expect_near(result({file::attribute("nearest_mode", "ceil")}, {0.5}, {1, 2, 3, 4}), {2, 4}, "nearest, smaller");
  // Cubic weights with a = -0.75 at 0.25: -0.10546875, 0.87890625, 0.26171875, -0.03515625.
  expect_near(
      result({file::attribute("mode", "cubic")}, {2}, {0, 0, 1, 0, 0}),
      {0, -0.03515625, -0.10546875, 0.26171875, 0.87890625, 0.87890625, 0.26171875, -0.10546875, -0.03515625, 0},
      "cubic");
}

TEST(Operators, ResizesOfAPart) {
  file::GraphFile graph;
  graph.input("x", Shape{4}).weight("roi", {2}, {0, 2}).integers("sizes", {1}, {4});
  graph.node(
      "Resize", {"x", "roi", "", "sizes"}, {"y"},
      {file::attribute("mode", "linear"), file::attribute("coordinate_transformation_mode", "tf_crop_and_resize"),
       file::attribute("extrapolation_value", 9.0)});
  graph.output("y");
  expect_near(file::results(graph, {{"x", Numbers{1, 2, 3, 4}}}).front(), {1, 3, 9, 9}, "every second place");
}

// Numbers of onnxruntime, where they are another program's than ONNX's reference.
TEST(Operators, ResizesAsOnnxruntime) {
  const auto result = [](const std::vector<std::string>& attributes, const std::vector<float>& scales, Numbers x,
                         int type = file::f32) {
    file::GraphFile graph;
    graph.input("x", Shape{std::int64_t(x.size())}, type).weight("scales", {std::int64_t(scales.size())}, scales);
    graph.node("Resize", {"x", "", "scales"}, {"y"}, attributes).output("y");
    return file::results(graph, {{"x", x}}, 18).front();
  };
  const std::string linear = file::attribute("mode", "linear");
  const std::string antialias = file::attribute("antialias", 1);
  const auto coordinates = [](const char* kind) { return file::attribute("coordinate_transformation_mode", kind); };
  expect_near(result({linear, coordinates("align_corners")}, {1.1f}, {0, 4, 8, 12, 16}), {0, 4, 8, 12, 16},
              "5 of 5.5 elements");
  Numbers rising;
  for (int i = 0; i < 60; ++i) rising.push_back(i);
  const Elements fifths = result({coordinates("asymmetric"), file::attribute("nearest_mode", "floor")}, {1.2f}, rising);
  for (std::size_t y = 0; y < fifths.size(); ++y) EXPECT_EQ(fifths[y], std::floor(float(y) / 1.2f)) << y;
  EXPECT_EQ(fifths[18], 14);  // 15, if the scale were not of single precision
  // Triangles of twice the width: 1, 3, 3, 1 eighths; what is outside counts as the last element.
  expect_near(result({linear, antialias}, {0.5}, {8, 0, 0, 0, 0, 16}), {4, 0, 8}, "antialias");
  expect_near(result({linear, antialias}, {2}, {0, 4}), {0, 1, 3, 4}, "nothing to smooth");
  EXPECT_EQ(result({linear}, {2}, {1, 2, 255}, file::u8), (Elements{1, 1, 1, 65, 191, 255}));
  EXPECT_EQ(result({linear, antialias}, {0.5}, {1, 2, 255, 255}, file::u8), (Elements{33, 223}));
  EXPECT_EQ(result({linear, antialias}, {0.5}, {-4, 4, 0, 0}, file::i32), (Elements{-1, 1}));
  EXPECT_EQ(result({linear}, {2}, {-1, -2}, file::i32), (Elements{-1, -1, -1, -2}));
}

TEST(Operators, ResizesKeepTheAspect) {
  const auto shape = [](const char* policy) {
    file::GraphFile graph;
    graph.input("x", Shape{6, 8}).integers("sizes", {2}, {9, 10});
    graph
        .node("Resize", {"x", "", "", "sizes"}, {"y"},
              {file::attribute("mode", "linear"), file::attribute("keep_aspect_ratio_policy", policy)})
        .output("y");
    return file::results(graph, {{"x", drawn({6, 8}, 1)}}, 18).front().size();
  };
  EXPECT_EQ(shape("not_larger"), 8U * 10U);
  EXPECT_EQ(shape("not_smaller"), 9U * 12U);
}

TEST(Operators, HardmaxIsFlatBeforeVersion13) {
  const Numbers x = {1, 5, 2, 5, 3, 0, 0, 3};
  const One one{"Hardmax", {{2, 2, 2}}, {file::attribute("axis", 1)}};
  EXPECT_EQ(result_of({one.operation, one.shapes, one.attributes, 12}, {x}), (Elements{0, 1, 0, 0, 1, 0, 0, 0}));
  EXPECT_EQ(result_of({one.operation, one.shapes, one.attributes, 13}, {x}), (Elements{0, 1, 1, 0, 1, 0, 0, 1}));
}

// Integers are reduced as real numbers, then cut off.
TEST(Operators, ReductionsOfIntegers) {
  const auto result = [](const std::string& operation, int type) {
    file::GraphFile graph;
    graph.input("x", Shape{4, 3}, type)
        .node(operation, {"x"}, {"y"}, {file::attribute("axes", List{1}), file::attribute("keepdims", 0)})
        .output("y");
    return file::results(graph, {{"x", Numbers{1, 2, -5, 0, 0, 1, -3, -3, 5, 60, 60, 60}}}, 12).front();
  };
  for (const int type : {file::i32, file::i64}) {
    EXPECT_EQ(result("ReduceMean", type), (Elements{0, 0, 0, 60}));
    EXPECT_EQ(result("ReduceL2", type), (Elements{5, 1, 6, 103}));
    EXPECT_EQ(result("ReduceLogSumExp", type), (Elements{2, 1, 5, 61}));
    EXPECT_EQ(result("ReduceSumSquare", type), (Elements{30, 1, 43, 10800}));
  }
  const double least = -2147483648.0;  // the logarithm of a negative sum, as of 0
  EXPECT_EQ(result("ReduceLogSum", file::i32), (Elements{least, 0, least, 5}));
  EXPECT_TRUE(contains(refusal([&] { return result("ReduceMean", file::i8); }), "sums of bytes"));
}

TEST(Operators, LogarithmsOfSumsOfInfinities) {
  const double inf = std::numeric_limits<double>::infinity();
  const Elements is =
      result_of({"ReduceLogSumExp", {{3, 2}}, {file::attribute("axes", List{1})}}, {{-inf, -inf, 1, -inf, inf, 2}});
  EXPECT_EQ(is, (Elements{-inf, 1, inf}));
}

TEST(Operators, EinsumWithAnEllipsisAndNoArrow) {
  const Shape a = {2, 3, 4}, b = {4, 2};
  const Numbers x = drawn(a, 1), y = drawn(b, 2);
  EXPECT_EQ(result_of({"Einsum", {a, b}, {file::attribute("equation", "...ij,jk")}}, {x, y}),
            result_of({"MatMul", {a, b}, {}}, {x, y}));
}

TEST(Operators, CastsToShortIntegersWrap) {
  const auto result = [](int to, int from, const Numbers& x) {
    file::GraphFile graph;
    graph.input("x", Shape{std::int64_t(x.size())}, from).node("Cast", {"x"}, {"y"}, {file::attribute("to", to)});
    return file::results(graph.output("y"), {{"x", x}}).front();
  };
  const int uint16 = 4, int16 = 5, uint32 = 12;
  const Numbers x = {0, 1, -1, 32767, 32768, -32768, -32769, 65536, 100000};
  EXPECT_EQ(result(int16, file::i32, x), (Elements{0, 1, -1, 32767, -32768, -32768, 32767, 0, -31072}));
  EXPECT_EQ(result(uint16, file::i64, x), (Elements{0, 1, 65535, 32767, 32768, 32768, 32767, 0, 34464}));
  EXPECT_EQ(result(uint32, file::i64, {-1, 4294967297}), (Elements{4294967295, 1}));
  EXPECT_EQ(result(int16, file::f32, {-1.5, 32766.75}), (Elements{-1, 32766}));
}

TEST(Operators, ShortIntegersWrapBetweenNodes) {
  const auto quotient = [](int type, const char* operation, const Numbers& a, const Numbers& b) {
    file::GraphFile graph;
    graph.input("a", Shape{1}, type).input("b", Shape{1}, type).node(operation, {"a", "b"}, {"c"});
    graph.node("Div", {"c", "b"}, {"y"}).output("y");
    return file::results(graph, {{"a", a}, {"b", b}}).front()[0];
  };
  const int uint16 = 4, int16 = 5, uint32 = 12;
  EXPECT_EQ(quotient(uint16, "Add", {65535}, {2}), 0);
  EXPECT_EQ(quotient(uint16, "Sub", {1}, {2}), 32767);
  EXPECT_EQ(quotient(int16, "Mul", {300}, {300}), 81);
  EXPECT_EQ(quotient(uint32, "Sub", {0}, {2}), 2147483647);
  EXPECT_EQ(quotient(file::i32, "Add", {65535}, {2}), 32768);
}

TEST(Operators, RemaindersHaveASignOfTheirOwnChoice) {
  const auto of = [](std::int64_t fmod, int version) {
    file::GraphFile graph;
    graph.input("a", Shape{4}).input("b", Shape{4}).node("Mod", {"a", "b"}, {"y"}, {file::attribute("fmod", fmod)});
    return file::results(graph.output("y"), {{"a", Numbers{5.5, -5.5, 5.5, -6}}, {"b", Numbers{2, 2, -2, 2}}}, version)
        .front();
  };
  EXPECT_EQ(of(1, 13), (Elements{1.5, -1.5, 1.5, 0}));
  EXPECT_EQ(of(0, 28), (Elements{1.5, 0.5, -0.5, 0}));
  EXPECT_TRUE(contains(refusal([&] { of(0, 13); }), "fmod is not 1, for floating point"));
}

TEST(Operators, BitsOfIntegers) {
  const auto of = [](const char* operation, int type, const Numbers& a) {
    file::GraphFile graph;
    graph.input("a", Shape{std::int64_t(a.size())}, type).node(operation, {"a"}, {"y"});
    return file::results(graph.output("y"), {{"a", a}}, 18).front();
  };
  const int uint16 = 4;
  EXPECT_EQ(of("BitwiseNot", file::i32, {0, 5, -1}), (Elements{-1, -6, 0}));
  EXPECT_EQ(of("BitwiseNot", file::u8, {0, 5}), (Elements{255, 250}));
  EXPECT_EQ(of("BitwiseNot", uint16, {0, 5}), (Elements{65535, 65530}));
}

// Against formulas of the loss, with plain loops.
TEST(Operators, LossesOfClasses) {
  const Numbers scores = drawn({2, 3, 2}, 4), weights = {0.5, 2, 3}, places = {0, 2, 1, -1};
  const auto loss = [&](const std::string& reduction, bool weighted, bool is_entropy) {
    file::GraphFile graph;
    graph.input("x", {2, 3, 2}).input("at", {2, 2}, file::i64).input("w", {3});
    std::vector<std::string> operands = {"x", "at"};
    if (weighted) operands.push_back("w");
    graph.node(is_entropy ? "SoftmaxCrossEntropyLoss" : "NegativeLogLikelihoodLoss", operands, {"y"},
               {file::attribute("reduction", reduction.c_str()), file::attribute("ignore_index", std::int64_t(-1))});
    return file::results(graph.output("y"), {{"x", scores}, {"at", places}, {"w", weights}}, 13).front();
  };
  for (const bool weighted : {false, true})
    for (const bool is_entropy : {false, true}) {
      double sum = 0, weight = 0;
      Numbers each;
      for (std::size_t n = 0; n < 2; ++n)
        for (std::size_t d = 0; d < 2; ++d) {
          const double place = places[2 * n + d];
          double exponentials = 0;
          for (std::size_t c = 0; c < 3; ++c) exponentials += std::exp(scores[6 * n + 2 * c + d]);
          const double w = place < 0 ? 0 : weighted ? weights[std::size_t(place)] : 1;
          const double x = place < 0 ? 0 : scores[6 * n + 2 * std::size_t(place) + d];
          each.push_back(w * ((is_entropy ? std::log(exponentials) : 0) - x));
          sum += each.back(), weight += w;
        }
      const Elements none = loss("none", weighted, is_entropy);
      for (std::size_t e = 0; e < 4; ++e) EXPECT_NEAR(none[e], each[e], 1e-5);
      EXPECT_NEAR(loss("sum", weighted, is_entropy)[0], sum, 1e-5);
      EXPECT_NEAR(loss("mean", weighted, is_entropy)[0], sum / weight, 1e-5);
    }
}

TEST(Operators, DeformableConvolutionRefusesAnotherMask) {
  file::GraphFile graph;
  graph.input("x", {1, 1, 4, 4}).input("w", {1, 1, 2, 2}).input("o", {1, 8, 3, 3}).input("b", {1}).input("m", {4});
  graph.node("DeformConv", {"x", "w", "o", "b", "m"}, {"y"}).output("y");
  EXPECT_TRUE(contains(refusal([&] { folded(file::read(graph, 19), "m.onnx"); }), "its mask is [4], its offsets"));
}

// Against plain loops: two groups of weights, two of offsets, pads, strides and a mask.
TEST(Operators, DeformableConvolution) {
  const std::int64_t channels = 4, rows = 5, columns = 6, outputs = 2, window = 2, strides[] = {2, 1};
  const std::int64_t pads[] = {1, 0}, result_rows = 3, result_columns = 5, taps = window * window, parts = 2;
  const Numbers x = drawn({channels, rows, columns}, 1), weight = drawn({outputs, 2, window, window}, 2),
                offset = drawn({parts * taps * 2, result_rows, result_columns}, 3),
                mask = drawn({parts * taps, result_rows, result_columns}, 4), bias = {0.5, -1};
  file::GraphFile graph;
  graph.input("x", {1, channels, rows, columns}).input("w", {outputs, 2, window, window}).input("b", {outputs});
  graph.input("o", {1, parts * taps * 2, result_rows, result_columns});
  graph.input("m", {1, parts * taps, result_rows, result_columns});
  graph.node("DeformConv", {"x", "w", "o", "b", "m"}, {"y"},
             {file::attribute("group", std::int64_t(2)), file::attribute("offset_group", parts),
              file::attribute("strides", List{2, 1}), file::attribute("pads", List{1, 0, 0, 0})});
  const Elements is =
      file::results(graph.output("y"), {{"x", x}, {"w", weight}, {"o", offset}, {"b", bias}, {"m", mask}}, 19).front();
  const auto element = [&](std::int64_t c, std::int64_t i, std::int64_t j) {
    return i < 0 || j < 0 || i >= rows || j >= columns ? 0 : x[std::size_t((c * rows + i) * columns + j)];
  };
  ASSERT_EQ(is.size(), std::size_t(outputs * result_rows * result_columns));
  for (std::int64_t o = 0; o < outputs; ++o)
    for (std::int64_t i = 0; i < result_rows; ++i)
      for (std::int64_t j = 0; j < result_columns; ++j) {
        double sum = bias[std::size_t(o)];
        for (std::int64_t c = 0; c < 2; ++c)
          for (std::int64_t tap = 0; tap < taps; ++tap) {
            const std::int64_t channel = 2 * o + c, part = channel / 2;
            const auto at = [&](std::int64_t plane) {
              return std::size_t((plane * result_rows + i) * result_columns + j);
            };
            const double y = double(i * strides[0] - pads[0] + tap / window) + offset[at((part * taps + tap) * 2)];
            const double z = double(j * strides[1] - pads[1] + tap % window) + offset[at((part * taps + tap) * 2 + 1)];
            const std::int64_t y0 = std::int64_t(std::floor(y)), z0 = std::int64_t(std::floor(z));
            const double u = y - double(y0), v = z - double(z0);
            const double taken = (1 - u) * ((1 - v) * element(channel, y0, z0) + v * element(channel, y0, z0 + 1)) +
                                 u * ((1 - v) * element(channel, y0 + 1, z0) + v * element(channel, y0 + 1, z0 + 1));
            sum += taken * mask[at(part * taps + tap)] * weight[std::size_t((o * 2 + c) * taps + tap)];
          }
        EXPECT_NEAR(is[std::size_t((o * result_rows + i) * result_columns + j)], sum, 1e-5);
      }
}

TEST(Operators, ReversesTheFirstSteps) {
  file::GraphFile graph;
  graph.input("x", Shape{3, 2}).input("lengths", Shape{2}, file::i64);
  graph.node("ReverseSequence", {"x", "lengths"}, {"y"}).output("y");
  EXPECT_EQ(file::results(graph, {{"x", Numbers{1, 2, 3, 4, 5, 6}}, {"lengths", Numbers{3, 2}}}).front(),
            (Elements{5, 4, 3, 2, 1, 6}));
}

TEST(Operators, CropsAndPadsAboutTheMiddle) {
  file::GraphFile graph;
  graph.input("x", Shape{2, 4}).integers("shape", {2}, {5, 1});
  graph.node("CenterCropPad", {"x", "shape"}, {"y"}).output("y");
  EXPECT_EQ(file::results(graph, {{"x", Numbers{1, 2, 3, 4, 5, 6, 7, 8}}}, 18).front(), (Elements{0, 2, 6, 0, 0}));
}

TEST(Operators, ColumnsToImage) {
  for (const std::int64_t stride : {1, 2}) {
    const std::int64_t h = 4, w = 5, r = 2, s = 3, dilation = 3 - stride, channels = 2;
    const std::int64_t rows = (h + 2 - dilation * (r - 1) - 1) / stride + 1;  // pads 1, 0 and 1, 1
    const std::int64_t columns = (w + 1 - dilation * (s - 1) - 1) / stride + 1;
    const Shape shape = {1, channels * r * s, rows * columns};
    const Numbers x = drawn(shape, 3);
    Numbers y(std::size_t(channels * h * w));
    for (std::int64_t k = 0; k < shape[1]; ++k)
      for (std::int64_t l = 0; l < shape[2]; ++l) {
        const std::int64_t p = l / columns * stride + k / s % r * dilation - 1;
        const std::int64_t q = l % columns * stride + k % s * dilation;
        if (p >= 0 && p < h && q >= 0 && q < w)
          y[std::size_t((k / (r * s) * h + p) * w + q)] += x[std::size_t(k * shape[2] + l)];
      }
    file::GraphFile graph;
    graph.input("x", shape).integers("image", {2}, {h, w}).integers("block", {2}, {r, s});
    graph.node("Col2Im", {"x", "image", "block"}, {"y"},
               {file::attribute("strides", List{stride, stride}),
                file::attribute("dilations", List{dilation, dilation}), file::attribute("pads", List{1, 0, 1, 1})});
    expect_near(file::results(graph.output("y"), {{"x", x}}, 18).front(), y, "stride " + std::to_string(stride));
  }
}

TEST(Operators, PlacesOfMaxima) {
  file::GraphFile graph;
  graph.input("x", Shape{1, 2, 2, 3});
  graph.node("MaxPool", {"x"}, {"y", "places"},
             {file::attribute("kernel_shape", List{2, 2}), file::attribute("pads", List{1, 1, 0, 0})});
  graph.output("places");
  // 1 5 5   0 0 0: the first of equal ones, row by row
  // 7 2 5   0 9 0
  const Elements places = file::results(graph, {{"x", Numbers{1, 5, 5, 7, 2, 5, 0, 0, 0, 0, 9, 0}}}).front();
  EXPECT_EQ(places, (Elements{0, 1, 1, 3, 3, 1, 6, 6, 7, 6, 10, 10}));
}

// Both directions, an initial state, a step at a time.
TEST(Operators, RecurrentCells) {
  constexpr std::size_t steps = 3, in = 2, units = 2, batch = 2;
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  for (const std::string operation : {"LSTM", "GRU", "GRU linear", "RNN"}) {
    const std::size_t gates = operation == "LSTM" ? 4 : operation == "RNN" ? 1 : 3;
    const bool is_linear = operation == "GRU linear";
    std::vector<Shape> shapes = {{steps, batch, in},
                                 {2, std::int64_t(gates * units), in},
                                 {2, std::int64_t(gates * units), units},
                                 {2, std::int64_t(2 * gates * units)},
                                 {2, batch, units}};
    if (operation == "LSTM") shapes.push_back({2, batch, units});
    std::vector<Numbers> data;
    file::GraphFile graph;
    std::map<std::string, Elements> inputs;
    std::vector<std::string> names;
    for (const Shape& shape : shapes) {
      if (names.size() == 4) names.emplace_back();  // lengths of sequences
      data.push_back(drawn(shape, unsigned(data.size()) + 40));
      for (double& number : data.back()) number /= 4;
      names.push_back("x" + std::to_string(names.size()));
      graph.input(names.back(), shape);
      inputs[names.back()] = data.back();
    }
    std::vector<std::string> attributes = {file::attribute("direction", "bidirectional"),
                                           file::attribute("hidden_size", int(units))};
    if (is_linear) attributes.push_back(file::attribute("linear_before_reset", 1));
    graph.node(operation.substr(0, operation.find(' ')), names, {"y", "last"}, attributes).output("y").output("last");
    Numbers y(steps * 2 * batch * units), last(2 * batch * units);
    for (std::size_t d = 0; d < 2; ++d)
      for (std::size_t b = 0; b < batch; ++b) {
        const auto state = [&](std::size_t which) {
          const double* const begin = data[which].data() + (d * batch + b) * units;
          return Numbers(begin, begin + units);
        };
        Numbers h = state(4), c = operation == "LSTM" ? state(5) : Numbers();
        for (std::size_t s = 0; s < steps; ++s) {
          const std::size_t t = d == 0 ? s : steps - 1 - s;
          const auto bias = [&](std::size_t row) { return data[3][d * 2 * gates * units + row]; };
          const auto of_input = [&](std::size_t row) {
            double sum = bias(row);
            for (std::size_t l = 0; l < in; ++l)
              sum += data[0][(t * batch + b) * in + l] * data[1][(d * gates * units + row) * in + l];
            return sum;
          };
          const auto of_state = [&](std::size_t row, const Numbers& from) {
            double sum = bias(gates * units + row);
            for (std::size_t l = 0; l < units; ++l) sum += from[l] * data[2][(d * gates * units + row) * units + l];
            return sum;
          };
          Numbers reset(units), next(units);
          for (std::size_t u = 0; u < units && gates == 3; ++u)
            reset[u] = sigmoid(of_input(units + u) + of_state(units + u, h));
          Numbers scaled = h;
          for (std::size_t u = 0; u < units; ++u) scaled[u] *= reset[u];
          for (std::size_t u = 0; u < units; ++u) {
            const auto gate = [&](std::size_t g) { return of_input(g * units + u) + of_state(g * units + u, h); };
            if (gates == 1) next[u] = std::tanh(gate(0));
            if (gates == 3) {
              const std::size_t row = 2 * units + u;
              const double inner = is_linear ? reset[u] * of_state(row, h) : of_state(row, scaled);
              next[u] = (1 - sigmoid(gate(0))) * std::tanh(of_input(row) + inner) + sigmoid(gate(0)) * h[u];
            }
            if (gates == 4) {
              c[u] = sigmoid(gate(2)) * c[u] + sigmoid(gate(0)) * std::tanh(gate(3));
              next[u] = sigmoid(gate(1)) * std::tanh(c[u]);
            }
          }
          h = next;
          for (std::size_t u = 0; u < units; ++u) y[((t * 2 + d) * batch + b) * units + u] = h[u];
        }
        for (std::size_t u = 0; u < units; ++u) last[(d * batch + b) * units + u] = h[u];
      }
    const std::vector<Elements> results = file::results(graph, inputs);
    expect_near(results[0], y, operation);
    expect_near(results[1], last, operation + ", the last state");
  }
}

// Sequences end at lengths of their own, in a layer of few steps and in one of many. h = tanh(x + h / 2), one unit.
TEST(Operators, RecurrentLayersOfSequencesOfSeveralLengths) {
  for (const std::size_t steps : {4, 150})
    for (const bool is_known : {false, true}) {
      constexpr std::size_t batch = 3;
      const List lengths = {std::int64_t(steps), std::int64_t(steps / 2), 0};
      const Numbers x = drawn({std::int64_t(steps), batch, 1}, 7), begin = {0.5, -1, 0.25, 1, 0.75, -0.5};
      file::GraphFile graph;
      graph.input("x", {std::int64_t(steps), batch, 1}).input("begin", {2, batch, 1});
      graph.weight("w", {2, 1, 1}, {1, 1}).weight("r", {2, 1, 1}, {0.5f, 0.5f});
      const std::vector<std::int32_t> numbers(lengths.begin(), lengths.end());
      if (is_known)
        graph.weight_of(file::tensor("lengths", {batch}, file::i32, file::raw(numbers)));
      else
        graph.input("lengths", {batch}, file::i32);
      graph.node("RNN", {"x", "w", "r", "", "lengths", "begin"}, {"y", "last"},
                 {file::attribute("direction", "bidirectional"), file::attribute("hidden_size", 1)});
      graph.output("y").output("last");
      Numbers y(steps * 2 * batch), last(2 * batch);
      for (std::size_t d = 0; d < 2; ++d)
        for (std::size_t b = 0; b < batch; ++b) {
          const std::size_t length = std::size_t(lengths[b]);
          double h = begin[d * batch + b];
          for (std::size_t s = 0; s < length; ++s) {
            const std::size_t t = d == 0 ? s : length - 1 - s;
            h = std::tanh(x[t * batch + b] + h / 2);
            y[(t * 2 + d) * batch + b] = h;
          }
          last[d * batch + b] = length == 0 ? 0 : h;
        }
      std::map<std::string, Elements> inputs = {{"x", x}, {"begin", begin}};
      if (!is_known) inputs["lengths"] = Numbers(lengths.begin(), lengths.end());
      const std::string what = std::to_string(steps) + " steps";
      const std::vector<Elements> results = file::results(graph, inputs);
      expect_near(results[0], y, what);
      expect_near(results[1], last, what + ", the last state");
    }
}

// Layers of many steps are consecutive layers of few: each step is what it would be alone.
TEST(Operators, RecurrentLayersOfManySteps) {
  constexpr std::int64_t steps = 100, units = 3;
  const auto layer = [&](const std::string& operation, std::int64_t from, std::int64_t to, const std::string& before) {
    const std::int64_t gates = operation == "LSTM" ? 4 : 3;
    file::GraphFile graph;
    const auto weights = [&](const Shape& shape, unsigned seed) {
      const Numbers all = drawn(shape, seed);
      std::vector<float> numbers(all.begin(), all.end());
      for (float& number : numbers) number /= 4;
      return numbers;
    };
    graph.input("x", {1, to - from, 2}).input("h", {1, 1, units}).input("c", {1, 1, units});
    graph.weight("w", {1, gates * units, 2}, weights({gates * units, 2}, 1));
    graph.weight("r", {1, gates * units, units}, weights({gates * units, units}, 2));
    std::vector<std::string> operands = {"x", "w", "r", "", "", "h"}, results = {"y", "last_h"};
    if (operation == "LSTM") operands.emplace_back("c"), results.emplace_back("last_c");
    graph.node(operation, operands, results,
               {file::attribute("hidden_size", units), file::attribute("layout", 1),
                file::attribute("direction", before.c_str())});
    for (const std::string& result : results) graph.output(result);
    return graph;
  };
  const Numbers x = drawn({steps, 2}, 3);
  for (const std::string operation : {"LSTM", "GRU"})
    for (const std::string direction : {"forward", "reverse"}) {
      const Numbers begin = {0.5, -0.25, 1};
      const auto all = file::results(layer(operation, 0, steps, direction), {{"x", x}, {"h", begin}, {"c", begin}});
      std::vector<Elements> one = {{}, begin, begin};
      Numbers y(steps * units);
      for (std::int64_t s = 0; s < steps; ++s) {
        const std::int64_t t = direction == "forward" ? s : steps - 1 - s;
        const Elements here = {x[std::size_t(2 * t)], x[std::size_t(2 * t + 1)]};
        one = file::results(layer(operation, t, t + 1, direction), {{"x", here}, {"h", one[1]}, {"c", one.back()}});
        for (std::int64_t u = 0; u < units; ++u) y[std::size_t(t * units + u)] = one[0][std::size_t(u)];
      }
      expect_near(all[0], y, operation + " " + direction);
      for (std::size_t state = 1; state < all.size(); ++state)
        for (std::size_t u = 0; u < units; ++u) EXPECT_NEAR(all[state][u], one[state][u], 1e-5) << operation << u;
    }
}

// A layer of one unit without weights of its input: the functions alone, each direction with its own.
TEST(Operators, RecurrentCellsOfOtherFunctions) {
  const auto sigmoid = [](double v, double a, double b) { return std::clamp(a * v + b, 0.0, 1.0); };
  const std::vector<double> x = {0.5, -1, 2};
  file::GraphFile graph;
  graph.input("x", Shape{3, 1, 1})
      .weight("w", {2, 4, 1}, {1, 1, 1, 1, 1, 1, 1, 1})
      .weight("r", {2, 4, 1}, std::vector<float>(8));
  graph
      .node("LSTM", {"x", "w", "r"}, {"y"},
            {file::attribute("direction", "bidirectional"), file::attribute("hidden_size", 1),
             file::attribute("activations", std::vector<std::string>{"HardSigmoid", "Relu", "LeakyRelu", "HardSigmoid",
                                                                     "Elu", "Tanh"}),
             file::attribute("activation_alpha", std::vector<double>{0.25, 0.5, 0.125, 2}),
             file::attribute("activation_beta", std::vector<double>{0.5, 0.25})})
      .output("y");
  Numbers y(6);
  double c = 0;
  for (std::size_t t = 0; t < 3; ++t) {
    const double f = sigmoid(x[t], 0.25, 0.5);
    c = f * c + f * std::max(x[t], 0.0);
    y[2 * t] = f * (c < 0 ? 0.5 * c : c);
  }
  c = 0;
  for (std::size_t t = 3; t-- > 0;) {
    const double f = sigmoid(x[t], 0.125, 0.25);
    c = f * c + f * (x[t] < 0 ? 2 * std::expm1(x[t]) : x[t]);
    y[2 * t + 1] = f * std::tanh(c);
  }
  expect_near(file::results(graph, {{"x", x}}).front(), y, "LSTM");

  file::GraphFile simple;
  simple.input("x", Shape{3, 1, 1}).weight("w", {1, 1, 1}, {1}).weight("r", {1, 1, 1}, {0.5f});
  simple
      .node("RNN", {"x", "w", "r"}, {"y"},
            {file::attribute("hidden_size", 1), file::attribute("activations", std::vector<std::string>{"Relu"})})
      .output("y");
  expect_near(file::results(simple, {{"x", x}}).front(), {0.5, 0, 2}, "RNN");
  file::GraphFile wrong;
  wrong.input("x", Shape{3, 1, 1}).weight("w", {1, 1, 1}, {1}).weight("r", {1, 1, 1}, {0.5f});
  wrong
      .node("RNN", {"x", "w", "r"}, {"y"},
            {file::attribute("hidden_size", 1), file::attribute("activations", std::vector<std::string>{"Swish"})})
      .output("y");
  EXPECT_TRUE(contains(refusal([&] { return folded(file::read(wrong), "m.onnx"); }), "activation 'Swish'"));
}

TEST(Operators, ReductionsAndPositions) {
  const Numbers x = {1, 5, 5, -2, 0, 3};
  const auto axis_1 = [&](const std::string& operation, std::vector<std::string> attributes = {}) {
    attributes.push_back(file::attribute("keepdims", 0));
    if (operation.starts_with("Arg"))
      attributes.push_back(file::attribute("axis", 1));
    else
      attributes.push_back(file::attribute("axes", List{1}));
    return result_of({operation, {{2, 3}}, attributes, 12}, {x});
  };
  expect_near(axis_1("ReduceSum"), {11, 1}, "sum");
  expect_near(axis_1("ReduceMean"), {11.0 / 3, 1.0 / 3}, "mean");
  expect_near(axis_1("ReduceMax"), {5, 3}, "max");
  expect_near(axis_1("ReduceL2"), {std::sqrt(51.0), std::sqrt(13.0)}, "L2");
  expect_near(axis_1("ReduceLogSumExp"),
              {std::log(std::exp(1.0) + 2 * std::exp(5.0)), std::log(std::exp(-2.0) + 1 + std::exp(3.0))},
              "log of sum of powers");
  expect_near(axis_1("ReduceProd"), {25, 0}, "product");
  for (const Shape& shape : {Shape{2, 5, 3}, Shape{1, 7, 2}, Shape{4, 1, 1}}) {
    const Numbers all = drawn(shape, 9);
    Numbers products(std::size_t(shape[1]), 1.0);
    for (std::size_t e = 0; e < all.size(); ++e) products[e / std::size_t(shape[2]) % products.size()] *= all[e];
    expect_near(result_of({"ReduceProd", {shape}, {file::attribute("axes", List{0, 2})}, 12}, {all}), products,
                "products of two axes");
  }
  expect_near(axis_1("ArgMax"), {1, 2}, "the first of the largest");
  expect_near(axis_1("ArgMax", {file::attribute("select_last_index", 1)}), {2, 2}, "the last of them");
  expect_near(result_of({"ReduceSum", {{2, 3}}, {}, 12}, {x}), {12}, "all axes");
}

TEST(Operators, WhatOnnxDoesNotAllowIsNamed) {
  const auto message = [](const One& one) { return refusal([&] { return result_of(one); }); };
  EXPECT_EQ(message({"MatMul", {{2, 3}, {4, 2}}, {}}),
            "m.onnx: node 0 (MatMul): [2,3] times [4,2]: inner extents differ");
  EXPECT_EQ(message({"Add", {{2, 3}, {2}}, {}}), "m.onnx: node 0 (Add): shapes [2,3] and [2] do not broadcast");
  EXPECT_EQ(message({"Conv", {{1, 3, 8, 8}, {4, 2, 3, 3}}, {}}),
            "m.onnx: node 0 (Conv): its weights [4,2,3,3] in 1 groups do not fit its input [1,3,8,8]");
  EXPECT_EQ(message({"Conv", {{1, 1, 2}, {1, 1, 3}}, {}}),
            "m.onnx: node 0 (Conv): a window of 3 is larger than its padded input of 2");
  EXPECT_EQ(message({"Softmax", {{2, 2}}, {file::attribute("axis", 5)}}),
            "m.onnx: node 0 (Softmax): axis 5 of 2 dimensions");
  EXPECT_EQ(message({"Relu", {{2}, {2}}, {}}), "m.onnx: node 0 (Relu): has 2 operands");
  EXPECT_EQ(message({"Flatten", {{2}}, {file::attribute("axis", "x")}}),
            "m.onnx: node 0 (Flatten): attribute 'axis' is not an integer");
}

// A layer of a network is the workload that a person would name: what was found for one serves the other.
TEST(Operators, LayersHaveTheKeysOfNamedOperators) {
  const auto key = [](const One& one, bool has_weights) {
    file::GraphFile graph;
    graph.input("x0", one.shapes[0]);
    if (one.shapes.size() > 1 && has_weights)
      graph.weight("x1", one.shapes[1], std::vector<float>(std::size_t(elements_of(one.shapes[1])), 1));
    else if (one.shapes.size() > 1)
      graph.input("x1", one.shapes[1]);
    graph
        .node(one.operation,
              one.shapes.size() > 1 ? std::vector<std::string>{"x0", "x1"} : std::vector<std::string>{"x0"}, {"y"},
              one.attributes)
        .output("y");
    const Graph ready = folded(file::read(graph), "m.onnx");
    const auto results = results_of(ready, ready.nodes[0], *operands_of(ready, ready.nodes[0]), "m.onnx");
    return graft::codegen::parse_workload(graft::codegen::to_text(*results->front().computation)).key();
  };
  const auto named = [](const std::string& text) { return graft::codegen::parse_workload(text).key(); };
  EXPECT_EQ(key({"Conv",
                 {{1, 8, 14, 14}, {4, 8, 3, 3}},
                 {file::attribute("strides", List{2, 2}), file::attribute("pads", List{1, 1, 1, 1})}},
                true),
            named("conv2d(c=8,h=14,w=14,k=4,r=3,s=3,stride=2,pad=1)"));
  EXPECT_EQ(key({"Conv", {{1, 8, 14, 14}, {4, 8, 1, 1}}, {}}, true), named("conv2d(c=8,h=14,w=14,k=4,r=1,s=1)"));
  EXPECT_EQ(key({"MatMul", {{5, 6}, {6, 7}}, {}}, false), named("matmul(m=5,n=7,k=6)"));
  EXPECT_EQ(key({"MatMul", {{2, 5, 6}, {2, 6, 7}}, {}}, false), named("batch_matmul(b=2,m=5,n=7,k=6)"));
  EXPECT_EQ(key({"MaxPool",
                 {{1, 3, 8, 8}},
                 {file::attribute("kernel_shape", List{2, 2}), file::attribute("strides", List{2, 2})}},
                false),
            named("max_pool2d(c=3,h=8,w=8,r=2,s=2,stride=2)"));
  EXPECT_EQ(key({"Softmax", {{4, 9}}, {}}, false), named("softmax(m=4,n=9)"));
}

TEST(Operators, TheTableIsWhole) {
  const std::vector<std::string> known = known_operators();
  EXPECT_GT(known.size(), 100u);
  EXPECT_TRUE(is_known("Conv"));
  EXPECT_FALSE(is_known("ai.onnx.ml.Scaler"));
}

}  // namespace
