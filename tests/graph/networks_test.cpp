// The small networks of examples/networks, as the script writes them: read, folded and planned, against plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "base/monitor.h"
#include "codegen/expression/target.h"
#include "graph/fold.h"
#include "graph/onnx.h"
#include "graph/plan.h"
#include "tests/graph/support/kept_plan.h"
#include "tests/graph/support/naive.h"
#include "tests/graph/support/random_graph.h"
#include "tests/graph/support/reference.h"
#include "tests/graph/support/run_plan.h"
#include "tests/graph/support/small.h"

namespace {

namespace fs = std::filesystem;
using namespace graft::graph;
using graft::codegen::Elements;

TEST(Networks, ComputeWhatPlainLoopsDo) {
  const fs::path folder = GRAFT_SMALL_NETWORKS;
  if (folder.empty()) GTEST_SKIP() << "examples/networks/write_networks.py does not run: install python3-onnx";
  const graft::codegen::Target target = vector_target();
  graft::base::Monitor nobody;
  int networks = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".onnx") continue;
    const std::string name = entry.path().stem().string();
    ++networks;
    const Graph graph = read_onnx(entry.path()), ready = folded(graph, name);
    const auto inputs = random_inputs(graph, 1);
    const std::vector<Naive> should = naive(graph, inputs);
    const std::vector<Elements> evaluated = reference(ready, inputs, name, nobody);
    const std::vector<Elements> planned_ones = run(kept(planned(ready, target, name)), inputs);
    for (std::size_t o = 0; o < should.size(); ++o) {
      ASSERT_EQ(*ready.values[std::size_t(ready.outputs[o])].shape, should[o].shape) << name;
      double largest = 0;
      for (const double number : should[o].numbers) largest = std::max(largest, std::abs(number));
      EXPECT_GT(largest, 0.05) << name;  // activations of order 1
      EXPECT_LT(largest, 20) << name;
      for (std::size_t e = 0; e < should[o].numbers.size(); ++e) {
        // Weights that folding makes are rounded to single precision.
        ASSERT_NEAR(evaluated[o][e], should[o].numbers[e], 1e-5 * largest) << name << ", output " << o << ", " << e;
        ASSERT_NEAR(planned_ones[o][e], evaluated[o][e], 1e-9 * largest) << name << ", output " << o << ", " << e;
      }
    }
  }
  EXPECT_EQ(networks, 12);
}

}  // namespace
