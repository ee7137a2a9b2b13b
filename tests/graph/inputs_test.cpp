#include "graph/inputs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "codegen/expression/target.h"
#include "graph/fold.h"
#include "graph/reference.h"
#include "tests/graph/support/onnx_file.h"

namespace {

using namespace graft::graph;
using graft::codegen::Elements;
using Inputs = std::map<std::string, Elements>;

Graph folded_graph(const file::GraphFile& made) {
  return folded(file::read(made, 17), "m.onnx");
}
std::vector<Plan::Tensor> tensors_of(const Graph& graph) {
  graft::base::Monitor nobody;
  const std::vector<Draw> draws = draws_of(graph, "m.onnx", nobody);
  std::vector<Plan::Tensor> tensors;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const Value& input = graph.values[std::size_t(graph.inputs[i])];
    tensors.push_back({input.name, *input.type, *input.shape, "", draws[i]});
  }
  return tensors;
}
Inputs inputs_of(const Graph& graph, std::uint64_t seed = 1) {
  return check_inputs(tensors_of(graph), seed);
}

TEST(Inputs, AreTheSameForTheSameSeed) {
  file::GraphFile file;
  file.input("x", {3, 5}).input("ids", {7}, file::i64).node("Relu", {"x"}, {"y"}).node("Neg", {"ids"}, {"z"});
  file.output("y").output("z");
  const Graph graph = folded_graph(file);
  const auto first = inputs_of(graph, 3), again = inputs_of(graph, 3), other = inputs_of(graph, 4);
  EXPECT_EQ(first.at("x"), again.at("x"));
  EXPECT_NE(first.at("x"), other.at("x"));
  ASSERT_EQ(first.at("ids").size(), 7u);
  for (std::size_t e = 0; e < 7; ++e) EXPECT_TRUE(first.at("ids")[e] == 0 || first.at("ids")[e] == 1);
}

// Through a change of shape and of type, too. What masks is 0 and 1, and masks no row wholly.
class InputsOfType : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(OfEachInteger, InputsOfType, testing::Values(file::i8, file::i32, file::i64));
TEST_P(InputsOfType, AreIndicesWithinWhatTheyIndex) {
  file::GraphFile file;
  file.input("ids", {40}, GetParam()).input("mask", {4, 10}, file::i64).integers("shape", {2}, {4, 10});
  std::vector<float> table(30 * 2, 1.0F);
  file.weight("table", {30, 2}, table)
      .node("Cast", {"ids"}, {"wide"}, {file::attribute("to", std::int64_t(file::i64))})
      .node("Reshape", {"wide", "shape"}, {"index"})
      .node("Gather", {"table", "index"}, {"y"})
      .node("Cast", {"mask"}, {"z"}, {file::attribute("to", std::int64_t(file::f32))})
      .output("y")
      .output("z");
  const Inputs inputs = inputs_of(folded_graph(file));
  const Elements &ids = inputs.at("ids"), &mask = inputs.at("mask");
  EXPECT_GE(*std::min_element(ids.begin(), ids.end()), 0);
  EXPECT_LT(*std::max_element(ids.begin(), ids.end()), 30);
  EXPECT_GT(*std::max_element(ids.begin(), ids.end()), 10);
  EXPECT_EQ(std::count(mask.begin(), mask.end(), 0.0) + std::count(mask.begin(), mask.end(), 1.0), 40);
  EXPECT_GT(std::count(mask.begin(), mask.end(), 0.0), 5);
  for (std::size_t row = 0; row < 4; ++row) EXPECT_EQ(mask[10 * row], 1);
}

TEST(Inputs, IndicesOutsideOfWhatTheyIndexAreNamed) {
  file::GraphFile file;
  file.input("ids", {2}, file::i64).input("moved", {2}, file::i64).input("mask", {2}, file::i64);
  std::vector<float> table(30 * 2, 1.0F);
  file.weight("table", {30, 2}, table).integers("two", {1}, {2});
  file.node("Cast", {"ids"}, {"short"}, {file::attribute("to", std::int64_t(file::i32))});
  file.node("Gather", {"table", "short"}, {"rows"}).node("Add", {"moved", "two"}, {"place"});
  file.node("Gather", {"table", "place"}, {"others"}).node("Neg", {"mask"}, {"z"});
  const Graph graph = folded_graph(file.output("rows").output("others").output("z"));
  const auto outside = [&](double first, double second) {
    const Elements ids(std::vector<double>{first, second}), far(std::vector<double>{99, 99});
    return indices_outside(tensors_of(graph), {{"ids", ids}, {"moved", far}, {"mask", far}});
  };
  EXPECT_TRUE(outside(-30, 29).empty());  // negative ones count from the end
  EXPECT_EQ(outside(0, 30), (std::vector<std::string>{"input 'ids' has the index 30, and the dimension that it indexes "
                                                      "has 30 elements: the nearest of them is taken"}));
  EXPECT_EQ(outside(-31, 0).size(), 1u);
}

