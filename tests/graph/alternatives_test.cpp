#include "graph/alternatives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "codegen/schedule/rules.h"
#include "graph/layouts.h"
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

struct Opened {
  Graph graph;
  OpenPlan open;
};
Opened opened(const Graph& read, std::int64_t bits = 256) {
  Opened out{folded(read, "m.onnx"), {}};
  out.open = open_plan(out.graph, vector_target(bits), "m.onnx");
  add_layouts(out.open, vector_target(bits));
  return out;
}
Opened opened(const GraphFile& file) {
  return opened(file::read(file, 17));
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

// By kernel, so that different ones are chosen.
std::vector<double> random_seconds(const OpenPlan& open, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const double copies = 1e-3 * double(1 + seed % 1000);
  std::vector<double> seconds;
  for (std::size_t k = 0; k < open.plan.kernels.size(); ++k)
    seconds.push_back((k < open.kernels_of_calls ? 1 : copies) * double(random() % 1000 + 1) * 1e-6);
  return seconds;
}

bool is_in_blocks(const OpenPlan& open, int buffer) {
  const auto copy = open.copies.find(buffer);
  return copy != open.copies.end() && copy->second.is_into;
}

// So that whatever can be in blocks is.
std::vector<double> fast_in_blocks(const OpenPlan& open) {
  std::vector<double> seconds(open.plan.kernels.size(), 1);
  for (const Plan::Call* const call : all_calls(open.steps)) {
    bool is_any = is_in_blocks(open, call->result);
    for (const int operand : call->operands) is_any |= is_in_blocks(open, operand);
    if (is_any) seconds[std::size_t(call->kernel)] = 0;
  }
  return seconds;
}

std::ptrdiff_t in_blocks(const Plan& plan) {
  return std::count_if(plan.calls.begin(), plan.calls.end(), [&](const Plan::Call& call) {
    return plan.buffers[std::size_t(call.result)].shape.size() == 5;
  });
}

TEST(Alternatives, AnyChoiceComputesTheSame) {
  const Opened network = opened(::network());
  ASSERT_TRUE(has_alternatives(network.open));
  EXPECT_EQ(fusions(network.open), 1u);
  const std::vector<Elements> expected = outputs_of(first_choice(network.open), network.graph);
  std::set<std::string> different;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<double> seconds =
        seed == 0 ? fast_in_blocks(network.open) : random_seconds(network.open, 991 * seed);
    const Plan plan = best_choice(network.open, seconds);
    StoredConstants constants;
    different.insert(stored(plan, constants).at("calls").to_json());
    const std::vector<Elements> got = outputs_of(plan, network.graph);
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t e = 0; e < expected[0].size(); ++e) ASSERT_NEAR(got[0][e], expected[0][e], 1e-9);
  }
  EXPECT_GE(different.size(), 10u);
}

// Batches, groups, transposed convolutions, integers, views, reductions: whatever has forms computes the same in them.
TEST(Alternatives, AnyChoiceOfARandomGraphComputesTheSame) {
  int with_choice = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    RandomSizes sizes;
    sizes.most_extent = 8;
    sizes.nodes = int(4 + seed % 12);
    const Opened network = opened(random_graph(seed, sizes), 128);
    if (!has_alternatives(network.open)) continue;
    ++with_choice;
    const auto inputs = random_inputs(network.graph, seed);
    const std::vector<Elements> expected = run(first_choice(network.open), inputs);
    for (const std::vector<double>& seconds : {fast_in_blocks(network.open), random_seconds(network.open, 3 * seed),
                                               random_seconds(network.open, 77 + seed)}) {
      const std::vector<Elements> got = run(kept(best_choice(network.open, seconds)), inputs);
      for (std::size_t o = 0; o < expected.size(); ++o)
        for (std::size_t e = 0; e < expected[o].size(); ++e)
          ASSERT_NEAR(got[o][e], expected[o][e], 1e-9 * (1 + std::abs(expected[o][e]))) << "seed " << seed << "\n"
                                                                                        << to_text(network.graph);
    }
  }
  EXPECT_GE(with_choice, 20);
}

