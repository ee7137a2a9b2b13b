#include "graph/layouts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/graph/support/kept_plan.h"
#include "tests/graph/support/onnx_file.h"
#include "tests/graph/support/random_graph.h"
#include "tests/graph/support/run_plan.h"
#include "tests/graph/support/small.h"

namespace {

using namespace graft::graph;
using file::attribute;
using file::GraphFile;
using graft::codegen::Elements;
using graft::codegen::Target;
using graft::codegen::Workload;
using List = std::vector<std::int64_t>;

void convolution(GraphFile& file, const std::string& name, const std::string& from, const std::string& to,
                 const List& weights, std::int64_t pad, std::int64_t group = 1) {
  file.weight(name + "w", weights, numbers(weights[0] * weights[1] * weights[2] * weights[3], 7 + to.size()));
  file.weight(name + "b", {weights[0]}, numbers(weights[0], 9));
  file.node("Conv", {from, name + "w", name + "b"}, {to},
            {attribute("pads", List{pad, pad, pad, pad}), attribute("group", group)}, name);
}

// A block with a depthwise layer and a residual addition, pooling, two branches that are joined, channels that are
// scaled by what is pooled of them, an element-wise node by itself, and a product at the end.
GraphFile network() {
  GraphFile file;
  file.input("x", {1, 3, 12, 12});
  convolution(file, "first", "x", "a0", {16, 3, 3, 3}, 1);
  file.node("Relu", {"a0"}, {"a"});
  convolution(file, "wide", "a", "b", {24, 16, 1, 1}, 0);
  convolution(file, "deep", "b", "c", {24, 1, 3, 3}, 1, 24);
  convolution(file, "narrow", "c", "d", {16, 24, 1, 1}, 0);
  file.node("Add", {"d", "a"}, {"e"});
  file.node("MaxPool", {"e"}, {"f"}, {attribute("kernel_shape", List{2, 2}), attribute("strides", List{2, 2})});
  convolution(file, "left", "f", "g", {8, 16, 3, 3}, 1);
  convolution(file, "right", "f", "h", {12, 16, 1, 1}, 0);
  file.node("Concat", {"g", "h"}, {"i"}, {attribute("axis", std::int64_t(1))});
  convolution(file, "after", "i", "j", {16, 20, 1, 1}, 0);
  file.node("GlobalAveragePool", {"j"}, {"k"});
  file.node("Sigmoid", {"k"}, {"l"});
  file.node("Mul", {"j", "l"}, {"m"});
  file.node("Erf", {"m"}, {"n"});
  file.node("Mul", {"n", "m"}, {"o"});
  file.node("GlobalAveragePool", {"o"}, {"p"});
  file.node("Flatten", {"p"}, {"q"});
  file.weight("last", {16, 5}, numbers(80, 3)).node("MatMul", {"q", "last"}, {"y"}).output("y");
  return file;
}

struct Planned {
  Graph graph;
  Plan plan;
  Forms forms;
};
Planned planned_network(const Graph& read, std::int64_t bits = 256) {
  Planned out{folded(read, "m.onnx"), {}, {}};
  out.plan = planned(out.graph, vector_target(bits), "m.onnx");
  out.forms = forms_of(out.plan, vector_target(bits));
  return out;
}
Planned planned_network(const GraphFile& file) {
  return planned_network(file::read(file, 17));
}

std::vector<Elements> outputs_of(const Plan& plan, const Graph& graph) {
  std::map<std::string, Elements> inputs;
  for (const int input : graph.inputs) {
    const Value& value = graph.values[std::size_t(input)];
    const std::vector<float> all = numbers(elements_of(*value.shape), 1);
    inputs[value.name] = Elements(std::vector<double>(all.begin(), all.end()));
  }
  return run(plan, inputs);
}

// One choice for each group of buffers in one memory.
InBlocks chosen(const Planned& network, std::uint64_t bits) {
  InBlocks in_blocks(network.plan.buffers.size());
  for (std::size_t b = 0; b < in_blocks.size(); ++b)
    in_blocks[b] = network.forms.block[b] > 0 && ((bits >> (whole_of(network.plan, int(b)) % 64)) & 1) != 0;
  return in_blocks;
}

double time_of(const Workload& workload) {
  return double(workload.key() % 1000) * 1e-6;
}
double sum_of(const Planned& network, const InBlocks& in_blocks, double bytes_per_second) {
  double seconds = 0;
  for (std::size_t c = 0; c < network.plan.calls.size(); ++c) {
    const Forms::Form& form = form_of(network.plan, network.forms, c, in_blocks);
    if (network.forms.calls[c].size() > 1) seconds += time_of(form.workload);
    const Plan::Call& call = network.plan.calls[c];
    for (std::size_t o = 0; o < form.in_blocks.size(); ++o) {
      const std::size_t buffer = std::size_t(o < call.operands.size() ? call.operands[o] : call.result);
      if (network.forms.block[buffer] > 0 && form.in_blocks[o] != in_blocks[buffer])
        seconds += 2 * double(network.plan.buffers[buffer].bytes()) / bytes_per_second;
    }
  }
  return seconds;
}

TEST(Layouts, AnyChoiceComputesTheSame) {
  const Planned network = planned_network(::network());
  ASSERT_TRUE(network.forms.any());
  const std::vector<Elements> expected = outputs_of(network.plan, network.graph);
  std::mt19937_64 random(5);
  for (int i = 0; i < 12; ++i) {
    const InBlocks in_blocks = chosen(network, i == 0 ? ~std::uint64_t(0) : random());
    const std::vector<Elements> got = outputs_of(laid_out(network.plan, network.forms, in_blocks), network.graph);
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t e = 0; e < expected[0].size(); ++e) ASSERT_NEAR(got[0][e], expected[0][e], 1e-9);
  }
}

