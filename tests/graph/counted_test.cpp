// Operators of which only a run knows how many results there are.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "tests/graph/support/kept_plan.h"
#include "tests/graph/support/onnx_file.h"
#include "tests/graph/support/run_plan.h"
#include "tests/graph/support/small.h"
#include "tests/support/refusal.h"

namespace {

using namespace graft::graph;
using file::attribute;
using file::GraphFile;
using graft::codegen::Elements;
using Inputs = std::map<std::string, Elements>;

// The outputs, by the graph and by its plan, which must agree; the last one is a count.
std::vector<Elements> outputs_of(const GraphFile& made, const Inputs& inputs) {
  const Graph graph = folded(file::read(made, 18), "m.onnx");
  EXPECT_TRUE(graph.values[std::size_t(graph.outputs.back())].name.ends_with(".count"));
  const Plan plan = planned(graph, vector_target(), "m.onnx");
  graft::base::Monitor nobody;
  std::vector<Elements> is = run(kept(plan), inputs);
  EXPECT_EQ(is, reference(graph, inputs, "m.onnx", nobody));
  return is;
}

TEST(Counted, PlacesThatAreNotZeroAndWhatIsThere) {
  GraphFile made;
  made.input("x", {2, 3}).node("Relu", {"x"}, {"r"}).node("NonZero", {"r"}, {"at"});
  made.node("Transpose", {"at"}, {"rows"}, {attribute("perm", std::vector<std::int64_t>{1, 0})});
  made.node("GatherND", {"x", "rows"}, {"y"}).output("at").output("y");
  const auto is = outputs_of(made, {{"x", Elements{-1, 2, 0, 3, -4, 5}}});
  ASSERT_EQ(is.size(), 3u);
  EXPECT_EQ(is[0], (Elements{0, 1, 1, 1, 1, 1, 1, 0, 2, 2, 2, 2}));
  EXPECT_EQ(is[1], (Elements{2, 3, 5, 5, 5, 5}));  // the last one again
  EXPECT_EQ(is[2], Elements{3});
}

TEST(Counted, PartsThatAConditionKeeps) {
  GraphFile made;
  made.input("x", {2, 3}).input("c", {3}, file::boolean);
  made.node("Compress", {"x", "c"}, {"y"}, {attribute("axis", 1)}).output("y");
  const auto is = outputs_of(made, {{"x", Elements{1, 2, 3, 4, 5, 6}}, {"c", Elements{0, 1, 0}}});
  EXPECT_EQ(is[0], (Elements{2, 2, 2, 5, 5, 5}));
  EXPECT_EQ(is[1], Elements{1});
}

TEST(Counted, DifferentRowsAlongAnAxis) {
  GraphFile made;
  made.input("x", {2, 4}).node("Unique", {"x"}, {"y", "first", "which", "times"}, {attribute("axis", 1)});
  made.output("y").output("first").output("which").output("times");
  const auto is = outputs_of(made, {{"x", Elements{3, 1, 3, 2, 0, 5, 0, 9}}});
  ASSERT_EQ(is.size(), 5u);
  EXPECT_EQ(is[0], (Elements{1, 2, 3, 3, 5, 9, 0, 0}));
  EXPECT_EQ(is[1], (Elements{1, 3, 0, 0}));
  EXPECT_EQ(is[2], (Elements{2, 0, 2, 1}));
  EXPECT_EQ(is[3], (Elements{1, 1, 2, 2}));
  EXPECT_EQ(is[4], Elements{3});
}

TEST(Counted, BoxesThatAreLeftAndTheirCorners) {
  GraphFile made;
  const std::vector<float> half = {0.5F}, low = {0.1F};
  made.input("b", {1, 3, 4}).input("s", {1, 1, 3}).integers("most", {1}, {2}).integers("two", {}, {2});
  made.integers("flat", {2}, {3, 4}).weight("half", {1}, half).weight("low", {1}, low);
  made.node("Sigmoid", {"s"}, {"score"})
      .node("NonMaxSuppression", {"b", "score", "most", "half", "low"}, {"chosen"})
      .node("Gather", {"chosen", "two"}, {"box"}, {attribute("axis", 1)})
      .node("Reshape", {"b", "flat"}, {"all"})
      .node("Gather", {"all", "box"}, {"y"})
      .output("chosen")
      .output("y");
  const auto is = outputs_of(made, {{"b", Elements{0, 0, 4, 4, 0, 0, 4, 3, 5, 5, 6, 6}}, {"s", Elements{1, 2, 0}}});
  EXPECT_EQ(is[0], (Elements{0, 0, 1, 0, 0, 2}));  // the first overlaps the second, which is better
  EXPECT_EQ(is[1], (Elements{0, 0, 4, 3, 5, 5, 6, 6}));
  EXPECT_EQ(is[2], Elements{2});
  const auto none =
      outputs_of(made, {{"b", Elements{0, 0, 4, 4, 0, 0, 4, 3, 5, 5, 6, 6}}, {"s", Elements{-9, -9, -9}}});
  EXPECT_EQ(none[0], (Elements{0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(none[2], Elements{0});
}

// Slices whose places only a run knows: from the end and beyond it, backwards, and none.
TEST(Counted, PartsBetweenPlacesOfARun) {
  const auto between = [](double begin, double end, std::int64_t step) {
    GraphFile made;
    made.input("x", {2, 4}).input("begin", {1}, file::i64).input("end", {1}, file::i64);
    made.integers("axis", {1}, {1}).integers("step", {1}, {step});
    made.node("Slice", {"x", "begin", "end", "axis", "step"}, {"y"}).output("y");
    return outputs_of(made, {{"x", Elements{1, 2, 3, 4, 5, 6, 7, 8}}, {"begin", {begin}}, {"end", {end}}});
  };
  EXPECT_EQ(between(1, 3, 1), (std::vector<Elements>{{2, 3, 3, 3, 6, 7, 7, 7}, {2}}));
  EXPECT_EQ(between(-3, 9e15, 1), (std::vector<Elements>{{2, 3, 4, 4, 6, 7, 8, 8}, {3}}));
  EXPECT_EQ(between(0, 4, 3), (std::vector<Elements>{{1, 4, 5, 8}, {2}}));
  EXPECT_EQ(between(9, -9, -2), (std::vector<Elements>{{4, 2, 8, 6}, {2}}));
  EXPECT_EQ(between(3, 1, 1)[1], Elements{0});
}

TEST(Counted, StepsThatDoNotFitAreRefused) {
  const auto said = [](const std::vector<std::int64_t>& steps) {
    GraphFile made;
    made.input("x", {4}).input("begin", {1}, file::i64).input("end", {1}, file::i64).integers("axis", {1}, {0});
    made.integers("step", {std::int64_t(steps.size())}, steps);
    made.node("Slice", {"x", "begin", "end", "axis", "step"}, {"y"}).output("y");
    return graft::codegen::refusal([&] { return folded(file::read(made, 18), "m.onnx"); });
  };
  EXPECT_NE(said({INT64_MIN}).find("a step of no row or more than all"), std::string::npos);
  EXPECT_NE(said({0}).find("a step of no row or more than all"), std::string::npos);
  EXPECT_NE(said({}).find("its axes and steps do not fit"), std::string::npos);
}

// Along any axis, of more elements than are compared with each other.
TEST(Counted, TheLargestOfManyElements) {
  GraphFile made;
  made.input("x", {2, 1500, 3}).integers("k", {1}, {2});
  made.node("TopK", {"x", "k"}, {"v", "at"}, {attribute("axis", 1)}).output("v").output("at");
  const Graph graph = folded(file::read(made, 18), "m.onnx");
  ASSERT_EQ(graph.outputs.size(), 2u);
  std::vector<double> x(9000);
  for (std::size_t e = 0; e < x.size(); ++e) x[e] = double((e * 7919) % 9001);
  const std::vector<Elements> is = run(kept(planned(graph, vector_target(), "m.onnx")), {{"x", Elements(x)}});
  for (std::size_t n = 0; n < 2; ++n)
    for (std::size_t c = 0; c < 3; ++c) {
      std::vector<std::pair<double, double>> all;
      for (std::size_t e = 0; e < 1500; ++e) all.emplace_back(-x[n * 4500 + 3 * e + c], double(e));
      std::sort(all.begin(), all.end());
      for (std::size_t k = 0; k < 2; ++k) {
        EXPECT_EQ(is[0][n * 6 + 3 * k + c], -all[k].first);
        EXPECT_EQ(is[1][n * 6 + 3 * k + c], all[k].second);
      }
    }
}

// What does not depend on a run has no count.
TEST(Counted, ConstantsAreKnown) {
  GraphFile made;
  const std::vector<float> numbers = {0, 2, 3};
  made.input("x", {3}).weight("c", {3}, numbers).node("NonZero", {"c"}, {"at"}).output("at");
  made.node("Relu", {"x"}, {"y"}).output("y");
  const Graph graph = folded(file::read(made, 18), "m.onnx");
  ASSERT_EQ(graph.outputs.size(), 2u);
  EXPECT_EQ(graph.values[std::size_t(graph.outputs[0])].known->integers(), (std::vector<std::int64_t>{1, 2}));
}

}  // namespace