// Constants that a kernel reads in another shape than the model has them in.
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
  const Opened network = opened(file);
  const std::vector<Elements> expected = outputs_of(first_choice(network.open), network.graph);
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const std::vector<double> seconds =
        seed == 0 ? fast_in_blocks(network.open) : random_seconds(network.open, 991 * seed);
    const std::vector<Elements> got = outputs_of(best_choice(network.open, seconds), network.graph);
    for (std::size_t e = 0; e < expected[0].size(); ++e) ASSERT_NEAR(got[0][e], expected[0][e], 1e-9);
  }
}

TEST(Alternatives, AKernelWithoutATimeDecidesNothing) {
  const OpenPlan open = opened(::network()).open;
  std::vector<double> seconds = fast_in_blocks(open);
  for (const std::vector<Step>& form : open.steps.at(1).alternatives)
    seconds[std::size_t(form.front().call.kernel)] = std::numeric_limits<double>::infinity();
  EXPECT_GE(in_blocks(best_choice(open, seconds)), 4);
}

TEST(Layouts, KernelsOfValuesInBlocksReadBlocksAlone) {
  const OpenPlan open = opened(::network()).open;
  const Plan plan = best_choice(open, fast_in_blocks(open));
  // No copies: every call has a form for it.
  EXPECT_EQ(plan.calls.size(), first_choice(open).calls.size());
  std::vector<std::string> labels;
  for (const Plan::Call& call : plan.calls) {
    const Plan::Buffer& result = plan.buffers[std::size_t(call.result)];
    if (result.shape.size() != 5) labels.push_back(call.label);
  }
  // 12 and 20 channels go into blocks of 4; blocks of channels of one element would be in the same order.
  EXPECT_EQ(labels, (std::vector<std::string>{"node 11 (GlobalAveragePool, Sigmoid)",
                                              "node 13 (Mul, Erf, Mul, GlobalAveragePool)", "node 18 (MatMul)"}));
}

// ---- the least sum, by trying everything

using CallList = std::vector<const Plan::Call*>;

// All lists of calls that steps allow.
std::vector<CallList> all_lists(const std::vector<Step>& steps) {
  std::vector<CallList> lists = {{}};
  for (const Step& step : steps) {
    std::vector<CallList> ends;
    if (step.alternatives.empty()) ends = {{&step.call}};
    for (const std::vector<Step>& alternative : step.alternatives)
      for (CallList& end : all_lists(alternative)) ends.push_back(std::move(end));
    std::vector<CallList> longer;
    for (const CallList& list : lists)
      for (const CallList& end : ends) {
        longer.push_back(list);
        longer.back().insert(longer.back().end(), end.begin(), end.end());
      }
    lists = std::move(longer);
  }
  return lists;
}

