#include "graph/check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "codegen/expression/target.h"
#include "graph/inputs.h"
#include "tests/graph/support/onnx_file.h"
#include "tests/graph/support/run_plan.h"

namespace {

using namespace graft::graph;
using graft::codegen::Elements;

Graph product(float scale) {
  file::GraphFile file;
  std::vector<float> weights;
  for (int e = 0; e < 64 * 8; ++e) weights.push_back(scale * float(e % 13 - 6));
  file.input("x", {4, 64}).weight("w", {64, 8}, weights);
  file.node("MatMul", {"x", "w"}, {"p"}).node("Exp", {"p"}, {"y"}).output("p").output("y");
  return folded(file::read(file), "m.onnx");
}

// A product in single precision is right, on the operands that it was given; one element that is off is not.
TEST(Check, OfACallIsElementByElement) {
  const Graph graph = product(0.1f);
  const Plan plan = planned(graph, graft::codegen::Target{}, "m.onnx");
  const auto inputs = check_inputs(plan.inputs, 1);
  const Plan::Call& call = plan.calls.front();
  std::vector<double> single;
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 8; ++j) {
      float sum = 0;
      for (int l = 0; l < 64; ++l)
        sum += float(inputs.at("x")[std::size_t(i * 64 + l)]) * (0.1f * float((l * 8 + j) % 13 - 6));
      single.push_back(double(sum));
    }
  }
  BufferElements buffers(plan);
  buffers.write(call.operands.at(0), inputs.at("x"));
  buffers.write(call.result, Elements(single));
  const CallError right = call_error(plan, call, buffers, 1);
  EXPECT_GT(right.of_bound, 0);
  EXPECT_LE(right.of_bound, 1);
  EXPECT_NEAR(call_error(plan, call, buffers, 4).of_bound, right.of_bound / 4, 1e-9);
  single[17] += 1e-3;
  buffers.write(call.result, Elements(single));
  const CallError wrong = call_error(plan, call, buffers, 1);
  EXPECT_GT(wrong.of_bound, 1);
  EXPECT_EQ(wrong.element, 17);
  EXPECT_EQ(wrong.got, single[17]);
  EXPECT_NEAR(wrong.expected, single[17], 2e-3);
  single[17] = std::numeric_limits<double>::quiet_NaN();
  buffers.write(call.result, Elements(single));
  EXPECT_EQ(call_error(plan, call, buffers, 1).of_bound, std::numeric_limits<double>::infinity());
}

TEST(Check, OfAnOutputSaysHowFarItIs) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  const OutputError error = output_error("n", {1, 2, 4}, {1, 2, -3});
  EXPECT_EQ(error.largest, 3);
  EXPECT_EQ(error.largest_error, 7);
  EXPECT_EQ(output_error("y", {1, nan, infinity}, {1, nan, infinity}).largest_error, 0);
  EXPECT_EQ(output_error("y", {1, nan}, {1, 2}).largest_error, infinity);
  EXPECT_EQ(output_error("y", {1, 2}, {1, infinity}).largest_error, infinity);
}

}  // namespace
