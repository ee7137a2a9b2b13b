// Random small networks: folded and evaluated by their index expressions, against plain loops over what was drawn; and
// the same after they were written to a file and read.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "base/monitor.h"
#include "codegen/expression/target.h"
#include "graph/fold.h"
#include "graph/plan.h"
#include "tests/graph/support/kept_plan.h"
#include "tests/graph/support/naive.h"
#include "tests/graph/support/onnx_file.h"
#include "tests/graph/support/random_graph.h"
#include "tests/graph/support/reference.h"
#include "tests/graph/support/run_plan.h"
#include "tests/graph/support/small.h"

namespace {

using namespace graft::graph;
using graft::codegen::Elements;

// Weights that folding makes are rounded to single precision.
void expect_naive(const Graph& graph, const Graph& read, std::uint64_t seed) {
  const std::string what = "seed " + std::to_string(seed) + "\n" + to_text(graph);
  const std::vector<Naive> should = naive(graph, random_inputs(graph, seed));
  const Graph ready = folded(read, graph.name);
  graft::base::Monitor nobody;
  const std::vector<Elements> is = reference(ready, random_inputs(graph, seed), graph.name, nobody);
  ASSERT_EQ(is.size(), should.size()) << what;
  for (std::size_t o = 0; o < is.size(); ++o) {
    ASSERT_EQ(*ready.values[std::size_t(ready.outputs[o])].shape, should[o].shape) << what << "\noutput " << o;
    double largest = 1;
    for (const double number : should[o].numbers) largest = std::max(largest, std::abs(number));
    for (std::size_t e = 0; e < is[o].size(); ++e)
      ASSERT_NEAR(is[o][e], should[o].numbers[e], 1e-5 * largest) << what << "\noutput " << o << ", element " << e;
  }
}

TEST(RandomGraphs, FoldedAreWhatPlainLoopsGive) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    RandomSizes sizes;
    sizes.jumps = seed % 2 == 0;
    sizes.nodes = int(1 + seed % 12);
    sizes.version = int(12 + seed % 10);
    const Graph graph = random_graph(seed, sizes);
    ASSERT_NO_FATAL_FAILURE(expect_naive(graph, graph, seed));
  }
}

// Fused, on planned buffers, call by call.
TEST(RandomGraphs, PlansComputeWhatGraphsDo) {
  const graft::codegen::Target target = vector_target();
  graft::base::Monitor nobody;
  for (std::uint64_t seed = 200; seed < 300; ++seed) {
    RandomSizes sizes;
    sizes.jumps = seed % 3 == 0;
    sizes.nodes = int(2 + seed % 14);
    const Graph graph = folded(random_graph(seed, sizes), "random");
    const std::string what = "seed " + std::to_string(seed) + "\n" + to_text(graph);
    const auto inputs = random_inputs(graph, seed);
    const std::vector<Elements> should = reference(graph, inputs, "random", nobody);
    const Plan plan = planned(graph, target, "random");
    const std::vector<Elements> is = run(kept(plan), inputs);
    for (std::size_t o = 0; o < should.size(); ++o) {
      ASSERT_EQ(is[o].size(), should[o].size()) << what << "\noutput " << o;
      for (std::size_t e = 0; e < should[o].size(); ++e)
        ASSERT_NEAR(is[o][e], should[o][e], 1e-9 * (1 + std::abs(should[o][e]))) << what << "\noutput " << o;
    }
  }
}

TEST(RandomGraphs, AreReadAsTheyAreWritten) {
  for (std::uint64_t seed = 100; seed < 130; ++seed) {
    const Graph graph = random_graph(seed);
    const Graph read = parse_onnx(file::model_of(graph), graph.name, ".");
    ASSERT_NO_FATAL_FAILURE(expect_naive(graph, read, seed));
    EXPECT_EQ(read.nodes.size(), graph.nodes.size());
  }
}

TEST(RandomGraphs, AreTheSameForTheSameSeed) {
  EXPECT_EQ(file::model_of(random_graph(7)), file::model_of(random_graph(7)));
  EXPECT_NE(file::model_of(random_graph(7)), file::model_of(random_graph(8)));
}

// What they are for: most operators, views, several readers and several outputs.
TEST(RandomGraphs, HaveWhatNetworksHave) {
  const std::vector<std::string> operators = operators_of_random_graphs(true);
  EXPECT_GE(operators.size(), 80u);
  for (const char* name : {"Conv", "MatMul", "Softmax", "Resize", "LSTM", "Split", "Reshape", "ReduceMean", "Where"})
    EXPECT_TRUE(std::find(operators.begin(), operators.end(), name) != operators.end()) << name;
  int outputs = 0, shared = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Graph graph = random_graph(seed);
    std::multiset<int> readers;
    for (const Node& node : graph.nodes) readers.insert(node.operands.begin(), node.operands.end());
    outputs += graph.outputs.size() > 1;
    for (const Node& node : graph.nodes) shared += readers.count(node.results[0]) > 1;
  }
  EXPECT_GT(outputs, 20);
  EXPECT_GT(shared, 30);
}

}  // namespace