// Byte by byte: where a value is in each way, what is read and not there is copied; all of it if nothing is there.
double sum_of(const OpenPlan& open, const CallList& calls, const std::vector<double>& seconds) {
  double sum = 0;
  std::map<std::size_t, std::vector<bool>> is_there;  // bytes, by the whole
  std::vector<std::pair<int, int>> written;           // both buffers
  const auto set = [&](int buffer) {
    const std::size_t whole = whole_of(open.plan, buffer);
    std::vector<bool>& bytes = is_there[whole];
    bytes.resize(std::size_t(open.plan.buffers[whole].bytes()));
    const Plan::Buffer& own = open.plan.buffers[std::size_t(buffer)];
    std::fill_n(bytes.begin() + own.offset, own.bytes(), true);
  };
  const auto present = [&](int buffer) {
    const std::vector<bool>& bytes = is_there[whole_of(open.plan, buffer)];
    const Plan::Buffer& own = open.plan.buffers[std::size_t(buffer)];
    return bytes.empty() ? 0 : std::count(bytes.begin() + own.offset, bytes.begin() + own.offset + own.bytes(), true);
  };
  const auto copy = [&](int buffer) {
    sum += seconds[std::size_t(open.copies.at(buffer).kernel)];
    set(buffer);
  };
  for (const Plan::Call* const call : calls) {
    sum += seconds[std::size_t(call->kernel)];
    for (const int operand : call->operands) {
      if (!open.copies.contains(operand)) continue;
      const std::int64_t bytes = open.plan.buffers[std::size_t(operand)].bytes(), there = present(operand);
      if (there == bytes) continue;
      if (there == 0) copy(operand);
      for (const auto& [one, other] : written)
        for (const int piece : {one, other})
          if (there > 0 && whole_of(open.plan, piece) == whole_of(open.plan, operand) &&
              present(piece) < open.plan.buffers[std::size_t(piece)].bytes())
            copy(piece);
    }
    const auto result = open.copies.find(call->result);
    if (result == open.copies.end()) continue;
    set(call->result);
    written.emplace_back(call->result, result->second.from);
  }
  return sum;
}

double least_sum(const OpenPlan& open, const std::vector<double>& seconds) {
  double least = std::numeric_limits<double>::infinity();
  for (const CallList& calls : all_lists(open.steps)) least = std::min(least, sum_of(open, calls, seconds));
  return least;
}

// The sum of the calls that a plan has.
double sum_of(const Plan& plan, const OpenPlan& open, const std::vector<double>& seconds) {
  double sum = 0;
  for (const Plan::Kernel& kernel : plan.kernels) {
    const auto own = std::find_if(open.plan.kernels.begin(), open.plan.kernels.end(),
                                  [&](const auto& each) { return each.workload.key() == kernel.workload.key(); });
    sum += double(kernel.calls) * seconds.at(std::size_t(own - open.plan.kernels.begin()));
  }
  return sum;
}

// A depthwise convolution that may be one with its product, twice; branches that are joined, and a value that three
// calls read.
GraphFile choices() {
  GraphFile file;
  file.input("x", {1, 3, 6, 6});
  convolution(file, "first", "x", "a", {8, 3, 3, 3}, 1);
  convolution(file, "deep", "a", "b", {8, 1, 3, 3}, 1, 8);
  convolution(file, "narrow", "b", "c", {8, 8, 1, 1}, 0);
  convolution(file, "left", "c", "d", {8, 8, 3, 3}, 1);
  convolution(file, "right", "c", "e", {16, 8, 1, 1}, 0);
  file.node("Concat", {"d", "e"}, {"f"}, {attribute("axis", std::int64_t(1))});
  convolution(file, "deeper", "f", "g", {24, 1, 3, 3}, 1, 24);
  convolution(file, "last", "g", "h", {8, 24, 1, 1}, 0);
  file.node("Add", {"h", "c"}, {"y"}).output("y");
  return file;
}

TEST(Alternatives, TheBestChoiceIsTheLeastSum) {
  const OpenPlan open = opened(choices()).open;
  ASSERT_EQ(fusions(open), 2u);
  const std::vector<bool> needed = candidates(open, std::vector<bool>(open.plan.kernels.size()));
  std::set<std::size_t> calls;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    std::vector<double> seconds = random_seconds(open, 7919 * seed), given = seconds;
    // Every second time only the copies of the largest values are known; the others take as long by byte.
    for (const auto& [buffer, copy] : open.copies) {
      const auto of = [&](const auto& other) {
        return needed[std::size_t(other.second.kernel)] && other.second.is_into == copy.is_into;
      };
      const auto largest = std::find_if(open.copies.begin(), open.copies.end(), of);
      ASSERT_NE(largest, open.copies.end());
      if (seed % 2 == 0 || needed[std::size_t(copy.kernel)]) continue;
      given[std::size_t(copy.kernel)] = std::numeric_limits<double>::infinity();
      const auto bytes = [&](int each) { return double(open.plan.buffers[std::size_t(each)].bytes()); };
      seconds[std::size_t(copy.kernel)] =
          seconds[std::size_t(largest->second.kernel)] * bytes(buffer) / bytes(largest->first);
    }
    const Plan best = best_choice(open, given);
    calls.insert(best.calls.size());
    EXPECT_NEAR(sum_of(best, open, seconds), least_sum(open, seconds), 1e-12) << seed;
  }
  EXPECT_GE(calls.size(), 4u);
}