TEST(Inputs, AreThoseForWhichWhatComesNextIsFinite) {
  file::GraphFile file;
  const std::vector<float> lowest = {-std::numeric_limits<float>::max()}, one = {1};
  file.input("m", {2, 8}).input("s", {2, 8}).input("l", {8}).weight("one", {1}, one).weight("lowest", {1}, lowest);
  file.node("Sub", {"one", "m"}, {"inverse"})
      .node("Mul", {"inverse", "lowest"}, {"bias"})
      .node("Add", {"s", "bias"}, {"y"})
      .node("Log", {"l"}, {"z"})
      .output("y")
      .output("z");
  const Inputs inputs = inputs_of(folded_graph(file));
  for (const double m : inputs.at("m")) EXPECT_TRUE(m == 0 || m == 1) << m;
  for (const double l : inputs.at("l")) EXPECT_GT(l, 0);
  EXPECT_LT(*std::min_element(inputs.at("s").begin(), inputs.at("s").end()), 0);  // the usual numbers
}

// Kernels get the numbers of their operands in the network: of a mask 0 and the lowest number alone.
TEST(Inputs, OfKernelsAreWhatTheNetworkGivesThem) {
  file::GraphFile file;
  const std::vector<float> lowest = {-std::numeric_limits<float>::max()}, one = {1}, weights(8 * 8, 0.25F);
  file.input("m", {4, 8}, file::i64).input("x", {4, 8}).weight("one", {1}, one).weight("lowest", {1}, lowest);
  file.weight("w", {8, 8}, weights)
      .node("Cast", {"m"}, {"f"}, {file::attribute("to", std::int64_t(file::f32))})
      .node("Sub", {"one", "f"}, {"inverse"})
      .node("Mul", {"inverse", "lowest"}, {"bias"})
      .node("MatMul", {"x", "w"}, {"p"})
      .node("Add", {"p", "bias"}, {"y"})
      .output("y")
      .output("bias");
  const Graph graph = folded_graph(file);
  graft::base::Monitor nobody;
  const Samples samples = samples_of_values(graph, inputs_of(graph), "m.onnx", nobody);
  const OpenPlan open = open_plan(graph, graft::codegen::Target{}, "m.onnx");
  const std::map<std::string, graft::codegen::Seen> seen = seen_by_kernels(open, samples);
  ASSERT_EQ(seen.size(), open.plan.kernels.size());
  int masks = 0;
  for (const Plan::Kernel& kernel : open.plan.kernels) {
    for (const auto& [tensor, numbers] : seen.at(kernel.workload.text())) {
      ASSERT_FALSE(numbers.empty());
      const double least = *std::min_element(numbers.begin(), numbers.end());
      if (least > -1e38) continue;
      ++masks;
      for (const double number : numbers) EXPECT_TRUE(number == 0 || number == double(lowest[0])) << number;
    }
  }
  EXPECT_GT(masks, 0);
}

// What takes long is left out, with all that depends on it.
TEST(Inputs, OnlyCheapNodesAreLookedAt) {
  file::GraphFile file;
  file.input("x", {16, 16}).node("Relu", {"x"}, {"a"}).node("MatMul", {"a", "a"}, {"b"}).node("Neg", {"b"}, {"y"});
  file.node("Neg", {"a"}, {"z"}).output("y").output("z");
  const Graph graph = folded_graph(file);
  graft::base::Monitor nobody;
  std::vector<std::string> seen;
  look_at(
      graph, inputs_of(graph), "m.onnx", 4096,
      [&](const Node& node, int, const Elements&) { seen.push_back(node.operation); }, nobody);
  EXPECT_EQ(seen, (std::vector<std::string>{"Relu", "Neg"}));
  EXPECT_GT(work_of(graph, "m.onnx"), 4096);
}

}  // namespace
