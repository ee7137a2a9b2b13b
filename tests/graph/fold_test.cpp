#include "graph/fold.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/graph/support/onnx_file.h"
#include "tests/support/refusal.h"

namespace {

using namespace graft::graph;
using graft::codegen::contains;
using graft::codegen::Elements;
using graft::codegen::refusal;
using List = std::vector<std::int64_t>;

std::vector<std::string> operations(const Graph& graph) {
  std::vector<std::string> all;
  for (const Node& node : graph.nodes) all.push_back(node.operation);
  return all;
}

Graph folded_file(const file::GraphFile& graph, int version = 17) {
  return folded(file::read(graph, version), "m.onnx");
}

// Shape -> Gather -> Mul -> Concat -> Reshape, as exporters write `x.view(2 * n, -1)`.
TEST(Fold, ArithmeticOfShapesIsGone) {
  file::GraphFile graph;
  graph.input("x", Shape{3, 4, 5}).integers("first", {}, {0}).integers("two", {}, {2}).integers("zero", {1}, {0});
  graph.integers("rest", {1}, {-1})
      .node("Shape", {"x"}, {"shape"})
      .node("Gather", {"shape", "first"}, {"n"})
      .node("Mul", {"n", "two"}, {"rows"})
      .node("Unsqueeze", {"rows", "zero"}, {"rows1"})
      .node("Concat", {"rows1", "rest"}, {"to"}, {file::attribute("axis", 0)})
      .node("Reshape", {"x", "to"}, {"y"})
      .output("y");
  const Graph ready = folded_file(graph);
  EXPECT_EQ(operations(ready), std::vector<std::string>{"Reshape"});
  EXPECT_EQ(*ready.values[std::size_t(ready.outputs[0])].shape, (Shape{6, 10}));
}

TEST(Fold, WhatPassesItsOperandOnIsLeftOut) {
  file::GraphFile graph;
  graph.input("x", Shape{2, 3}).integers("same", {2}, {2, 3});
  graph.node("Identity", {"x"}, {"a"})
      .node("Dropout", {"a"}, {"b"})
      .node("Reshape", {"b", "same"}, {"c"})
      .node("Relu", {"c"}, {"d"})
      .node("Cast", {"d"}, {"y"}, {file::attribute("to", 1)})
      .node("Exp", {"d"}, {"unused"})
      .output("y");
  // The last one keeps the name of the output.
  EXPECT_EQ(operations(folded_file(graph)), (std::vector<std::string>{"Relu", "Cast"}));
}

// In older versions the mask of a Dropout has a type that is not ours; no one asks for it.
TEST(Fold, ResultsThatNothingTakesAreNotWanted) {
  const auto network = [](bool with_mask) {
    file::GraphFile file;
    file.input("x", {2, 3}).node("Relu", {"x"}, {"a"}).node("Dropout", {"a"}, {"b", "mask"}).node("Relu", {"b"}, {"y"});
    if (with_mask) file.output("mask");
    return file.output("y");
  };
  EXPECT_EQ(operations(folded_file(network(false), 9)), (std::vector<std::string>{"Relu", "Relu"}));
  EXPECT_NE(refusal([&] { return folded_file(network(true), 9); }).find("mask"), std::string::npos);
}

TEST(Fold, ConstantsAreComputed) {
  file::GraphFile graph;
  graph.input("x", Shape{2}).weight("a", {2}, {1, 2}).weight("b", {1}, {10});
  graph.node("Mul", {"a", "b"}, {"c"}).node("Neg", {"c"}, {"d"}).node("Add", {"x", "d"}, {"y"}).output("y").output("d");
  const Graph ready = folded_file(graph);
  EXPECT_EQ(operations(ready), std::vector<std::string>{"Add"});
  EXPECT_EQ(ready.values[std::size_t(ready.outputs[1])].known->number(1), -20);
  graft::base::Monitor nobody;
  const auto results = reference(ready, {{"x", Elements{1, 1}}}, "m.onnx", nobody);
  EXPECT_EQ(results[0], (Elements{-9, -19}));
  EXPECT_EQ(results[1], (Elements{-10, -20}));
}

// Integers that double precision does not have are not touched, and used as they are.
TEST(Fold, LargeIntegersStayExact) {
  file::GraphFile graph;
  graph.input("x", Shape{4}).integers("begin", {}, {1}).integers("end", {}, {INT64_MAX}).integers("zero", {1}, {0});
  graph.node("Unsqueeze", {"end", "zero"}, {"ends"}).node("Unsqueeze", {"begin", "zero"}, {"begins"});
  graph.node("Slice", {"x", "begins", "ends"}, {"y"}).output("y");
  EXPECT_EQ(file::results(graph, {{"x", Elements{1, 2, 3, 4}}}).front(), (Elements{2, 3, 4}));
}

file::GraphFile normalised(const std::string& operation, const Shape& weights, int groups) {
  file::GraphFile graph;
  graph.input("x", Shape{1, 4, 5});
  std::vector<float> numbers;
  for (std::int64_t e = 0; e < elements_of(weights); ++e) numbers.push_back(float((e * 7) % 11) - 5);
  graph.weight("w", weights, numbers).weight("bias", {4}, {1, -1, 2, 0.5});
  graph.weight("scale", {4}, {1, 2, 0.5, -1}).weight("shift", {4}, {0, 1, 2, 3});
  graph.weight("mean", {4}, {0.5, 1, -1, 2}).weight("variance", {4}, {1, 4, 0.25, 2});
  graph.node(operation, {"x", "w", "bias"}, {"a"}, {file::attribute("group", groups)});
  graph.node("BatchNormalization", {"a", "scale", "shift", "mean", "variance"}, {"y"}).output("y");
  return graph;
}

TEST(Fold, BatchNormalisationMovesIntoWeights) {
  for (const auto& [operation, weights, groups] : {std::tuple<std::string, Shape, int>{"Conv", {4, 2, 3}, 2},
                                                   {"ConvTranspose", {4, 2, 3}, 2},
                                                   {"ConvTranspose", {4, 4, 2}, 1}}) {
    const file::GraphFile graph = normalised(operation, weights, groups);
    const Graph ready = folded_file(graph);
    EXPECT_EQ(operations(ready), std::vector<std::string>{operation});
    EXPECT_EQ(ready.values[std::size_t(ready.outputs[0])].name, "y");
    std::map<std::string, Elements> x;
    std::vector<double> numbers;
    for (int e = 0; e < 20; ++e) numbers.push_back(e % 7 - 3);
    x["x"] = numbers;
    // The same with the sum as an output, too, which keeps the two apart.
    file::GraphFile apart = graph;
    apart.output("a");
    const auto folded_one = file::results(graph, x).front(), unfolded = file::results(apart, x).front();
    EXPECT_EQ(operations(folded_file(apart)), (std::vector<std::string>{operation, "Mul", "Add"}));
    for (std::size_t e = 0; e < unfolded.size(); ++e) EXPECT_NEAR(folded_one[e], unfolded[e], 1e-4) << operation << e;
  }
}

// One number, or one for each channel, on either side.
TEST(Fold, ArithmeticOfChannelsMovesIntoWeights) {
  file::GraphFile graph;
  graph.input("x", Shape{1, 1, 3}).weight("w", {2, 1, 2}, {1, 2, 3, 4}).weight("c", {1, 2, 1}, {10, 100});
  graph.weight("two", {}, {2}).weight("d", {2, 1}, {0.5, 0.25});
  graph.node("Conv", {"x", "w"}, {"a"})
      .node("Mul", {"c", "a"}, {"b"})
      .node("Sub", {"two", "b"}, {"s"})
      .node("Div", {"s", "two"}, {"q"})
      .node("Add", {"q", "d"}, {"r"})
      .node("Sub", {"r", "two"}, {"y"})
      .output("y");
  EXPECT_EQ(operations(folded_file(graph)), std::vector<std::string>{"Conv"});
  // a = [[1*1+2*2, 1*2+2*3], [3*1+4*2, 3*2+4*3]] = [[5, 8], [11, 18]]; y = (2 - c * a) / 2 + d - 2.
  EXPECT_EQ(file::results(graph, {{"x", Elements{1, 2, 3}}}).front(), (Elements{-25.5, -40.5, -550.75, -900.75}));
}

// A number for each column is not one for each channel.
TEST(Fold, OtherArithmeticStays) {
  file::GraphFile graph;
  graph.input("x", Shape{1, 1, 3}).weight("w", {2, 1, 2}, {1, 2, 3, 4}).weight("columns", {2}, {10, 100});
  graph.node("Conv", {"x", "w"}, {"a"}).node("Mul", {"a", "columns"}, {"y"}).output("y");
  EXPECT_EQ(operations(folded_file(graph)), (std::vector<std::string>{"Conv", "Mul"}));
  EXPECT_EQ(file::results(graph, {{"x", Elements{1, 2, 3}}}).front(), (Elements{50, 800, 110, 1800}));
}

TEST(Fold, IfOfAKnownConditionIsItsBranch) {
  // The branches use a value of the graph around them that is computed after the node in the file.
  const auto branch = [](const std::string& operation) {
    file::GraphFile inner;
    inner.weight("one", {}, {1}).node(operation, {"later", "one"}, {"r"}).output("r");
    return inner.content();
  };
  file::GraphFile graph;
  graph.input("x", Shape{2}).integers("rank", {}, {1});
  graph.node("Equal", {"size", "rank"}, {"condition"})
      .node("If", {"condition"}, {"y"},
            {file::graph_attribute("then_branch", branch("Add")), file::graph_attribute("else_branch", branch("Sub"))})
      .node("Neg", {"x"}, {"later"})
      .node("Size", {"x"}, {"size"})
      .output("y");
  EXPECT_EQ(file::results(graph, {{"x", Elements{5, 6}}}).front(), (Elements{-6, -7}));
}

// s = s + x and all s * round, for as many rounds as `rounds` says, or until the round is `last`.
file::GraphFile loop(std::int64_t rounds, std::int64_t last) {
  file::GraphFile body;
  body.open_input("round", {}, file::i64).open_input("goes_on", {}, file::boolean).open_input("s", {});
  body.integers("last", {}, {last})
      .node("Less", {"round", "last"}, {"again"})
      .node("Add", {"s", "x"}, {"more"})
      .node("Cast", {"round"}, {"number"}, {file::attribute("to", 1)})
      .node("Mul", {"more", "number"}, {"row"})
      .output("again")
      .output("more")
      .output("row");
  file::GraphFile graph;
  graph.input("x", Shape{2}).input("begin", Shape{2}).integers("rounds", {}, {rounds});
  return graph
      .node("Loop", {"rounds", "", "begin"}, {"end", "rows"}, {file::graph_attribute("body", body.content())}, "steps")
      .output("end")
      .output("rows");
}

TEST(Fold, LoopsOfKnownRoundsAreWrittenOut) {
  const std::map<std::string, Elements> inputs = {{"x", {1, 10}}, {"begin", {5, 0}}};
  const std::vector<Elements> counted = file::results(loop(3, 99), inputs);
  EXPECT_EQ(counted[0], (Elements{8, 30}));
  EXPECT_EQ(counted[1], (Elements{0, 0, 7, 20, 16, 60}));
  const std::vector<Elements> ended = file::results(loop(99, 1), inputs);  // the rounds 0 and 1
  EXPECT_EQ(ended[0], (Elements{7, 20}));
  EXPECT_EQ(ended[1], (Elements{0, 0, 7, 20}));
  const Graph ready = folded_file(loop(3, 99));
  std::set<std::string> names;
  for (const Value& value : ready.values) EXPECT_TRUE(names.insert(value.name).second) << value.name;
}

TEST(Fold, LoopsThatAreNotKnownAreRefusedByName) {
  EXPECT_EQ(refusal([] { return folded_file(loop(500'000, 500'000)); }),
            "m.onnx: 1 node cannot be computed: 1 x 'Loop': more than 100000 rounds, as node 'steps' (Loop)");
  file::GraphFile body, graph;
  body.open_input("round", {}, file::i64).open_input("goes_on", {}, file::boolean).open_input("s", {});
  body.node("Identity", {"s"}, {"more"}).output("goes_on").output("more");
  graph.input("x", Shape{2}).input("rounds", Shape{}, file::i64);
  graph.node("Loop", {"rounds", "", "x"}, {"y"}, {file::graph_attribute("body", body.content())}).output("y");
  EXPECT_TRUE(
      contains(refusal([&] { return folded_file(graph); }), "'Loop': a number of rounds that is not a constant"));
}

// What a node needs before a run, and the inputs that would have to be constants for it.
TEST(Fold, RefusalsNameTheInputsToGive) {
  file::GraphFile small, large;
  small.input("x", Shape{3, 10}).input("s", Shape{1}, file::i64).integers("e", {1}, {9});
  small.node("Neg", {"s"}, {"n"}).node("Slice", {"x", "n", "e"}, {"y"}).node("Neg", {"y"}, {"z"}).output("z");
  EXPECT_EQ(refusal([&] { return folded_file(small); }),
            "m.onnx: 1 node cannot be computed: 1 x 'Slice': for other nodes, a place that is not a constant, as node "
            "1 (Slice), which "
            "follows from input 's' (make it a constant, or cut the model before the node)");
  large.input("x", Shape{300}, file::i64).input("v", Shape{1}).node("Expand", {"v", "x"}, {"y"}).output("y");
  EXPECT_TRUE(contains(refusal([&] { return folded_file(large); }),
                       "which follows from input 'x' (cut the model before the node)"));
}

// What would be stacked has the shape that a round would give it.
TEST(Fold, LoopsOfNoRoundsGiveTheirStates) {
  const Graph ready = folded_file(loop(0, 5));
  EXPECT_EQ(*ready.values[std::size_t(ready.outputs[1])].shape, (Shape{0, 2}));
  const auto results = file::results(loop(0, 5), {{"x", {1, 10}}, {"begin", {5, 0}}});
  EXPECT_EQ(results[0], (Elements{5, 0}));
  EXPECT_EQ(results[1].size(), 0u);
}

// s = 2 * s while its sum is below 20, at most `rounds` times.
file::GraphFile doubled(std::int64_t rounds, bool stacks) {
  file::GraphFile body;
  body.open_input("round", {}, file::i64).open_input("goes_on", {}, file::boolean).open_input("s", {});
  body.weight("limit", {1}, {20})
      .node("Add", {"s", "s"}, {"more"})
      .node("ReduceSum", {"more"}, {"sum"}, {file::attribute("keepdims", 1)})
      .node("Less", {"sum", "limit"}, {"again"})
      .output("again")
      .output("more");
  if (stacks) body.node("Neg", {"s"}, {"row"}).output("row");
  file::GraphFile graph;
  graph.input("x", Shape{2}).input("first", Shape{1}, file::boolean).integers("rounds", {1}, {rounds});
  std::vector<std::string> results = {"y"};
  if (stacks) results.emplace_back("rows");
  return graph.node("Loop", {"rounds", "first", "x"}, results, {file::graph_attribute("body", body.content())})
      .output(results.back());
}

TEST(Fold, LoopsMayEndWhenARunSaysSo) {
  const auto result = [](double a, double b, double first, std::int64_t rounds) {
    return file::results(doubled(rounds, false), {{"x", {a, b}}, {"first", {first}}}).front();
  };
  EXPECT_EQ(result(1, 2, 1, 8), (Elements{8, 16}));
  EXPECT_EQ(result(1, 2, 1, 2), (Elements{4, 8}));
  EXPECT_EQ(result(1, 2, 0, 8), (Elements{1, 2}));
  EXPECT_EQ(result(50, 2, 1, 8), (Elements{100, 4}));
  // As many rows as there may be, and how many count; the remaining rows repeat the last one that counts.
  const auto stacked = [](double a, double first) {
    return file::results(doubled(4, true), {{"x", {a, 2}}, {"first", {first}}});
  };
  EXPECT_EQ(stacked(1, 1), (std::vector<Elements>{{-1, -2, -2, -4, -4, -8, -4, -8}, {3}}));
  EXPECT_EQ(stacked(50, 1)[1], Elements{1});
  EXPECT_EQ(stacked(1, 0)[1], Elements{0});
  file::GraphFile taken = doubled(4, true);
  taken.node("Relu", {"rows"}, {"z"}).output("z");
  EXPECT_TRUE(contains(refusal([&] { return folded_file(taken); }),
                       "a number of rounds that depends on data, whose results are stacked for other nodes"));
  EXPECT_TRUE(contains(refusal([&] { return folded_file(doubled(5000, false)); }),
                       "a number of rounds that depends on data, and may be more than 1024"));
}

TEST(Fold, IfOfAConditionOfARunIsAChoice) {
  const auto branch = [](const std::string& operation) {
    return file::GraphFile().node(operation, {"x"}, {"r"}).output("r").content();
  };
  const auto choice = [&](const std::string& other) {
    file::GraphFile graph;
    graph.input("x", Shape{2}).input("c", Shape{1}, file::boolean);
    return graph
        .node(
            "If", {"c"}, {"y"},
            {file::graph_attribute("then_branch", branch("Exp")), file::graph_attribute("else_branch", branch(other))})
        .output("y");
  };
  EXPECT_EQ(file::results(choice("Neg"), {{"x", {0, 0}}, {"c", {1}}}).front(), (Elements{1, 1}));
  EXPECT_EQ(file::results(choice("Neg"), {{"x", {3, -4}}, {"c", {0}}}).front(), (Elements{-3, 4}));
  // The longer one, and how many rows count.
  const auto longer = [&](double condition) {
    return file::results(choice("ReduceSum"), {{"x", {0, 1}}, {"c", {condition}}});
  };
  EXPECT_EQ(longer(1)[1], Elements{2});
  EXPECT_EQ(file::results(choice("Neg"), {{"x", {0, 1}}, {"c", {1}}})[0], longer(1)[0]);
  EXPECT_EQ(longer(0), (std::vector<Elements>{{1, 1}, {1}}));
  file::GraphFile taken = choice("ReduceSum");
  taken.node("Neg", {"y"}, {"z"}).output("z");
  EXPECT_EQ(
      refusal([&] { return folded_file(taken); }),
      "m.onnx: 1 node cannot be computed: 1 x 'If': a condition that is not a constant, and branches of different "
      "shapes ([2] and [1]); give the inputs that it depends on, as node 0 (If)");
  EXPECT_TRUE(contains(refusal([&] { return folded_file(choice("Shape")); }), "different types (f32 and i64)"));
}

// s = s + a and all s * b; a by rows backwards, b by columns.
TEST(Fold, ScansAreWrittenOut) {
  file::GraphFile body;
  body.open_input("s", {}).open_input("a", {}).open_input("b", {});
  body.node("Add", {"s", "a"}, {"more"}).node("Mul", {"more", "b"}, {"row"}).output("more").output("row");
  const auto scan = [&](std::int64_t columns) {
    file::GraphFile graph;
    graph.input("begin", Shape{2}).input("a", Shape{3, 2}).input("b", Shape{2, columns});
    return graph
        .node("Scan", {"begin", "a", "b"}, {"end", "rows"},
              {file::graph_attribute("body", body.content()), file::attribute("num_scan_inputs", 2),
               file::attribute("scan_input_axes", List{0, -1}), file::attribute("scan_input_directions", List{1, 0}),
               file::attribute("scan_output_axes", List{1}), file::attribute("scan_output_directions", List{1})})
        .output("end")
        .output("rows");
  };
  const std::map<std::string, Elements> inputs = {
      {"begin", {1, 2}}, {"a", {1, 2, 3, 4, 5, 6}}, {"b", {1, 2, 3, 10, 20, 30}}};
  const std::vector<Elements> results = file::results(scan(3), inputs);
  // States: (6, 8), (9, 12), (10, 14); rows (6, 80), (18, 240), (30, 420), the last one first, as columns.
  EXPECT_EQ(results[0], (Elements{10, 14}));
  EXPECT_EQ(results[1], (Elements{30, 18, 6, 420, 240, 80}));
  EXPECT_TRUE(contains(refusal([&] { return folded_file(scan(4)); }), "scans 3 and 4 elements"));
  EXPECT_TRUE(contains(refusal([&] { return folded_file(scan(3), 8); }), "version 8 of operators"));
}

TEST(Fold, SequencesOfKnownLengthsAreGone) {
  file::GraphFile graph;
  graph.input("x", Shape{5, 2}).integers("two", {}, {2}).integers("first", {}, {0}).integers("last", {}, {-1});
  graph
      .node("SplitToSequence", {"x", "two"}, {"parts"})  // rows 0 1, 2 3, 4
      .node("SequenceAt", {"parts", "last"}, {"tail"})
      .node("SequenceErase", {"parts"}, {"head"})
      .node("SequenceInsert", {"head", "tail", "first"}, {"turned"})
      .node("ConcatFromSequence", {"turned"}, {"y"}, {file::attribute("axis", 0)})
      .node("SequenceLength", {"turned"}, {"length"})
      .node("SplitToSequence", {"x"}, {"rows"}, {file::attribute("keepdims", 0)})
      .node("ConcatFromSequence", {"rows"}, {"columns"}, {file::attribute("axis", 1), file::attribute("new_axis", 1)})
      .node("SequenceEmpty", {}, {"none"})
      .node("SequenceInsert", {"none", "y"}, {"one"})
      .node("Identity", {"one"}, {"same"})
      .node("SequenceAt", {"same", "first"}, {"z"})
      .output("z")
      .output("length")
      .output("columns");
  const std::vector<Elements> results = file::results(graph, {{"x", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}});
  EXPECT_EQ(results[0], (Elements{8, 9, 0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(results[1], (Elements{3}));
  EXPECT_EQ(results[2], (Elements{0, 2, 4, 6, 8, 1, 3, 5, 7, 9}));
}

TEST(Fold, LoopsMayCarrySequences) {
  file::GraphFile body;
  body.open_input("round", {}, file::i64).open_input("goes_on", {}, file::boolean).open_input("s", {});
  body.node("Cast", {"round"}, {"number"}, {file::attribute("to", 1)})
      .node("Mul", {"x", "number"}, {"row"})
      .node("SequenceInsert", {"s", "row"}, {"more"})
      .output("goes_on")
      .output("more");
  file::GraphFile graph;
  graph.input("x", Shape{2}).integers("rounds", {}, {3});
  graph.node("SequenceEmpty", {}, {"none"})
      .node("Loop", {"rounds", "", "none"}, {"rows"}, {file::graph_attribute("body", body.content())})
      .node("ConcatFromSequence", {"rows"}, {"y"}, {file::attribute("axis", 0)})
      .output("y");
  EXPECT_EQ(file::results(graph, {{"x", {1, 2}}}).front(), (Elements{0, 0, 1, 2, 2, 4}));
}

TEST(Fold, SequencesThatAreNotKnownAreRefused) {
  const auto message = [](const std::string& operation, const std::vector<std::string>& more = {}) {
    file::GraphFile graph;
    graph.input("x", Shape{4}).input("place", Shape{}, file::i64).integers("far", {}, {2}).integers("six", {1}, {6});
    std::vector<std::string> operands = {operation == "SplitToSequence" ? "x" : "parts"};
    operands.insert(operands.end(), more.begin(), more.end());
    graph.node("SequenceConstruct", {"x", "x"}, {"parts"}).node(operation, operands, {"y"});
    graph.output("y");
    return refusal([&] { return folded_file(graph); });
  };
  EXPECT_TRUE(contains(message("SequenceAt", {"place"}), "a place in a sequence that is not a constant"));
  EXPECT_TRUE(contains(message("SequenceAt", {"far"}), "place 2 of 2"));
  EXPECT_TRUE(contains(message("SplitToSequence", {"place"}), "lengths of parts that are not constants"));
  EXPECT_TRUE(contains(message("SplitToSequence", {"six"}), "its parts are more than the extent 4"));
  EXPECT_TRUE(contains(message("SequenceInsert", {"parts"}), "an element of its sequence is missing, or a sequence"));
  EXPECT_TRUE(contains(message("Relu"), "a sequence as an operand"));
  EXPECT_TRUE(contains(message("SequenceErase"), "a sequence as an output of the model"));
}

// Loops within loops have as many parts as the product of their rounds.
TEST(Fold, LoopsWithinLoopsAreLimited) {
  std::string inner;
  for (int depth = 0; depth < 4; ++depth) {
    file::GraphFile body;
    body.open_input("round", {}, file::i64).open_input("goes_on", {}, file::boolean).open_input("s", {});
    if (depth == 0)
      body.node("Neg", {"s"}, {"t"});
    else
      body.integers("many", {}, {1000}).node("Loop", {"many", "", "s"}, {"t"}, {file::graph_attribute("body", inner)});
    inner = body.output("goes_on").output("t").content();
  }
  file::GraphFile graph;
  graph.input("x", Shape{2}).integers("many", {}, {1000});
  graph.node("Loop", {"many", "", "x"}, {"y"}, {file::graph_attribute("body", inner)}).output("y");
  EXPECT_EQ(refusal([&] { return folded(file::read(graph), "m.onnx", {.most_parts = 10'000}); }),
            "m.onnx: written out, its loops have more than 10000 parts");
}

TEST(Fold, InputsMayBeFixed) {
  file::GraphFile graph;
  const std::string inner = file::GraphFile().node("Relu", {"x"}, {"r"}).output("r").content();
  const std::string other = file::GraphFile().node("Neg", {"x"}, {"r"}).output("r").content();
  graph.input("x", Shape{2}).input("rate", Shape{}, file::i64).integers("low", {}, {8000});
  graph.node("Equal", {"rate", "low"}, {"is_low"})
      .node("If", {"is_low"}, {"y"},
            {file::graph_attribute("then_branch", inner), file::graph_attribute("else_branch", other)})
      .output("y");
  const std::int64_t rate = 16000;
  const Known fixed = known(DType::i64, {}, std::span(&rate, 1));
  const auto with = [&](const std::string& name, const Known& number) {
    return folded(with_constants(file::read(graph), {{name, number}}, "m.onnx"), "m.onnx");
  };
  const Graph ready = with("rate", fixed);
  EXPECT_EQ(ready.inputs.size(), 1u);
  EXPECT_EQ(operations(ready).front(), "Neg");
  EXPECT_EQ(refusal([&] { return with("rat", fixed); }), "m.onnx: 'rat' is not an input; did you mean 'rate'?");
  EXPECT_EQ(refusal([&] { return with("x", fixed); }), "m.onnx: input 'x': its type is f32; i64 is given");
}

TEST(Fold, AllNodesThatAreNotSupportedAreNamedAtOnce) {
  file::GraphFile graph;
  graph.input("x", Shape{1, 1, 4}).input("c", Shape{}, file::boolean);
  const std::string other = file::GraphFile().node("ReduceSum", {"x"}, {"r"}).output("r").content();
  graph.node("CumProd", {"x"}, {"a"}, {}, "first").node("CumProd", {"a"}, {"b"}, {}, "second");
  graph.node("Relu", {"b"}, {"d"})
      .node("AveragePool", {"x"}, {"e"},
            {file::attribute("kernel_shape", List{2}), file::attribute("pads", List{-1, 0})});
  const std::string inner = file::GraphFile().node("Relu", {"x"}, {"r"}).output("r").content();
  graph.node("If", {"c"}, {"f"},
             {file::graph_attribute("then_branch", inner), file::graph_attribute("else_branch", other)});
  graph.node("Relu", {"x"}, {"g"}, {file::attribute("slope", 1)});
  graph.node("Neg", {"f"}, {"h"});
  graph.output("d").output("e").output("h").output("g");
  EXPECT_EQ(
      refusal([&] { return folded_file(graph); }),
      "m.onnx: 5 nodes cannot be computed: 1 x 'AveragePool': pads that crop, as node 3 (AveragePool); "
      "2 x 'CumProd': an operator that is not known; export the model with other operators, or give a C function that "
      "computes it, as node 'first' (CumProd); "
      "1 x 'If': a condition that is not a constant, and branches of different shapes ([1,1,4] and [1,1,1]); give the "
      "inputs that it depends on, as node 4 (If); "
      "1 x 'Relu': attribute 'slope', as node 6 (Relu)");
}

TEST(Fold, ConstantsThatFewNumbersMakeAreLimited) {
  file::GraphFile graph;
  graph.integers("shape", {2}, {64, 64});
  graph.node("ConstantOfShape", {"shape"}, {"y"}).output("y");
  FoldLimits limits;
  limits.most_bytes = 1000;
  EXPECT_EQ(refusal([&] { return folded(file::read(graph), "m.onnx", limits); }),
            "m.onnx: node 0 (ConstantOfShape): constants of more than 1000 bytes");
}

// What would take a time that no model needs is not supported.
TEST(Fold, OperandsAndDimensionsAreLimited) {
  file::GraphFile many;
  many.input("x", Shape{1});
  many.node("Sum", std::vector<std::string>(1025, "x"), {"y"}).output("y");
  EXPECT_EQ(refusal([&] { return folded_file(many); }),
            "m.onnx: 1 node cannot be computed: 1 x 'Sum': more than 1024 operands, as node 0 (Sum)");
  file::GraphFile deep;
  deep.input("x", Shape(33, 1)).node("Relu", {"x"}, {"y"}).output("y");
  EXPECT_EQ(refusal([&] { return folded_file(deep); }),
            "m.onnx: 1 node cannot be computed: 1 x 'Relu': operands of more than 32 dimensions, as node 0 (Relu)");
}

TEST(Reference, InputsMustFit) {
  file::GraphFile graph;
  graph.input("image", Shape{2}).node("Relu", {"image"}, {"y"}).output("y");
  const auto message = [&](const std::map<std::string, Elements>& inputs) {
    return refusal([&] { return file::results(graph, inputs); });
  };
  EXPECT_EQ(message({}), "m.onnx: input 'image' is missing");
  EXPECT_EQ(message({{"image", Elements{1}}}), "m.onnx: input 'image': 1 elements are given, its shape is [2]");
  EXPECT_EQ(message({{"image", Elements{1, 2}}, {"imag", Elements{1}}}),
            "m.onnx: 'imag' is not an input; did you mean 'image'?");
}

TEST(Graph, TextIsForPeople) {
  file::GraphFile graph;
  graph.input("x", Shape{1, 2, 4}).weight("w", {2, 2, 1}, {1, 2, 3, 4});
  graph.node("Conv", {"x", "w"}, {"y"}, {file::attribute("strides", List{2})}).output("y");
  EXPECT_EQ(to_text(folded_file(graph)),
            "input x: f32 [1,2,4]\n"
            "constant w: f32 [2,2,1]\n"
            "y: f32 [1,2,2] = Conv(x, w) strides=[2]\n"
            "output y: f32 [1,2,2]\n");
}

// Inputs that are always the same, as numbers.
TEST(Fold, NumbersTakeAnInputsTypeAndShape) {
  file::GraphFile graph;
  graph.input("x", Shape{2, 2}).input("rate", Shape{}, file::i64).input("gain", Shape{2});
  graph.node("Cast", {"rate"}, {"r"}, {file::attribute("to", 1)})
      .node("Mul", {"x", "gain"}, {"a"})
      .node("Mul", {"a", "r"}, {"y"})
      .output("y");
  const auto fixed = [&](const Numbers& numbers) { return with_numbers(file::read(graph), numbers, "m.onnx"); };
  const Graph ready = folded(fixed({{"rate", {3}}, {"gain", {1, 0.5}}}), "m.onnx");
  EXPECT_EQ(ready.inputs.size(), 1u);
  graft::base::Monitor nobody;
  EXPECT_EQ(reference(ready, {{"x", Elements{1, 2, 3, 4}}}, "m.onnx", nobody).front(), (Elements{3, 3, 9, 6}));
  EXPECT_NE(refusal([&] { return fixed({{"rte", {3}}}); }).find("did you mean 'rate'"), std::string::npos);
  EXPECT_NE(refusal([&] { return fixed({{"rate", {1, 2}}}); }).find("its shape is []; 2 numbers"), std::string::npos);
  EXPECT_NE(refusal([&] { return fixed({{"rate", {1.5}}}); }).find("1.5 is not a number of i64"), std::string::npos);
}

TEST(Fold, EqualNodesAreOne) {
  file::GraphFile made;
  const std::vector<float> two = {2}, three = {3};
  made.input("x", {4}).weight("a", {1}, two).weight("b", {1}, two).weight("c", {1}, three);
  made.node("Mul", {"x", "a"}, {"d"}).node("Mul", {"x", "b"}, {"e"}).node("Mul", {"x", "c"}, {"f"});
  made.node("Exp", {"d"}, {"g"}).node("Exp", {"e"}, {"h"}).node("Exp", {"e"}, {"y"});
  made.node("LeakyRelu", {"f"}, {"i"}, {file::attribute("alpha", 0.5F)});
  made.node("LeakyRelu", {"f"}, {"j"}, {file::attribute("alpha", 0.25F)});
  made.node("Sum", {"g", "h", "i", "j"}, {"z"}).output("y").output("z");
  const Graph graph = folded(file::read(made), "m.onnx");
  std::map<std::string, int> nodes;
  for (const Node& node : graph.nodes) ++nodes[node.operation];
  // Outputs have names of their own.
  EXPECT_EQ(nodes, (std::map<std::string, int>{{"Mul", 2}, {"Exp", 2}, {"LeakyRelu", 2}, {"Sum", 1}}));
  graft::base::Monitor nobody;
  const auto is = reference(graph, {{"x", Elements{0, 1, -1, 0.5}}}, "m.onnx", nobody);
  EXPECT_NEAR(is[1][1], 2 * std::exp(2.0) + 6, 1e-6);
}

}  // namespace
