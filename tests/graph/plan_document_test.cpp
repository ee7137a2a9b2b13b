// Plans that are read: what is broken is refused before anything runs.
#include "graph/plan_document.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.h"
#include "graph/inputs.h"
#include "tests/graph/support/kept_plan.h"
#include "tests/graph/support/onnx_file.h"
#include "tests/graph/support/run_plan.h"
#include "tests/graph/support/small.h"
#include "tests/support/refusal.h"

namespace {

using namespace graft::graph;
using graft::base::Document;
using graft::codegen::contains;
using graft::codegen::refusal;
using List = std::vector<std::int64_t>;

// Two products, parts of a concatenation that is an output, and an input that indexes.
Plan small_plan() {
  file::GraphFile file;
  file.input("x", {4, 8}).input("ids", {4}, file::i64).weight("w", {8, 16}, numbers(128, 1));
  file.weight("table", {30, 16}, numbers(480, 2));
  file.node("MatMul", {"x", "w"}, {"a"})
      .node("Gather", {"table", "ids"}, {"b"})
      .node("Concat", {"a", "b"}, {"y"}, {file::attribute("axis", 0)})
      .node("ReduceMax", {"y"}, {"z"}, {file::attribute("axes", List{1})})
      .output("y")
      .output("z");
  const Graph graph = folded(file::read(file, 17), "m.onnx");
  Plan plan = planned(graph, vector_target(), "m.onnx");
  graft::base::Monitor nobody;
  const std::vector<Draw> draws = draws_of(graph, "m.onnx", nobody);
  for (std::size_t i = 0; i < draws.size(); ++i) plan.inputs[i].draw = draws[i];
  return plan;
}

TEST(PlanDocument, KeepsWhatInputsAreDrawnFrom) {
  const Plan plan = small_plan(), again = kept(plan);
  ASSERT_EQ(again.inputs.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(again.inputs[i].draw, plan.inputs[i].draw);
  EXPECT_EQ(again.inputs[1].draw.indexed, 30);
  EXPECT_EQ(check_inputs(again.inputs, 5), check_inputs(plan.inputs, 5));
  const auto inputs = check_inputs(plan.inputs, 1);
  EXPECT_EQ(run(again, inputs), run(plan, inputs));
}

// The document with the value at a path of keys and numbers replaced.
Document changed(const Document& document, const std::vector<std::string>& path, std::size_t at,
                 const Document& value) {
  if (at == path.size()) return value;
  if (document.is_list()) {
    Document::List list = document.as_list();
    const std::size_t place = std::stoul(path[at]);
    list.at(place) = changed(list[place], path, at + 1, value);
    return Document(std::move(list));
  }
  Document map = document;
  return std::move(map).set(path[at], changed(document.at(path[at]), path, at + 1, value));
}

Plan read(const Document& document, const Plan& plan, const std::string& constants) {
  return plan_from(graft::base::parse_json(document.to_json(), "plan"), plan.kernels, constants, "constants.bin");
}

TEST(PlanDocument, WhatIsBrokenIsRefused) {
  const Plan plan = small_plan();
  StoredConstants all;
  const Document document = stored(plan, all);
  const std::string constants = all.taken();
  const struct {
    std::vector<std::string> path;
    Document value;
    const char* words;
  } faults[] = {
      {{"calls", "0", "kernel"}, 99, "99 where there are"},
      {{"calls", "0", "kernel"}, -1, "-1 where there are"},
      {{"calls", "0", "result"}, 0, "an input or a constant that a call would write"},
      {{"calls", "0", "operands", "0"}, 1000, "1000 where there are"},
      {{"calls", "0", "operands"}, Document::list(), "fewer than the kernel takes"},
      {{"inputs", "0", "shape", "0"}, 5, "is not as its input or output"},
      {{"inputs", "0", "shape", "0"}, std::int64_t(1) << 50, "too large"},
      {{"inputs", "0", "type"}, "f13", "'f13' is not a type"},
      {{"buffers", "0", "where"}, "nowhere", "'nowhere' is not a place of buffers"},
      {{"buffers", "0", "number"}, 7, "7 where there are 2"},
      {{"buffers", "0", "shape", "0"}, -4, "below 0"},
      {{"outputs"}, 1, "expected a list"},
  };
  for (const auto& [path, value, words] : faults)
    EXPECT_TRUE(contains(
        refusal([&, &path = path, &value = value] { read(changed(document, path, 0, value), plan, constants); }),
        words))
        << words;
  EXPECT_TRUE(contains(refusal([&] { read(document, plan, constants.substr(1)); }), "constants.bin"));
  EXPECT_TRUE(contains(refusal([&] { read(document, plan, ""); }), "constants.bin: has 0 bytes"));
  Plan other = plan;
  std::swap(other.kernels[0], other.kernels[1]);
  EXPECT_TRUE(contains(refusal([&] { read(document, other, constants); }), "the kernel"));
}

// Numbers of a document that are replaced by others: refused, or a plan that runs.
TEST(PlanDocument, OfOtherNumbersIsRefusedOrRuns) {
  const Plan plan = small_plan();
  StoredConstants all;
  const Document document = stored(plan, all);
  const std::string constants = all.taken();
  const std::string text = document.to_json();
  graft::base::Stream random(1, "numbers");
  int refused = 0, ran = 0;
  for (int n = 0; n < 2000; ++n) {
    std::size_t at = std::size_t(random.below(std::int64_t(text.size())));
    at = text.find_first_of("0123456789", at);
    if (at == std::string::npos) continue;
    const std::size_t end = text.find_first_not_of("0123456789", at);
    const std::string mutated = text.substr(0, at) +
                                std::to_string(random.below(3) == 0 ? random.below(1 << 20) : random.below(12)) +
                                text.substr(end);
    try {
      const Plan read_plan = plan_from(graft::base::parse_json(mutated, "plan"), plan.kernels, constants, "constants");
      run(read_plan, check_inputs(read_plan.inputs, 1));
      ++ran;
    } catch (const graft::base::UserError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 200);
  EXPECT_GT(ran, 100);
}

}  // namespace
