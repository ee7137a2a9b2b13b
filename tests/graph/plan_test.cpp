#include "graph/plan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/alternatives.h"
#include "tests/graph/support/kept_plan.h"
#include "tests/graph/support/onnx_file.h"
#include "tests/graph/support/run_plan.h"
#include "tests/graph/support/small.h"

namespace {

using namespace graft::graph;
using file::attribute;
using file::GraphFile;
using graft::codegen::Elements;
using List = std::vector<std::int64_t>;

Elements elements(std::size_t count, std::uint64_t seed) {
  const std::vector<float> all = numbers(std::int64_t(count), seed);
  return Elements(std::vector<double>(all.begin(), all.end()));
}

// Plans the file's graph, and checks that the plan, written down and read again, computes what the graph does.
// With calls as one wherever they may be, if that is asked for.
enum class Calls { apart, as_one };
Plan plan_of(const GraphFile& file, int version = 17, Calls calls = Calls::apart) {
  const Graph graph = folded(file::read(file, version), "m.onnx");
  const OpenPlan open = open_plan(graph, vector_target(), "m.onnx");
  // Each call takes a second: the fewest are the best.
  const std::vector<double> seconds(open.plan.kernels.size(), 1);
  Plan plan = calls == Calls::apart ? first_choice(open) : best_choice(open, seconds);
  std::map<std::string, Elements> inputs;
  for (const int input : graph.inputs) {
    const Value& value = graph.values[std::size_t(input)];
    inputs[value.name] = elements(std::size_t(elements_of(*value.shape)), std::uint64_t(input) + 1);
  }
  graft::base::Monitor nobody;
  const std::vector<Elements> expected = reference(graph, inputs, "m.onnx", nobody);
  const std::vector<Elements> got = run(kept(plan), inputs);
  for (std::size_t o = 0; o < expected.size(); ++o) {
    EXPECT_EQ(got[o].size(), expected[o].size());
    for (std::size_t e = 0; e < expected[o].size() && e < got[o].size(); ++e)
      EXPECT_NEAR(got[o][e], expected[o][e], 1e-9 * (1 + std::abs(expected[o][e]))) << "output " << o << ", " << e;
  }
  return plan;
}

std::vector<std::string> labels(const Plan& plan) {
  std::vector<std::string> all;
  for (const Plan::Call& call : plan.calls) all.push_back(call.label);
  return all;
}

TEST(Plan, WhatFollowsAConvolutionIsAppliedAtItsWriteBack) {
  GraphFile file;
  file.input("x", {1, 3, 8, 8}).weight("w", {4, 3, 3, 3}, numbers(108, 1)).weight("b", {4}, numbers(4, 2));
  file.weight("v", {4, 4, 1, 1}, numbers(16, 3)).weight("half", {}, {0.5f});
  file.node("Conv", {"x", "w", "b"}, {"c"}, {attribute("pads", List{1, 1, 1, 1})}, "first")
      .node("Clip", {"c", "", "half"}, {"m"})
      .node("Relu", {"m"}, {"r"})
      .node("Conv", {"r", "v"}, {"d"}, {}, "second")
      .node("Add", {"d", "r"}, {"s"})
      .node("Sigmoid", {"s"}, {"g"})
      .node("Mul", {"s", "g"}, {"y"})
      .output("y");
  EXPECT_EQ(labels(plan_of(file)),
            (std::vector<std::string>{"first (Conv, Clip, Relu)", "second (Conv, Add, Sigmoid, Mul)"}));
}

TEST(Plan, EqualLayersAreOneKernel) {
  GraphFile file;
  file.input("x", {1, 4, 6, 6}).weight("w0", {4, 4, 3, 3}, numbers(144, 1)).weight("w1", {4, 4, 3, 3}, numbers(144, 2));
  file.node("Conv", {"x", "w0"}, {"a"}, {attribute("pads", List{1, 1, 1, 1})})
      .node("Relu", {"a"}, {"b"})
      .node("Conv", {"b", "w1"}, {"c"}, {attribute("pads", List{1, 1, 1, 1})})
      .node("Relu", {"c"}, {"y"})
      .output("y");
  const Plan plan = plan_of(file);
  EXPECT_EQ(plan.calls.size(), 2u);
  ASSERT_EQ(plan.kernels.size(), 1u);
  EXPECT_EQ(plan.kernels[0].calls, 2);
}

// Each layer has learnt a scale of its own; the limits are the same for all.
TEST(Plan, EqualLayersWithOtherNumbersAreOneKernel) {
  GraphFile file;
  file.input("x", {1, 4, 6, 6}).weight("six", {}, {6}).weight("zero", {}, {0});
  std::string from = "x";
  for (const std::string layer : {"a", "b", "c"}) {
    file.weight(layer + "w", {4, 4, 1, 1}, numbers(16, layer[0])).weight(layer + "s", {}, {0.25F + float(layer[0])});
    file.node("Conv", {from, layer + "w"}, {layer + "0"})
        .node("Clip", {layer + "0", "zero", "six"}, {layer + "1"})
        .node("Mul", {layer + "1", layer + "s"}, {layer});
    from = layer;
  }
  file.output("c");
  const Plan plan = plan_of(file);
  ASSERT_EQ(plan.kernels.size(), 1u);
  EXPECT_EQ(plan.kernels[0].calls, 3);
  const std::string text = plan.kernels[0].workload.text();
  EXPECT_NE(text.find("constant x2[]"), std::string::npos) << text;
  EXPECT_NE(text.find("0),6)"), std::string::npos) << text;
}

// The same for scales and zero points of quantised layers.
TEST(Plan, EqualQuantisedLayersAreOneKernel) {
  GraphFile file;
  file.input("x", {4, 8}, file::u8);
  const auto scalar = [&](const std::string& name, int zero) {
    file.weight_of(file::tensor(name + ".zero", {}, file::u8, std::string(1, char(zero))));
    file.weight(name + ".scale", {}, {0.5F + float(zero) / 64});
  };
  std::string from = "x";
  scalar("x", 3);
  for (const std::string layer : {"a", "b", "c"}) {
    std::string weights(64, '\0');
    for (std::size_t e = 0; e < weights.size(); ++e) weights[e] = char(int(e * 7 + std::size_t(layer[0])) % 19 - 9);
    file.weight_of(file::tensor(layer + ".w", {8, 8}, file::i8, weights));
    file.weight_of(file::tensor(layer + ".wzero", {}, file::i8, std::string(1, '\0')));
    file.weight(layer + ".wscale", {8}, numbers(8, layer[0]));
    scalar(layer, layer[0]);
    file.node("QLinearMatMul",
              {from, from + ".scale", from + ".zero", layer + ".w", layer + ".wscale", layer + ".wzero",
               layer + ".scale", layer + ".zero"},
              {layer});
    from = layer;
  }
  file.output("c");
  const Plan plan = plan_of(file);
  ASSERT_EQ(plan.kernels.size(), 1u) << plan.kernels[0].workload.text() << "\n" << plan.kernels[1].workload.text();
  EXPECT_EQ(plan.kernels[0].calls, 3);
  graft::base::Monitor nobody;
  std::vector<double> x;
  for (int e = 0; e < 32; ++e) x.push_back((e * 37) % 256);
  const Graph graph = folded(file::read(file, 17), "m.onnx");
  EXPECT_EQ(run(plan, {{"x", x}}), reference(graph, {{"x", x}}, "m.onnx", nobody));
}

// Zero points of matrices that are both computed in a run are not in their sums, which are those of bytes of which one
// has a sign.
TEST(Plan, EqualProductsOfBytesOfARunAreOneKernel) {
  GraphFile file;
  file.input("x", {2, 5, 7}, file::u8).input("w", {2, 7, 3}, file::u8);
  const auto scalar = [&](const std::string& name, int zero) {
    file.weight_of(file::tensor(name + ".zero", {}, file::u8, std::string(1, char(zero))));
    file.weight(name + ".scale", {}, {0.5F + float(zero) / 64});
  };
  for (const std::string layer : {"a", "b"}) {
    scalar(layer + "x", layer == "a" ? 3 : 131), scalar(layer + "w", layer == "a" ? 140 : 9), scalar(layer, layer[0]);
    file.node("QLinearMatMul",
              {"x", layer + "x.scale", layer + "x.zero", "w", layer + "w.scale", layer + "w.zero", layer + ".scale",
               layer + ".zero"},
              {layer});
    file.output(layer);
  }
  const Plan plan = plan_of(file);
  ASSERT_EQ(plan.kernels.size(), 1u) << plan.kernels[0].workload.text() << "\n" << plan.kernels[1].workload.text();
  EXPECT_EQ(plan.kernels[0].calls, 2);
  const std::string text = plan.kernels[0].workload.text();
  EXPECT_NE(text.find(": i8 = saturate_i8("), std::string::npos) << text;
  graft::base::Monitor nobody;
  std::vector<double> x, w;
  for (int e = 0; e < 70; ++e) x.push_back((e * 37) % 256);
  for (int e = 0; e < 42; ++e) w.push_back((e * 91) % 256);
  const Graph graph = folded(file::read(file, 17), "m.onnx");
  EXPECT_EQ(run(plan, {{"x", x}, {"w", w}}), reference(graph, {{"x", x}, {"w", w}}, "m.onnx", nobody));
}

// ReduceMean, Sub, Pow, ReduceMean, Add, Sqrt, Div, Mul, Add: as exporters write it.
TEST(Plan, ANormalisationInManyNodesIsOneKernel) {
  GraphFile file;
  file.input("x", {1, 5, 32}).weight("two", {}, {2}).weight("epsilon", {}, {1e-5f});
  file.weight("scale", {32}, numbers(32, 1)).weight("shift", {32}, numbers(32, 2));
  const std::vector<std::string> last = {attribute("axes", List{-1})};
  file.node("ReduceMean", {"x"}, {"mean"}, last)
      .node("Sub", {"x", "mean"}, {"d"})
      .node("Pow", {"d", "two"}, {"p"})
      .node("ReduceMean", {"p"}, {"v"}, last)
      .node("Add", {"v", "epsilon"}, {"e"})
      .node("Sqrt", {"e"}, {"s"})
      .node("Div", {"d", "s"}, {"n"})
      .node("Mul", {"n", "scale"}, {"m"})
      .node("Add", {"m", "shift"}, {"y"})
      .output("y");
  EXPECT_EQ(plan_of(file).calls.size(), 1u);
}

TEST(Plan, AGeluInManyNodesFollowsItsProduct) {
  GraphFile file;
  file.input("x", {1, 6, 8}).weight("w", {8, 16}, numbers(128, 1)).weight("b", {16}, numbers(16, 2));
  file.weight("root", {}, {float(std::sqrt(2.0))}).weight("one", {}, {1}).weight("half", {}, {0.5f});
  file.node("MatMul", {"x", "w"}, {"p"})
      .node("Add", {"p", "b"}, {"q"})
      .node("Div", {"q", "root"}, {"d"})
      .node("Erf", {"d"}, {"e"})
      .node("Add", {"e", "one"}, {"f"})
      .node("Mul", {"q", "f"}, {"g"})
      .node("Mul", {"g", "half"}, {"y"})
      .output("y");
  EXPECT_EQ(plan_of(file).calls.size(), 1u);
}

// Heads are parts of the last dimension; scores are divided, masked and normalised along `axis`.
GraphFile attention(const std::string& also_read = "", int axis = -1, std::int64_t tokens = 16) {
  GraphFile file;
  file.integers("heads", {4}, {0, 0, 2, 8}).integers("together", {3}, {0, 0, 16}).weight("root", {}, {2.5F});
  file.input("mask", {1, 1, 1, tokens});
  for (const std::string name : {"q", "k", "v"}) {
    const List order = name == "k" ? List{0, 2, 3, 1} : List{0, 2, 1, 3};
    file.input(name, {1, tokens, 16})
        .node("Reshape", {name, "heads"}, {name + "0"})
        .node("Transpose", {name + "0"}, {name + "1"}, {attribute("perm", order)});
  }
  file.node("MatMul", {"q1", "k1"}, {"product"})
      .node("Div", {"product", "root"}, {"scaled"})
      .node("Add", {"scaled", "mask"}, {"scores"})
      .node("Softmax", {"scores"}, {"weights"}, {attribute("axis", axis)})
      .node("MatMul", {"weights", "v1"}, {"seen"})
      .node("Transpose", {"seen"}, {"turned"}, {attribute("perm", List{0, 2, 1, 3})})
      .node("Reshape", {"turned", "together"}, {"y"})
      .output("y");
  if (!also_read.empty()) file.output(also_read);
  return file;
}

// The heads' dimensions are read and written in place; the quotient comes after the second product.
TEST(Plan, AttentionIsOneKernelWhereThatIsChosen) {
  const Plan separate = plan_of(attention());
  EXPECT_EQ(separate.calls.size(), 3u);
  const Plan plan = plan_of(attention(), 17, Calls::as_one);
  ASSERT_EQ(plan.calls.size(), 1u);
  EXPECT_EQ(plan.kernels[0].workload.computation().stages.back().value.root().op, graft::codegen::Op::div);
  for (const Plan::Buffer& buffer : plan.buffers) EXPECT_NE(buffer.where, Plan::Buffer::Where::arena);
}

TEST(Plan, AttentionWhoseMatricesAreReadElsewhereIsNotOneKernel) {
  for (const char* name : {"product", "scaled", "scores", "weights"})
    EXPECT_GT(plan_of(attention(name), 17, Calls::as_one).calls.size(), 2u) << name;
  EXPECT_GT(plan_of(attention("", 2), 17, Calls::as_one).calls.size(), 2u) << "softmax along another axis";
  EXPECT_GT(plan_of(attention("", -1, 4), 17, Calls::as_one).calls.size(), 2u) << "rows that fill no vector";
}

// An inverted residual: a product, a depthwise convolution, a product, with Clip between them.
GraphFile inverted_residual(const std::string& also_read = "", std::int64_t stride = 1) {
  GraphFile file;
  file.input("x", {1, 8, 9, 9}).weight("low", {}, {0}).weight("high", {}, {6});
  file.weight("wide", {16, 8, 1, 1}, numbers(128, 1)).weight("b", {16}, numbers(16, 2));
  file.weight("deep", {16, 1, 3, 3}, numbers(144, 3)).weight("narrow", {8, 16, 1, 1}, numbers(128, 4));
  file.node("Conv", {"x", "wide", "b"}, {"a"})
      .node("Clip", {"a", "low", "high"}, {"c"})
      .node("Conv", {"c", "deep", "b"}, {"d"},
            {attribute("group", 16), attribute("pads", List{1, 1, 1, 1}), attribute("strides", List{stride, stride})})
      .node("Clip", {"d", "low", "high"}, {"e"})
      .node("Conv", {"e", "narrow"}, {"f"});
  if (stride == 1)
    file.node("Add", {"f", "x"}, {"y"});
  else
    file.node("Relu", {"f"}, {"y"});
  file.output("y");
  if (!also_read.empty()) file.output(also_read);
  return file;
}

TEST(Plan, DepthwiseConvolutionsAndTheirProductsAreOneKernelWhereThatIsChosen) {
  for (const std::int64_t stride : {1, 2}) {
    EXPECT_EQ(plan_of(inverted_residual("", stride)).calls.size(), 3u);
    const Plan plan = plan_of(inverted_residual("", stride), 17, Calls::as_one);
    ASSERT_EQ(plan.calls.size(), 2u);
    EXPECT_EQ(plan.calls[1].nodes.size(), 4u);
  }
  // What lies between is read elsewhere.
  for (const char* name : {"d", "e"})
    EXPECT_EQ(plan_of(inverted_residual(name), 17, Calls::as_one).calls.size(),
              plan_of(inverted_residual(name)).calls.size())
        << name;
}

// A product that is transposed but for its innermost dimension is written so at once.
TEST(Plan, ProductsAreWrittenInTheOrderOfTheirCopies) {
  GraphFile file;
  file.input("x", {2, 3, 5, 4}).input("z", {2, 3, 4, 8}).node("MatMul", {"x", "z"}, {"p"});
  file.node("Transpose", {"p"}, {"y"}, {attribute("perm", List{0, 2, 1, 3})}).output("y");
  EXPECT_EQ(plan_of(file).calls.size(), 1u);
  GraphFile other;
  other.input("x", {2, 3, 5, 4}).input("z", {2, 3, 4, 8}).node("MatMul", {"x", "z"}, {"p"});
  other.node("Transpose", {"p"}, {"y"}, {attribute("perm", List{0, 1, 3, 2})}).output("y");
  EXPECT_EQ(plan_of(other).calls.size(), 2u);
}

// A value that somebody else reads is computed once, in memory.
TEST(Plan, WhatTwoReadStaysInMemory) {
  GraphFile file;
  file.input("x", {4, 8}).weight("w", {8, 8}, numbers(64, 1));
  file.node("MatMul", {"x", "w"}, {"p"}).node("Relu", {"p"}, {"a"}).node("Tanh", {"p"}, {"b"}).output("a").output("b");
  EXPECT_EQ(plan_of(file).calls.size(), 3u);
}

// Views need no calls; what reads through them sees the elements in its own shape.
TEST(Plan, ViewsCostNothing) {
  GraphFile file;
  file.input("x", {2, 12})
      .integers("heads", {3}, {2, 3, 4})
      .integers("flat", {2}, {2, 12})
      .weight("w", {12, 5}, numbers(60, 1));
  file.node("Exp", {"x"}, {"e"})
      .node("Reshape", {"e", "heads"}, {"h"})
      .node("Transpose", {"h"}, {"t"}, {attribute("perm", List{1, 0, 2})})
      .node("Transpose", {"t"}, {"u"}, {attribute("perm", List{1, 0, 2})})
      .node("Reshape", {"u", "flat"}, {"f"})
      .node("MatMul", {"f", "w"}, {"y"})
      .output("y");
  const Plan plan = plan_of(file);
  EXPECT_EQ(plan.calls.back().label, "node 5 (MatMul)");
  EXPECT_LE(plan.calls.size(), 3u);
}

// An output that is an input, a constant, a view of another one, or the same value twice has memory of its own.
TEST(Plan, OutputsHaveTheirOwnMemory) {
  GraphFile file;
  file.input("x", {2, 3}).weight("c", {3}, {1, 2, 3}).integers("flat", {1}, {6});
  file.node("Relu", {"x"}, {"a"})
      .node("Reshape", {"a", "flat"}, {"v"})
      .node("Neg", {"a"}, {"n"})
      .output("a")
      .output("v")
      .output("a")
      .output("x")
      .output("c")
      .output("n");
  const Plan plan = plan_of(file);
  std::vector<int> written(6);
  for (const Plan::Call& call : plan.calls) {
    const Plan::Buffer& buffer = plan.buffers[std::size_t(call.result)];
    if (buffer.where == Plan::Buffer::Where::output) ++written[std::size_t(buffer.number)];
  }
  EXPECT_EQ(written, std::vector<int>(6, 1));
}

TEST(Plan, ElementWiseWorkIsGoneThroughInOneLine) {
  GraphFile file;
  file.input("x", {1, 4, 7, 7}).input("z", {1, 4, 7, 7}).weight("c", {1, 4, 1, 1}, numbers(4, 1));
  file.node("Add", {"x", "z"}, {"s"})
      .node("Exp", {"s"}, {"a"})
      .node("Mul", {"s", "c"}, {"b"})
      .output("a")
      .output("b")
      .output("s");
  const Plan plan = plan_of(file);
  std::vector<std::string> texts;
  for (const Plan::Kernel& kernel : plan.kernels) texts.push_back(kernel.workload.text());
  ASSERT_EQ(texts.size(), 3u);
  EXPECT_NE(texts[0].find("y[i0] "), std::string::npos) << texts[0];
  EXPECT_NE(texts[1].find("y[i0] "), std::string::npos) << texts[1];
  EXPECT_NE(texts[2].find("y[i0,i1] "), std::string::npos) << texts[2];
}

TEST(Plan, TheArenaHoldsWhatLives) {
  GraphFile file;
  file.input("x", {4, 8}).weight("w", {8, 8}, numbers(64, 1));
  file.node("MatMul", {"x", "w"}, {"a"})
      .node("MatMul", {"a", "w"}, {"b"})
      .node("MatMul", {"b", "w"}, {"c"})
      .node("Add", {"c", "a"}, {"y"})
      .output("y");
  const Plan plan = plan_of(file);
  const std::vector<std::int64_t> scratch(plan.kernels.size(), 100);
  const ArenaUse use = arena_use(plan, scratch);
  std::vector<std::pair<int, int>> lives;
  for (const int lifetime : use.lifetime_of_buffer)
    if (lifetime >= 0)
      lives.emplace_back(use.lifetimes[std::size_t(lifetime)].first, use.lifetimes[std::size_t(lifetime)].last);
  EXPECT_EQ(lives, (std::vector<std::pair<int, int>>{{0, 2}, {1, 2}}));  // a, read by the addition, too; b
  for (std::size_t c = 0; c < plan.calls.size(); ++c) {
    const Lifetime& own = use.lifetimes[std::size_t(use.scratch_of_call[c])];
    EXPECT_EQ(own.bytes, 100);
    EXPECT_EQ(own.first, int(c));
    EXPECT_EQ(own.last, int(c));
  }
}

// Values that are put together in the order of memory are computed where they belong; one that is an input, or belongs
// elsewhere, too, is copied. Parts in the order of memory are views.
TEST(Plan, WhatIsPutTogetherIsComputedInPlace) {
  GraphFile file;
  file.input("x", {1, 4, 4, 4}).weight("w", {4, 4, 1, 1}, numbers(16, 1));
  file.node("Conv", {"x", "w"}, {"a"})
      .node("Relu", {"a"}, {"b"})
      .node("Concat", {"a", "b", "x"}, {"c"}, {attribute("axis", 1)})
      .node("Concat", {"c", "b"}, {"d"}, {attribute("axis", 1)})
      .node("Split", {"d"}, {"e", "f"}, {attribute("axis", 1)})
      .node("Exp", {"e"}, {"y"})
      .node("Exp", {"f"}, {"z"})
      .output("y")
      .output("z");
  const Plan plan = plan_of(file);
  // The convolution, the rectifier, copies of x and of the second b, and two exponentials.
  EXPECT_EQ(plan.calls.size(), 6u);
}

// What is split, and put together again with what its parts became (C2f of YOLO), is computed there; where only a part
// is put together, that part is copied.
TEST(Plan, WhatIsSplitAndPutTogetherAgainIsComputedInPlace) {
  for (const bool has_all : {true, false}) {
    GraphFile file;
    file.input("x", {1, 8, 4, 4}).weight("w", {8, 8, 1, 1}, numbers(64, 1)).weight("v", {4, 4, 1, 1}, numbers(16, 1));
    file.node("Conv", {"x", "w"}, {"a"})
        .node("Split", {"a"}, {"b", "c"}, {attribute("axis", 1)})
        .node("Conv", {"c", "v"}, {"d"})
        .node("Concat", has_all ? std::vector<std::string>{"b", "c", "d"} : std::vector<std::string>{"c", "d"}, {"e"},
              {attribute("axis", 1)})
        .node("Exp", {"e"}, {"y"})
        .node("Exp", {"b"}, {"z"})
        .output("y")
        .output("z");
    const Plan plan = plan_of(file);
    EXPECT_EQ(plan.calls.size(), has_all ? 4u : 5u);
  }
}

// The same where the pieces are not aligned: a kernel copies.
TEST(Plan, WhatWouldNotBeAlignedIsCopied) {
  GraphFile file;
  file.input("x", {1, 3, 3});
  file.node("Relu", {"x"}, {"a"}).node("Neg", {"x"}, {"b"}).node("Concat", {"a", "b"}, {"c"}, {attribute("axis", 1)});
  file.node("Split", {"c"}, {"d", "e"}, {attribute("axis", 1)}).output("c").output("d").output("e");
  plan_of(file);
}

// Steps of one layer are calls of the same kernels, which read one part of the input's product after the other; results
// that have the steps in common compute them once.
TEST(Plan, StepsOfARecurrentLayerAreTheSameKernels) {
  GraphFile file;
  const int steps = 9, units = 16;
  file.input("x", {steps, 1, 5}).weight("w", {2, 4 * units, 5}, numbers(2 * 4 * units * 5, 1));
  file.weight("r", {2, 4 * units, units}, numbers(2 * 4 * units * units, 2))
      .weight("b", {2, 8 * units}, numbers(2 * 8 * units, 3));
  file.node("LSTM", {"x", "w", "r", "b"}, {"y", "h", "c"},
            {attribute("hidden_size", units), attribute("direction", "bidirectional")})
      .output("y")
      .output("h")
      .output("c");
  const Plan plan = plan_of(file);
  // For each direction the product of the input, and a product, a cell and a state for each step but the first one,
  // which has no product; the states are computed in Y, the last cells in Y_c, and Y_h is copied.
  EXPECT_EQ(plan.calls.size(), 2 * (1 + 3 * std::size_t(steps) - 1) + 1u);
  EXPECT_LE(plan.kernels.size(), 9u);
  std::int64_t parts = 0;
  for (const Plan::Buffer& buffer : plan.buffers) {
    if (buffer.part_of < 0) continue;
    ++parts;
    EXPECT_EQ(buffer.offset % 64, 0);
    const Plan::Buffer& whole = plan.buffers[std::size_t(buffer.part_of)];
    EXPECT_LE(buffer.offset + buffer.bytes(), whole.bytes());
    EXPECT_EQ(buffer.where, whole.where);
  }
  EXPECT_GT(parts, 0);
}

// Rounds read and stack rows that begin anywhere: stored with rows that begin at multiples of the alignment, all rounds
// are calls of the same kernels.
TEST(Plan, RoundsOfALoopAreTheSameKernels) {
  const int rounds = 40;
  GraphFile body;
  body.open_input("round", {}, graft::graph::file::i64).open_input("goes_on", {}, graft::graph::file::boolean);
  body.open_input("s", {});
  body.node("Gather", {"x", "round"}, {"row"}, {attribute("axis", 1)})
      .node("Mul", {"s", "decay"}, {"kept"})
      .node("Add", {"kept", "row"}, {"more"})
      .node("ReduceSum", {"more"}, {"sum"}, {attribute("keepdims", 1)})
      .node("Sub", {"more", "sum"}, {"out"})
      .output("goes_on")
      .output("more")
      .output("out");
  for (const int batch : {1, 2}) {
    GraphFile file;
    file.input("x", {batch, rounds, 3}).input("begin", {batch, 3}).weight("decay", {}, {0.5f});
    file.integers("rounds", {}, {rounds});
    file.node("Loop", {"rounds", "", "begin"}, {"end", "rows"},
              {graft::graph::file::graph_attribute("body", body.content())})
        .output("end")
        .output("rows");
    const Plan plan = plan_of(file);
    EXPECT_GE(plan.calls.size(), std::size_t(rounds));
    EXPECT_LE(plan.kernels.size(), 8u);
    for (const Plan::Buffer& buffer : plan.buffers) EXPECT_EQ(buffer.offset % 64, 0);
  }
}

// A cache that is read by nothing but the call that appends to it may be the memory of what that gives.
TEST(Plan, ACacheMayBeAppendedToWhereItIs) {
  for (const bool is_read_again : {false, true}) {
    GraphFile file;
    file.input("past", {2, 3, 5, 4}).input("new", {2, 3, 2, 4}).input("at", {2}, file::i64);
    file.node("TensorScatter", {"past", "new", "at"}, {"present"}, {}, "append").node("Relu", {"present"}, {"y"});
    if (is_read_again) file.node("Add", {"y", "past"}, {"z"});
    file.output("y").output("present");
    if (is_read_again) file.output("z");
    const Graph graph = folded(file::read(file, 24), "m.onnx");
    const Plan plan = planned(graph, vector_target(), "m.onnx");
    EXPECT_EQ(overwritten_inputs(plan)[0], -1);
    EXPECT_EQ(overwritten_inputs(plan)[1], is_read_again ? -1 : 0);
    std::vector<double> past(120), added(48);
    for (std::size_t e = 0; e < past.size(); ++e) past[e] = double(e);
    for (std::size_t e = 0; e < added.size(); ++e) added[e] = -double(e);
    const std::map<std::string, Elements> inputs = {{"past", past}, {"new", added}, {"at", Elements{-1, 4}}};
    const std::vector<Elements> is = run(kept(plan), inputs);
    for (std::size_t b = 0; b < 2; ++b)
      for (std::size_t h = 0; h < 3; ++h)
        for (std::size_t t = 0; t < 5; ++t)
          for (std::size_t i = 0; i < 4; ++i) {
            const std::size_t at = ((b * 3 + h) * 5 + t) * 4 + i, row = b == 0 ? t + 1 : t - 4;
            const bool is_new = b == 0 ? t == 0 : t == 4;
            EXPECT_EQ(std::as_const(is[1])[at], is_new ? -double(((b * 3 + h) * 2 + row) * 4 + i) : double(at)) << at;
          }
  }
}

TEST(Plan, RefusesWhatNobodySupports) {
  GraphFile file;
  file.input("x", {2, 3}).node("Relu", {"x"}, {"y"}).output("y");
  Graph graph = folded(file::read(file), "m.onnx");
  graph.nodes[0].operation = "Nothing";
  EXPECT_THROW(planned(graph, vector_target(), "m.onnx"), graft::base::UserError);
}

}  // namespace
