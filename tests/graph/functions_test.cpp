// Functions that a model defines, and operators that others compute, against plain loops.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "graph/operators.h"
#include "graph/plan.h"
#include "tests/graph/support/onnx_file.h"
#include "tests/graph/support/run_plan.h"
#include "tests/graph/support/small.h"
#include "tests/support/refusal.h"

namespace {

using namespace graft::graph;
using graft::codegen::contains;
using graft::codegen::Elements;
using graft::codegen::refusal;
using Numbers = std::vector<double>;

Numbers counted(std::size_t count, double step = 0.25, double first = -1) {
  Numbers numbers;
  for (std::size_t i = 0; i < count; ++i) numbers.push_back(first + step * double(i % 13));
  return numbers;
}

void expect_near(const Elements& is, const Numbers& should) {
  ASSERT_EQ(is.size(), should.size());
  for (std::size_t e = 0; e < should.size(); ++e)
    EXPECT_NEAR(is[e], should[e], 1e-6 * (1 + std::abs(should[e]))) << "element " << e;
}

// ---- functions ----

std::string reference_to(std::string_view name, std::string_view of) {
  return file::bytes(1, name) + file::integer(20, 1) + file::bytes(21, of);
}

struct Function {
  std::string name;
  std::vector<std::string> inputs, outputs, nodes, defaults = {};
  int version = 17;
  std::string bytes() const {
    std::string all = file::bytes(1, name) + file::bytes(10, "own");
    for (const std::string& input : inputs) all += file::bytes(4, input);
    for (const std::string& output : outputs) all += file::bytes(5, output);
    for (const std::string& node : nodes) all += file::bytes(7, node);
    for (const std::string& one : defaults) all += file::bytes(11, one);
    return file::bytes(25, all + file::bytes(9, file::integer(2, version)));
  }
};

Graph read_with(const file::GraphFile& graph, const std::vector<Function>& functions, int version = 17) {
  std::string model = graph.model(version);
  for (const Function& function : functions) model += function.bytes();
  return folded(parse_onnx(model, "m.onnx", ""), "m.onnx");
}

Elements output_of(const Graph& graph, const Numbers& x) {
  graft::base::Monitor nobody;
  return reference(graph, {{"x", x}}, "m.onnx", nobody).front();
}

TEST(Functions, AreComputedWhereTheyAreUsed) {
  const Function leaky{"Leaky",
                       {"a"},
                       {"b"},
                       {file::node_bytes("LeakyRelu", {"a"}, {"b"}, {reference_to("alpha", "slope")})},
                       {file::attribute("slope", 0.5)}};
  const Function twice{"Twice",
                       {"a"},
                       {"b", "c"},
                       {file::node_bytes("own.Leaky", {"a"}, {"t"}, {reference_to("slope", "s")}),
                        file::node_bytes("own.Leaky", {"t"}, {"b"}), file::node_bytes("Neg", {"t"}, {"c"})}};
  file::GraphFile graph;
  graph.input("x", {4}).node("own.Twice", {"x"}, {"y", ""}, {file::attribute("s", 0.25)}).output("y");
  expect_near(output_of(read_with(graph, {leaky, twice}), {-8, -1, 0, 3}), {-1, -0.125, 0, 3});
  // What is not given to the inner function has its default.
  file::GraphFile plain;
  plain.input("x", {2}).node("own.Twice", {"x"}, {"y", "z"}).output("z");
  expect_near(output_of(read_with(plain, {leaky, twice}), {-8, 2}), {4, -2});
}

TEST(Functions, HaveAVersionOfTheirOwn) {
  const auto function = [](int version) {
    return Function{"Soft", {"a"},  {"b"}, {file::node_bytes("Softmax", {"a"}, {"b"}, {file::attribute("axis", 1)})},
                    {},     version};
  };
  file::GraphFile graph;
  graph.input("x", {1, 2, 2}).node("own.Soft", {"x"}, {"y"}).output("y");
  expect_near(output_of(read_with(graph, {function(11)}), {0, 0, 0, 0}), {0.25, 0.25, 0.25, 0.25});
  expect_near(output_of(read_with(graph, {function(13)}), {0, 0, 0, 0}), {0.5, 0.5, 0.5, 0.5});
}

TEST(Functions, SeeNothingAroundThem) {
  file::GraphFile branch;
  branch.node("Add", {"a", "w"}, {"r"}).output("r");
  const Function function{"Chosen",
                          {"a", "w", "c"},
                          {"b"},
                          {file::node_bytes("If", {"c"}, {"b"},
                                            {file::graph_attribute("then_branch", branch.content()),
                                             file::graph_attribute("else_branch", branch.content())})}};
  file::GraphFile graph;
  graph.input("x", {2}).weight("w", {2}, {1, 2});
  graph.weight_of(file::tensor("yes", {}, file::boolean, std::string(1, '\1')));
  file::GraphFile all = graph;
  all.node("own.Chosen", {"x", "w", "yes"}, {"y"}).output("y");
  expect_near(output_of(read_with(all, {function}), {10, 20}), {11, 22});
  file::GraphFile left_out = graph;
  left_out.node("own.Chosen", {"x", "", "yes"}, {"y"}).output("y");
  EXPECT_TRUE(contains(refusal([&] { read_with(left_out, {function}); }), "'w' is used in a graph within"));
}

TEST(Functions, ThatCannotBeReadAreRefused) {
  const auto said = [](const std::vector<Function>& functions, const std::string& operation,
                       const std::vector<std::string>& operands = {"x"}) {
    file::GraphFile graph;
    graph.input("x", {2}).node(operation, operands, {"y"}).output("y");
    return refusal([&] { read_with(graph, functions); });
  };
  const auto calls = [](const std::string& name, const std::string& other) {
    return Function{name, {"a"}, {"b"}, {file::node_bytes(other, {"a"}, {"b"})}};
  };
  EXPECT_TRUE(contains(said({calls("F", "own.G"), calls("G", "own.F")}, "own.F"), "uses itself"));
  EXPECT_TRUE(contains(said({calls("F", "Relu"), calls("F", "Relu")}, "own.F"), "function 'F': is there twice"));
  EXPECT_TRUE(
      contains(said({calls("F", "Relu")}, "own.F", {"x", "x"}), "has 2 operands and 1 result; it takes 1 and gives 1"));
  EXPECT_TRUE(contains(said({{"F", {"a"}, {"b"}, {file::node_bytes("Relu", {"x"}, {"b"})}}}, "own.F"),
                       "'x' is neither given nor computed"));
  EXPECT_TRUE(contains(said({}, "own.F"), "of the domain 'own'; export the model with"));
  file::GraphFile graph;
  graph.input("x", {2}).node("LeakyRelu", {"x"}, {"y"}, {reference_to("alpha", "slope")}).output("y");
  EXPECT_TRUE(contains(refusal([&] { read_with(graph, {}); }), "refers to one of a function, and is in none"));
  // Each doubles the one before.
  std::vector<Function> all = {calls("F0", "Relu")};
  for (int f = 1; f < 15; ++f) {
    const std::string inner = "own.F" + std::to_string(f - 1);
    all.push_back({"F" + std::to_string(f),
                   {"a"},
                   {"b"},
                   {file::node_bytes(inner, {"a"}, {"t0"}), file::node_bytes(inner, {"t0"}, {"t1"}),
                    file::node_bytes(inner, {"t1"}, {"b"})}});
  }
  EXPECT_TRUE(contains(said(all, "own.F14"), "has more than 200000 nodes"));
}

// ---- operators that others compute ----

struct One {
  std::string operation;
  std::vector<std::string> attributes;
  int version = 23;
};

// A graph of operands x0, x1, ...
Graph graph_of(const One& one, const std::vector<Shape>& shapes, std::size_t results = 1) {
  file::GraphFile graph;
  std::vector<std::string> names, outputs;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    names.push_back("x" + std::to_string(i));
    graph.input(names.back(), shapes[i]);
  }
  for (std::size_t r = 0; r < results; ++r) outputs.push_back("y" + std::to_string(r));
  graph.node(one.operation, names, outputs, one.attributes);
  for (const std::string& output : outputs) graph.output(output);
  return folded(file::read(graph, one.version, {}), "m.onnx");
}