// Constants that a kernel reads in another shape than the model has them in.
// Batches, groups, transposed convolutions, integers, views, reductions: whatever has forms computes the same in them.
TEST(Layouts, AnyChoiceOfARandomGraphComputesTheSame) {
  int with_choice = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    RandomSizes sizes;
    sizes.most_extent = 8;
    sizes.nodes = int(4 + seed % 12);
    const Planned network = planned_network(random_graph(seed, sizes), 128);
    if (!network.forms.any()) continue;
    ++with_choice;
    const auto inputs = random_inputs(network.graph, seed);
    const std::vector<Elements> expected = run(network.plan, inputs);
    for (const std::uint64_t bits : {~std::uint64_t(0), std::uint64_t(0x5555555555555555), seed * 0x9E3779B97F4A7C15}) {
      const std::vector<Elements> got = run(kept(laid_out(network.plan, network.forms, chosen(network, bits))), inputs);
      for (std::size_t o = 0; o < expected.size(); ++o)
        for (std::size_t e = 0; e < expected[o].size(); ++e)
          ASSERT_NEAR(got[o][e], expected[o][e], 1e-9 * (1 + std::abs(expected[o][e]))) << "seed " << seed << "\n"
                                                                                        << to_text(network.graph);
    }
  }
  EXPECT_GE(with_choice, 20);
}

TEST(Layouts, ConstantsOfFewerDimensionsFollowTheirKernel) {
  GraphFile file;
  file.input("x", {1, 3, 6, 6});
  convolution(file, "first", "x", "a", {16, 3, 3, 3}, 1);
  file.node("MaxPool", {"a"}, {"p"}, {attribute("kernel_shape", List{1, 1})});
  file.weight("row", {1, 16, 1, 6}, numbers(96, 4)).weight("column", {16, 6, 1}, numbers(96, 5));
  file.node("Mul", {"p", "row"}, {"b"}).node("MaxPool", {"b"}, {"c"}, {attribute("kernel_shape", List{1, 1})});
  file.node("Add", {"c", "column"}, {"d"});
  convolution(file, "last", "d", "y", {4, 16, 1, 1}, 0);
  file.output("y");
  const Planned network = planned_network(file);
  const std::vector<Elements> expected = outputs_of(network.plan, network.graph);
  for (const std::uint64_t bits : {~std::uint64_t(0), std::uint64_t(0x5555), std::uint64_t(0xAAAA)}) {
    const std::vector<Elements> got =
        outputs_of(laid_out(network.plan, network.forms, chosen(network, bits)), network.graph);
    for (std::size_t e = 0; e < expected[0].size(); ++e) ASSERT_NEAR(got[0][e], expected[0][e], 1e-9);
  }
}

TEST(Layouts, AKernelWithoutATimeDecidesNothing) {
  const Planned network = planned_network(::network());
  const std::uint64_t unknown = network.forms.calls[1].front().workload.key();
  const auto times = [&](const Workload& workload) {
    const bool is_unknown = std::any_of(network.forms.calls[1].begin(), network.forms.calls[1].end(),
                                        [&](const Forms::Form& form) { return form.workload == workload; });
    if (is_unknown || workload.key() == unknown) return std::numeric_limits<double>::infinity();
    // Plain kernels are slow.
    for (const auto& forms : network.forms.calls)
      if (forms.front().workload == workload) return 1.0;
    return 1e-3;
  };
  const InBlocks best = best_layouts(network.plan, network.forms, times, 1e9);
  EXPECT_GE(std::count(best.begin(), best.end(), true), 4);
}