TEST(Alternatives, OnlyWhatCanMatterIsTimed) {
  const OpenPlan open = opened(choices()).open;
  std::vector<bool> known(open.plan.kernels.size());
  const auto wanted = [&] {
    const std::vector<bool> all = candidates(open, known);
    return std::count(all.begin(), all.end(), true);
  };
  const auto kernels = std::ptrdiff_t(open.kernels_of_calls);  // and two copies
  EXPECT_EQ(wanted(), kernels + 2);
  const auto place = std::find_if(open.steps.begin(), open.steps.end(), [](const Step& step) {
    return !step.alternatives.empty() && step.alternatives[0].size() > 1;
  });
  ASSERT_NE(place, open.steps.end());
  const std::vector<Step>&several = place->alternatives.at(0), &one = place->alternatives.at(1);
  ASSERT_EQ(several.size(), 2u);
  ASSERT_EQ(one.size(), 1u);
  // One of two kernels is known: both ways are open.
  known[std::size_t(several[0].alternatives.at(0).at(0).call.kernel)] = true;
  EXPECT_EQ(wanted(), kernels + 2);
  // One kernel in place of both, in blocks: neither they nor its other form are needed.
  known[std::size_t(one[0].alternatives.at(1).at(0).call.kernel)] = true;
  EXPECT_EQ(wanted(), kernels + 1 - std::ptrdiff_t(all_calls(several).size()));
  // Both ways are known; of what is known as ONNX has it, the other form is still needed.
  known[std::size_t(several[1].alternatives.at(0).at(0).call.kernel)] = true;
  EXPECT_EQ(wanted(), kernels + 1);
  known.assign(known.size(), true);
  EXPECT_EQ(wanted(), kernels + 2);
}

TEST(Layouts, NothingIsChosenWhereNothingConvolvesOrThereAreNoVectors) {
  GraphFile file;
  file.input("x", {1, 8, 16, 16}).node("Relu", {"x"}, {"r"}).node("Softmax", {"r"}, {"y"}).output("y");
  EXPECT_FALSE(has_alternatives(opened(file).open));
  OpenPlan scalar = open_plan(folded(file::read(network(), 17), "m.onnx"), Target(), "m.onnx");
  add_layouts(scalar, Target());
  EXPECT_FALSE(has_alternatives(scalar));
}

TEST(Layouts, InputsAndOutputsStayAsTheyAre) {
  GraphFile file;
  file.input("x", {1, 8, 6, 6});
  convolution(file, "one", "x", "a", {8, 8, 3, 3}, 1);
  convolution(file, "two", "a", "y", {16, 8, 3, 3}, 1);
  file.output("y");
  const OpenPlan open = opened(file).open;
  const Plan plan = best_choice(open, fast_in_blocks(open));
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
  const OpenPlan open = opened(file).open;
  bool has_choice = false;
  for (const Step& step : open.steps) {
    const std::string label = all_calls({step}).front()->label;
    if (label.find("MatMul") != std::string::npos && label.find("Transpose") == std::string::npos)
      EXPECT_TRUE(step.alternatives.empty()) << label;
    else
      has_choice |= !step.alternatives.empty();
  }
  EXPECT_TRUE(has_choice);  // of the value between the convolutions
}

}  // namespace