std::vector<Elements> results_of(const One& one, const std::vector<Shape>& shapes, const std::vector<Numbers>& given,
                                 std::size_t results = 1) {
  std::map<std::string, Elements> inputs;
  for (std::size_t i = 0; i < given.size(); ++i) inputs["x" + std::to_string(i)] = given[i];
  graft::base::Monitor nobody;
  return reference(graph_of(one, shapes, results), inputs, "m.onnx", nobody);
}

// Queries [heads,length,size], keys [groups,total,size], values [groups,total,values]; `mask` is added.
struct Plain {
  std::int64_t heads = 4, groups = 2, length = 3, total = 5, size = 2, values = 3;
  Numbers results(const Numbers& q, const Numbers& k, const Numbers& v, const Numbers& mask, double scale,
                  double cap) const {
    Numbers y;
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t i = 0; i < length; ++i) {
        const std::int64_t g = h / (heads / groups);
        Numbers weights;
        double sum = 0;
        for (std::int64_t j = 0; j < total; ++j) {
          double score = 0;
          for (std::int64_t d = 0; d < size; ++d)
            score += q[std::size_t((h * length + i) * size + d)] * k[std::size_t((g * total + j) * size + d)];
          score *= scale;
          if (cap > 0) score = cap * std::tanh(score / cap);
          weights.push_back(std::exp(score + mask[std::size_t(i * total + j)]));
          sum += weights.back();
        }
        for (std::int64_t d = 0; d < values; ++d) {
          double value = 0;
          for (std::int64_t j = 0; j < total; ++j)
            value += weights[std::size_t(j)] / (sum == 0 ? 1 : sum) * v[std::size_t((g * total + j) * values + d)];
          y.push_back(value);
        }
      }
    return y;
  }
};