TEST(Layouts, KernelsOfValuesInBlocksReadBlocksAlone) {
  const Planned network = planned_network(::network());
  const Plan plan = laid_out(network.plan, network.forms, chosen(network, ~std::uint64_t(0)));
  // No copies: every call has a form for it.
  EXPECT_EQ(plan.calls.size(), network.plan.calls.size());
  std::vector<std::string> labels;
  for (const Plan::Call& call : plan.calls) {
    const Plan::Buffer& result = plan.buffers[std::size_t(call.result)];
    if (result.shape.size() != 5) labels.push_back(call.label);
  }
  // 12 and 20 channels go into blocks of 4; blocks of channels of one element would be in the same order.
  EXPECT_EQ(labels, (std::vector<std::string>{"node 11 (GlobalAveragePool, Sigmoid)",
                                              "node 13 (Mul, Erf, Mul, GlobalAveragePool)", "node 18 (MatMul)"}));
}

TEST(Layouts, TheBestChoiceIsTheLeastSum) {
  const Planned network = planned_network(::network());
  std::vector<std::size_t> wholes;
  for (std::size_t b = 0; b < network.plan.buffers.size(); ++b)
    if (network.forms.block[b] > 0 && network.plan.buffers[b].part_of < 0) wholes.push_back(b);
  ASSERT_GE(wholes.size(), 6u);
  for (const double rate : {1e6, 1e8, 1e10}) {
    double least = std::numeric_limits<double>::infinity();
    for (std::uint64_t bits = 0; bits < (std::uint64_t(1) << wholes.size()); ++bits) {
      std::uint64_t spread = 0;
      for (std::size_t w = 0; w < wholes.size(); ++w) spread |= ((bits >> w) & 1) << (wholes[w] % 64);
      least = std::min(least, sum_of(network, chosen(network, spread), rate));
    }
    const InBlocks best = best_layouts(network.plan, network.forms, time_of, rate);
    EXPECT_NEAR(sum_of(network, best, rate), least, 1e-12) << rate;
  }
}

TEST(Layouts, NothingIsChosenWhereNothingConvolvesOrThereAreNoVectors) {
  GraphFile file;
  file.input("x", {1, 8, 16, 16}).node("Relu", {"x"}, {"r"}).node("Softmax", {"r"}, {"y"}).output("y");
  EXPECT_FALSE(planned_network(file).forms.any());
  const Graph graph = folded(file::read(network(), 17), "m.onnx");
  const Target scalar;
  EXPECT_FALSE(forms_of(planned(graph, scalar, "m.onnx"), scalar).any());
}

TEST(Layouts, InputsAndOutputsStayAsTheyAre) {
  GraphFile file;
  file.input("x", {1, 8, 6, 6});
  convolution(file, "one", "x", "a", {8, 8, 3, 3}, 1);
  convolution(file, "two", "a", "y", {16, 8, 3, 3}, 1);
  file.output("y");
  const Planned network = planned_network(file);
  const Plan plan = laid_out(network.plan, network.forms, chosen(network, ~std::uint64_t(0)));
  ASSERT_EQ(plan.calls.size(), 2u);
  EXPECT_EQ(plan.buffers[std::size_t(plan.calls[0].operands[0])].shape, (Shape{1, 8, 6, 6}));
  EXPECT_EQ(plan.buffers[std::size_t(plan.calls[0].result)].shape, (Shape{1, 1, 6, 6, 8}));
  EXPECT_EQ(plan.buffers[std::size_t(plan.calls[1].result)].shape, (Shape{1, 16, 6, 6}));
}

// After the convolutions of a sound's encoder, values are rows that products take: they have one form.
TEST(Layouts, OfATransformerAfterAConvolutionAreNotSearched) {
  GraphFile file;
  file.input("x", {1, 8, 16}).weight("w", {32, 8, 3}, numbers(32 * 8 * 3, 5)).weight("p", {32, 32}, numbers(1024, 3));
  file.node("Conv", {"x", "w"}, {"a"}, {attribute("pads", List{1, 1})})
      .node("Relu", {"a"}, {"b"})
      .node("Conv", {"b", "v"}, {"c"}, {attribute("pads", List{1, 1})})
      .node("Transpose", {"c"}, {"d"}, {attribute("perm", List{0, 2, 1})})
      .node("MatMul", {"d", "p"}, {"e"})
      .node("Erf", {"e"}, {"f"})
      .node("MatMul", {"f", "p"}, {"y"})
      .weight("v", {32, 32, 3}, numbers(32 * 32 * 3, 5))
      .output("y");
  const Planned made = planned_network(file);
  bool has_choice = false;
  for (std::size_t c = 0; c < made.plan.calls.size(); ++c) {
    const std::string& label = made.plan.calls[c].label;
    if (label.find("MatMul") != std::string::npos && label.find("Transpose") == std::string::npos)
      EXPECT_EQ(made.forms.calls[c].size(), 1u) << label;
    else
      has_choice |= made.forms.calls[c].size() > 1;
  }
  EXPECT_TRUE(has_choice);  // of the value between the convolutions
}

}  // namespace
