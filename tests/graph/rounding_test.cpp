#include "graph/rounding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "codegen/expression/target.h"
#include "tests/graph/support/onnx_file.h"
#include "tests/graph/support/run_plan.h"

namespace {

using namespace graft::graph;
using graft::codegen::DType;
using graft::codegen::Elements;

Graph product(float scale) {
  file::GraphFile file;
  std::vector<float> weights;
  for (int e = 0; e < 64 * 8; ++e) weights.push_back(scale * float(e % 13 - 6));
  file.input("x", {4, 64}).weight("w", {64, 8}, weights);
  file.node("MatMul", {"x", "w"}, {"p"}).node("Exp", {"p"}, {"y"}).output("p").output("y");
  return folded(file::read(file), "m.onnx");
}

// Results in single precision lie within what rounding explains; a fault of one element does not.
TEST(Rounding, ExplainsSinglePrecisionAndNoFault) {
  const Graph graph = product(0.1f);
  const Plan plan = planned(graph, graft::codegen::Target{}, "m.onnx");
  const auto inputs = check_inputs(graph, 1);
  graft::base::Monitor nobody;
  const std::vector<Elements> expected = reference(graph, inputs, "m.onnx", nobody);
  const std::vector<Elements> moved = moved_by_rounding(plan, graph, inputs, 2, nobody);
  std::vector<double> single;
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 8; ++j) {
      float sum = 0;
      for (int l = 0; l < 64; ++l)
        sum += float(inputs.at("x")[std::size_t(i * 64 + l)]) * (0.1f * float((l * 8 + j) % 13 - 6));
      single.push_back(double(sum));
    }
  }
  const OutputError right = compared("p", DType::f32, Elements(single), expected[0], moved[0]);
  EXPECT_TRUE(right.right()) << right.largest_error << " of " << right.bound;
  EXPECT_GT(right.largest_error, 0);
  EXPECT_LT(right.bound, 1e-3 * right.largest);
  single[17] += 0.01 * right.largest;
  EXPECT_FALSE(compared("p", DType::f32, Elements(single), expected[0], moved[0]).right());
}

TEST(Rounding, IntegersAreExactAndNothingIsForgiven) {
  const Elements expected = {1, 2, 3};
  EXPECT_TRUE(compared("n", DType::i64, {1, 2, 3}, expected, expected).right());
  EXPECT_FALSE(compared("n", DType::i64, {1, 2, 4}, expected, expected).right());
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(compared("y", DType::f32, {1, nan, 3}, expected, expected).right());
  EXPECT_FALSE(compared("y", DType::f32, {1, infinity, 3}, expected, expected).right());
  EXPECT_TRUE(compared("y", DType::f32, {1, nan, infinity}, {1, nan, infinity}, {1, nan, infinity}).right());
  EXPECT_FALSE(compared("y", DType::f32, {1, nan, 5}, {1, nan, infinity}, {1, nan, infinity}).right());
}

TEST(Rounding, InputsForChecksAreTheSameForTheSameSeed) {
  file::GraphFile file;
  file.input("x", {3, 5}).input("ids", {7}, file::i64).node("Relu", {"x"}, {"y"}).node("Neg", {"ids"}, {"z"});
  file.output("y").output("z");
  const Graph graph = folded(file::read(file), "m.onnx");
  const auto first = check_inputs(graph, 3), again = check_inputs(graph, 3), other = check_inputs(graph, 4);
  EXPECT_EQ(first.at("x"), again.at("x"));
  EXPECT_NE(first.at("x"), other.at("x"));
  ASSERT_EQ(first.at("ids").size(), 7u);
  for (std::size_t e = 0; e < 7; ++e) EXPECT_TRUE(first.at("ids")[e] == 0 || first.at("ids")[e] == 1);
}

}  // namespace