TEST(Compositions, AttentionWithGroupsOfHeads) {
  const Plain plain;
  const Numbers q = counted(24), k = counted(20, 0.5), v = counted(30, 0.125), none(15, 0);
  Numbers causal = none, masked = none;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 5; ++j) {
      if (j > i) causal[std::size_t(i * 5 + j)] = -INFINITY;
      if (i == 1 || j == 2) masked[std::size_t(i * 5 + j)] = -INFINITY;  // a row with nothing to attend to
    }
  const std::vector<Shape> shapes = {{1, 4, 3, 2}, {1, 2, 5, 2}, {1, 2, 5, 3}};
  const double scale = 1 / std::sqrt(2.0);
  expect_near(results_of({"Attention", {}}, shapes, {q, k, v})[0], plain.results(q, k, v, none, scale, 0));
  expect_near(results_of({"Attention", {file::attribute("is_causal", 1), file::attribute("softcap", 1.5)}}, shapes,
                         {q, k, v})[0],
              plain.results(q, k, v, causal, scale, 1.5));
  std::vector<Shape> with_mask = shapes;
  with_mask.push_back({3, 5});
  expect_near(results_of({"Attention", {file::attribute("scale", 0.5)}}, with_mask, {q, k, v, masked})[0],
              plain.results(q, k, v, masked, 0.5, 0));
}

TEST(Compositions, AttentionIsOneKernelAfterTheProductOfKeys) {
  const Graph graph =
      graph_of({"Attention", {file::attribute("is_causal", 1)}}, {{1, 4, 16, 8}, {1, 4, 16, 8}, {1, 4, 16, 8}});
  const Graph written = [] {
    file::GraphFile plain;
    plain.input("x0", {1, 4, 16, 8}).input("x1", {1, 4, 16, 8}).input("x2", {1, 4, 16, 8});
    plain.weight("scale", {}, {float(1 / std::sqrt(8.0))}).weight("mask", {16, 16}, std::vector<float>(256, 0.5f));
    plain.node("Transpose", {"x1"}, {"t"}, {file::attribute("perm", std::vector<std::int64_t>{0, 1, 3, 2})})
        .node("MatMul", {"x0", "t"}, {"p"})
        .node("Mul", {"p", "scale"}, {"s"})
        .node("Add", {"s", "mask"}, {"m"})
        .node("Softmax", {"m"}, {"w"})
        .node("MatMul", {"w", "x2"}, {"y"})
        .output("y");
    return folded(file::read(plain, 17, {}), "m.onnx");
  }();
  const auto kernels = [](const Graph& of) {
    return planned(of, graft::graph::vector_target(), "m.onnx").kernels.size();
  };
  EXPECT_EQ(kernels(graph), kernels(written));
}

TEST(Compositions, NormalisationsByTheMeanSquare) {
  const Numbers x = counted(8), g = {1, 2, -1, 0.5}, s = counted(8, 0.5);
  const auto expected = [&](const Numbers& sum, double epsilon) {
    Numbers y;
    for (std::size_t row = 0; row < 2; ++row) {
      double squares = 0;
      for (std::size_t c = 0; c < 4; ++c) squares += sum[row * 4 + c] * sum[row * 4 + c] / 4;
      for (std::size_t c = 0; c < 4; ++c) y.push_back(sum[row * 4 + c] / std::sqrt(squares + epsilon) * g[c]);
    }
    return y;
  };
  const std::string epsilon = file::attribute("epsilon", 0.5);
  expect_near(results_of({"RMSNormalization", {epsilon}}, {{2, 4}, {4}}, {x, g})[0], expected(x, 0.5));
  expect_near(results_of({"SimplifiedLayerNormalization", {epsilon}, 17}, {{2, 4}, {4}}, {x, g})[0], expected(x, 0.5));
  Numbers sum = x;
  for (std::size_t i = 0; i < 8; ++i) sum[i] += s[i];
  // In a file of an older version than the operators that compute it.
  expect_near(results_of({"com.microsoft.SkipSimplifiedLayerNormalization", {epsilon}, 11}, {{2, 4}, {2, 4}, {4}},
                         {x, s, g})[0],
              expected(sum, 0.5));
}

TEST(Compositions, PositionsTurnPairs) {
  const Numbers x = counted(8), cosine = {0.5, 0.25, 1, 0}, sine = {0, 1, 0.75, -0.5};
  Numbers halves, pairs;
  for (std::size_t row = 0; row < 2; ++row) {
    const double* const at = x.data() + row * 4;
    const double c[] = {cosine[row * 2], cosine[row * 2 + 1]}, s[] = {sine[row * 2], sine[row * 2 + 1]};
    for (int half = 0; half < 2; ++half)
      for (int p = 0; p < 2; ++p)
        halves.push_back(half == 0 ? at[p] * c[p] - at[p + 2] * s[p] : at[p] * s[p] + at[p + 2] * c[p]);
    for (int p = 0; p < 2; ++p)
      for (int half = 0; half < 2; ++half)
        pairs.push_back(half == 0 ? at[2 * p] * c[p] - at[2 * p + 1] * s[p] : at[2 * p] * s[p] + at[2 * p + 1] * c[p]);
  }
  const std::vector<Shape> shapes = {{1, 1, 2, 4}, {1, 2, 2}, {1, 2, 2}};
  expect_near(results_of({"RotaryEmbedding", {}}, shapes, {x, cosine, sine})[0], halves);
  expect_near(results_of({"RotaryEmbedding", {file::attribute("interleaved", 1)}}, shapes, {x, cosine, sine})[0],
              pairs);
}

// For operands of other types than f32, by name; results as numbers.
Numbers result_of(const One& one, const std::vector<std::pair<Shape, int>>& operands,
                  const std::vector<Numbers>& given) {
  file::GraphFile graph;
  std::vector<std::string> names;
  std::map<std::string, Elements> inputs;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    names.push_back(given[i].empty() ? "" : "x" + std::to_string(i));
    if (names.back().empty()) continue;
    graph.input(names.back(), operands[i].first, operands[i].second);
    inputs[names.back()] = given[i];
  }
  graph.node(one.operation, names, {"y"}, one.attributes).output("y");
  const Elements is = file::results(graph, inputs, one.version).front();
  Numbers numbers;
  for (std::size_t e = 0; e < is.size(); ++e) numbers.push_back(is[e]);
  return numbers;
}

TEST(Compositions, Activations) {
  const Numbers x = counted(6), bias = {0.5, -1, 2};
  const auto tangent = [](double v) {
    return 0.5 * v * (1 + std::tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
  };
  Numbers exact, fast, quick, swish;
  for (std::size_t i = 0; i < 6; ++i) {
    const double v = x[i] + bias[i % 3];
    exact.push_back(0.5 * v * (1 + std::erf(v / std::sqrt(2.0))));
    fast.push_back(tangent(v));
    quick.push_back(x[i] / (1 + std::exp(double(-1.702F) * x[i])));
    swish.push_back(x[i] / (1 + std::exp(-0.5 * x[i])));
  }
  expect_near(results_of({"com.microsoft.BiasGelu", {}}, {{2, 3}, {3}}, {x, bias})[0], exact);
  expect_near(results_of({"com.microsoft.FastGelu", {}}, {{2, 3}, {3}}, {x, bias})[0], fast);
  expect_near(results_of({"com.microsoft.QuickGelu", {}}, {{2, 3}}, {x})[0], quick);
  expect_near(results_of({"Swish", {file::attribute("alpha", 0.5)}, 24}, {{2, 3}}, {x})[0], swish);
}

TEST(Compositions, ProductsOfTurnedMatrices) {
  // a[l][b][i], w[b][j][l].
  const Numbers a = counted(12), w = counted(16, 0.5);
  Numbers expected;
  for (std::size_t b = 0; b < 2; ++b)
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t j = 0; j < 4; ++j) {
        double sum = 0;
        for (std::size_t l = 0; l < 2; ++l) sum += a[(l * 2 + b) * 3 + i] * w[(b * 4 + j) * 2 + l];
        expected.push_back(0.5 * sum);
      }
  expect_near(results_of({"com.microsoft.FusedMatMul",
                          {file::attribute("alpha", 0.5), file::attribute("transA", 1), file::attribute("transB", 1),
                           file::attribute("transBatchA", 1)}},
                         {{2, 2, 3}, {2, 4, 2}}, {a, w})[0],
              expected);
}

TEST(Compositions, WindowsWithMore) {
  const Numbers x = counted(4), w = {2, -1}, bias = {0.5, 0}, other = counted(8, 0.5);
  Numbers expected;
  for (std::size_t k = 0; k < 2; ++k)
    for (std::size_t p = 0; p < 4; ++p) expected.push_back(std::max(0.0, x[p] * w[k] + bias[k] + other[k * 4 + p]));
  expect_near(results_of({"com.microsoft.FusedConv", {file::attribute("activation", "Relu")}},
                         {{1, 1, 2, 2}, {2, 1, 1, 1}, {2}, {1, 2, 2, 2}}, {x, w, bias, other})[0],
              expected);
  const Numbers bytes = {1, 9, 4, 3, 7, 2, 8, 5};
  EXPECT_EQ(result_of({"com.microsoft.NhwcMaxPool", {file::attribute("kernel_shape", std::vector<std::int64_t>{2, 2})}},
                      {{{1, 2, 2, 2}, file::u8}}, {bytes}),
            (Numbers{8, 9}));
}

TEST(Compositions, AttentionOfOnnxruntime) {
  // Two heads of two places, with a cache of one key; the last key of two new ones is masked.
  const Plain plain{2, 2, 2, 3, 2, 2};
  const Numbers q = counted(8), k = counted(8, 0.5), v = counted(8, 0.125), past = counted(4, 0.75);
  // [rows][head][place] by heads, after the cache.
  const auto by_head = [](const Numbers& x, const Numbers& cached) {
    Numbers all;
    for (std::size_t h = 0; h < 2; ++h) {
      if (!cached.empty()) all.insert(all.end(), {cached[h * 2], cached[h * 2 + 1]});
      for (std::size_t row = 0; row < 2; ++row) all.insert(all.end(), {x[row * 4 + h * 2], x[row * 4 + h * 2 + 1]});
    }
    return all;
  };
  const auto by_row = [](const Numbers& y) {
    Numbers all;
    for (std::size_t row = 0; row < 2; ++row)
      for (std::size_t h = 0; h < 2; ++h) all.insert(all.end(), {y[h * 4 + row * 2], y[h * 4 + row * 2 + 1]});
    return all;
  };
  const Numbers masked = {0, 0, -10000, 0, 0, -10000}, causal = {0, 0, -INFINITY, 0, 0, 0};
  const double scale = 1 / std::sqrt(2.0);
  const auto expected = [&](const Numbers& mask) {
    return by_row(plain.results(by_head(q, {}), by_head(k, past), by_head(v, past), mask, scale, 0));
  };
  const Shape x = {1, 2, 4}, cache = {1, 2, 1, 2};
  const std::vector<std::pair<Shape, int>> types = {{x, file::f32},     {x, file::f32},      {x, file::f32},
                                                    {{}, file::f32},    {{1, 3}, file::i32}, {{}, file::f32},
                                                    {cache, file::f32}, {cache, file::f32}};
  const One one{"com.microsoft.MultiHeadAttention", {file::attribute("num_heads", 2)}};
  const Numbers with_mask = result_of(one, types, {q, k, v, {}, {1, 1, 0}, {}, past, past});
  expect_near(Elements(with_mask), expected(masked));
  const One in_order{one.operation, {file::attribute("num_heads", 2), file::attribute("unidirectional", 1)}};
  expect_near(Elements(result_of(in_order, types, {q, k, v, {}, {}, {}, past, past})), expected(causal));
  // The same of one input: queries, keys and values are parts of it.
  Numbers input, weights(144, 0), caches = past;
  caches.insert(caches.end(), past.begin(), past.end());
  for (std::size_t row = 0; row < 2; ++row)
    for (const Numbers* part : {&q, &k, &v})
      input.insert(input.end(), part->begin() + std::ptrdiff_t(row * 4), part->begin() + std::ptrdiff_t(row * 4 + 4));
  for (std::size_t d = 0; d < 12; ++d) weights[d * 13] = 1;
  expect_near(Elements(result_of({"com.microsoft.Attention", {file::attribute("num_heads", 2)}},
                                 {{{1, 2, 12}, file::f32},
                                  {{12, 12}, file::f32},
                                  {{12}, file::f32},
                                  {{1}, file::i32},
                                  {{2, 1, 2, 1, 2}, file::f32}},
                                 {input, weights, Numbers(12, 0), {2}, caches})),
              expected(masked));
}

TEST(Compositions, RowsOfTablesAreNormalised) {
  const Numbers words = counted(12), places = counted(8, 0.5), scale = {1, 2, -1, 0.5}, shift = {0, 1, 0, -1};
  Numbers expected;
  const std::size_t chosen[] = {2, 0};
  for (std::size_t row = 0; row < 2; ++row) {
    Numbers sum;
    double mean = 0, variance = 0;
    for (std::size_t c = 0; c < 4; ++c) sum.push_back(words[chosen[row] * 4 + c] + places[row * 4 + c]);
    for (const double one : sum) mean += one / 4;
    for (const double one : sum) variance += (one - mean) * (one - mean) / 4;
    for (std::size_t c = 0; c < 4; ++c)
      expected.push_back((sum[c] - mean) / std::sqrt(variance + 0.5) * scale[c] + shift[c]);
  }
  const Shape row = {4};
  expect_near(Elements(result_of({"com.microsoft.EmbedLayerNormalization", {file::attribute("epsilon", 0.5)}},
                                 {{{1, 2}, file::i32},
                                  {{}, file::i32},
                                  {{3, 4}, file::f32},
                                  {{2, 4}, file::f32},
                                  {{}, file::f32},
                                  {row, file::f32},
                                  {row, file::f32}},
                                 {{2, 0}, {}, words, places, {}, scale, shift})),
              expected);
}

TEST(Compositions, QuantisedOnes) {
  const Numbers a = {1, 2, 3, 4, 5, 6}, b = {1, -1, 2, -2, 3, -3};
  Numbers expected;
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t j = 0; j < 2; ++j) {
      double sum = 0;
      for (std::size_t l = 0; l < 3; ++l) sum += (a[i * 3 + l] - 1) * (b[l * 2 + j] - 1);
      expected.push_back(sum * 0.5 * 0.25 + (j == 0 ? 1 : -1));
    }
  const std::pair<Shape, int> number = {{}, file::f32}, left = {{2, 3}, file::u8}, right = {{3, 2}, file::i8};
  expect_near(Elements(result_of({"com.microsoft.MatMulIntegerToFloat", {}},
                                 {left, right, number, number, {{}, file::u8}, {{}, file::i8}, {{2}, file::f32}},
                                 {a, b, {0.5}, {0.25}, {1}, {1}, {1, -1}})),
              expected);
  // From 0 to 255, which the range of the input makes steps of one.
  expect_near(Elements(result_of({"com.microsoft.DynamicQuantizeMatMul", {}}, {{{1, 3}, file::f32}, right, number},
                                 {{0, 255, 10.25}, b, {0.5}})),
              {0.5 * (2 * 255 + 30), 0.5 * (-2 * 255 - 30)});
  const std::pair<Shape, int> byte = {{}, file::u8}, bytes = {{3}, file::u8};
  EXPECT_EQ(result_of({"com.microsoft.QLinearLeakyRelu", {file::attribute("alpha", 0.5)}},
                      {bytes, number, byte, number, byte}, {{2, 10, 14}, {0.5}, {10}, {1}, {20}}),
            (Numbers{18, 20, 22}));
  EXPECT_EQ(result_of({"com.microsoft.QLinearConcat", {file::attribute("axis", 0)}},
                      {number, byte, bytes, number, byte, bytes, number, byte},
                      {{1}, {5}, {1, 2, 3}, {2}, {0}, {10, 11, 12}, {1}, {10}}),
            (Numbers{7, 9, 11, 5, 6, 7}));
}

// Compared with the operator of floats with the same weights: what is quantised besides has steps of some thousandths.
TEST(Compositions, QuantisedLstm) {
  const std::size_t steps = 3, inputs = 2, units = 4, gates = 4 * units, directions = 2;
  const Numbers x = counted(steps * inputs, 0.125), bias = counted(directions * 2 * gates, 0.0625, -0.5);
  const Numbers w = counted(directions * inputs * gates, 5, -30), r = counted(directions * units * gates, 7, -40);
  const Numbers scale = {0.01, 0.02}, zero = {3, -2};
  // [direction, row, gate] to [direction, gate, row], as floats.
  const auto plain = [&](const Numbers& all, std::size_t rows) {
    Numbers out;
    for (std::size_t d = 0; d < directions; ++d)
      for (std::size_t g = 0; g < gates; ++g)
        for (std::size_t row = 0; row < rows; ++row)
          out.push_back((all[(d * rows + row) * gates + g] - zero[d]) * scale[d]);
    return out;
  };
  const auto shape = [](std::initializer_list<std::size_t> extents) {
    Shape all;
    for (const std::size_t extent : extents) all.push_back(std::int64_t(extent));
    return all;
  };
  const std::pair<Shape, int> sequence = {shape({steps, 1, inputs}), file::f32}, none = {{}, file::f32},
                              added = {shape({directions, 2 * gates}), file::f32}, each = {{2}, file::f32},
                              offset = {{2}, file::i8};
  const auto direction = file::attribute("direction", "bidirectional");
  const auto hidden = file::attribute("hidden_size", std::int64_t(units));
  const Elements is = result_of({"com.microsoft.DynamicQuantizeLSTM", {direction, hidden}},
                                {sequence,
                                 {shape({directions, inputs, gates}), file::i8},
                                 {shape({directions, units, gates}), file::i8},
                                 added,
                                 none,
                                 none,
                                 none,
                                 none,
                                 each,
                                 offset,
                                 each,
                                 offset},
                                {x, w, r, bias, {}, {}, {}, {}, scale, zero, scale, zero});
  const Elements should = result_of({"LSTM", {direction, hidden}},
                                    {sequence,
                                     {shape({directions, gates, inputs}), file::f32},
                                     {shape({directions, gates, units}), file::f32},
                                     added},
                                    {x, plain(w, inputs), plain(r, units), bias});
  ASSERT_EQ(is.size(), steps * directions * units);
  bool differs = false;
  for (std::size_t e = 0; e < is.size(); ++e) {
    EXPECT_NEAR(is[e], should[e], 0.01) << "element " << e;
    differs = differs || is[e] != should[e];
  }
  EXPECT_TRUE(differs);
}

TEST(Compositions, NormsAndDiagonals) {
  const Numbers x = {3, 4, 0, 0, -6, 8};
  expect_near(results_of({"LpNormalization", {}}, {{3, 2}}, {x})[0], {0.6, 0.8, 0, 0, -0.6, 0.8});
  expect_near(results_of({"GlobalLpPool", {file::attribute("p", 1)}}, {{1, 3, 2}}, {x})[0], {7, 0, 14});
  expect_near(results_of({"MeanVarianceNormalization", {file::attribute("axes", std::vector<std::int64_t>{1})}},
                         {{3, 2}}, {x})[0],
              {-1, 1, 0, 0, -1, 1});
  expect_near(results_of({"EyeLike", {file::attribute("k", 1)}}, {{2, 3}}, {x})[0], {0, 1, 0, 0, 0, 1});
  EXPECT_EQ(
      result_of({"TensorScatter", {file::attribute("mode", "circular")}, 24},
                {{{2, 3, 1}, file::f32}, {{2, 2, 1}, file::f32}, {{2}, file::i64}}, {x, {10, 20, 30, 40}, {1, 2}}),
      (Numbers{3, 10, 20, 40, -6, 30}));
}

TEST(Compositions, BadOperandsAreRefused) {
  const auto said = [](const One& one, const std::vector<Shape>& shapes) {
    return refusal([&] { graph_of(one, shapes); });
  };
  EXPECT_TRUE(contains(said({"Attention", {}}, {{1, 3, 3, 2}, {1, 2, 5, 2}, {1, 2, 5, 3}}), "3 heads in 2 groups"));
  EXPECT_TRUE(contains(said({"Attention", {}}, {{1, 3, 4}, {1, 3, 4}, {1, 3, 4}}), "4 places in 0 heads"));
  EXPECT_TRUE(
      contains(said({"Attention", {}}, {{1, 2, 3, 2}, {1, 2, 5, 2}, {1, 2, 5, 3}, {2, 5}}), "do not broadcast"));
  EXPECT_TRUE(contains(said({"RotaryEmbedding", {}}, {{1, 1, 2, 4}, {1, 2, 3}, {1, 2, 3}}), "3 cosines for 4 of 4"));
  EXPECT_TRUE(contains(said({"RMSNormalization", {file::attribute("stash_type", 16)}}, {{2, 4}, {4}}), "stash_type"));
  EXPECT_TRUE(
      contains(said({"com.microsoft.FusedConv", {file::attribute("activation", "Cube")}}, {{1, 1, 3, 3}, {1, 1, 3, 3}}),
               "activation 'Cube'"));
  EXPECT_TRUE(contains(said({"TensorScatter", {}}, {{1, 1, 3, 3}, {1, 1, 4, 3}}), "its cache is [1,1,3,3]"));
}

}  // namespace
