#include "graph/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "base/random.h"
#include "graph/operators.h"
#include "graph/reference.h"

namespace graft::graph {
namespace {

using codegen::DType;
using codegen::Elements;

// Evaluations of what is next to the inputs, in all, to make it finite.
constexpr int most_tries = 24;
// Points of a node's stages; what costs more is not evaluated for this.
constexpr double cheap_work = 1 << 21;
// The same to know what arrives at values: of a network that takes seconds all, of a larger one what takes little.
constexpr double most_work = 0x1p35, most_node_work = 0x1p28;
constexpr std::size_t most_numbers = 256;  // of a value

// Whether all that a computation does with its operands' elements is to move or convert them.
bool only_moves(const codegen::Computation& computation) {
  return std::all_of(computation.stages.begin(), computation.stages.end(), [](const codegen::Stage& stage) {
    return std::all_of(stage.value.nodes.begin(), stage.value.nodes.end(), [](const codegen::ValueNode& node) {
      return node.op == codegen::Op::load || codegen::converts_to(node.op);
    });
  });
}

// By value: the shortest dimension of which its elements are indices; 0: they are used otherwise. `as_they_are`: only
// where nothing is computed of them before.
std::vector<std::int64_t> indexed_extents(const Graph& graph, std::string_view place, bool as_they_are = false) {
  std::vector<std::int64_t> extents(graph.values.size());
  const auto is_index = [&](int value, std::int64_t extent) {
    std::int64_t& own = extents[std::size_t(value)];
    if (extent > 0) own = own == 0 ? extent : std::min(own, extent);
  };
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const auto operands = operands_of(graph, *node);
    const auto results = operands ? results_of(graph, *node, *operands, place) : base::Reason{};
    for (std::size_t r = 0; results && r < node->results.size(); ++r) {
      if (node->results[r] < 0) continue;
      const Result& result = (*results)[r];
      const std::int64_t of_result = extents[std::size_t(node->results[r])];
      if (result.same_as >= 0) is_index(node->operands[std::size_t(result.same_as)], of_result);
      if (!result.computation) continue;
      for (std::size_t t = 0; t < result.computation->tensors.size(); ++t) {
        const int operand = operand_of(result.computation->tensors[t]);
        if (operand < 0 || codegen::is_floating(result.computation->tensors[t].dtype)) continue;
        const int value = node->operands[std::size_t(operand)];
        const std::int64_t own = codegen::indexed_extent(*result.computation, int(t));
        const bool is_condition = result.computation->tensors[t].dtype == DType::u8;
        const bool passes = !is_condition && (!as_they_are || only_moves(*result.computation));
        is_index(value, own > 0 || !passes ? own : of_result);
      }
    }
  }
  return extents;
}

bool may_be_index(const Value& input) {
  return !codegen::is_floating(*input.type) && *input.type != DType::u8;
}

bool has_indices(const Graph& graph) {
  return std::any_of(graph.inputs.begin(), graph.inputs.end(),
                     [&](int input) { return may_be_index(graph.values[std::size_t(input)]); });
}

constexpr Draw other_draws[] = {{0, 1, true}, {0x1p-4, 1}, {1, 1}};

Elements drawn(const Plan::Tensor& input, std::uint64_t seed) {
  base::Stream random(seed, input.name);
  const Draw& from = input.draw;
  std::vector<double> numbers(std::size_t(elements_of(input.shape)));
  const std::size_t row = input.shape.empty() ? 1 : std::size_t(std::max<std::int64_t>(1, input.shape.back()));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    double& number = numbers[i];
    if (codegen::is_floating(input.type) && !from.is_whole)
      number = double(float(from.low + from.width * random.uniform()));
    else if (from.indexed > 0)
      number = double(random.below(std::int64_t(std::min(double(from.indexed), codegen::highest(input.type)))));
    else
      number = double(random.below(2)), number = i % row == 0 ? 1 : number;
  }
  return numbers;
}

bool is_finite(const Elements& elements, DType type) {
  const double most = codegen::largest(type);
  return std::all_of(elements.begin(), elements.end(), [&](double number) { return std::abs(number) <= most; });
}

class Draws {
 public:
  Draws(const Graph& graph, std::string_view place, base::Monitor& monitor)
      : graph_(graph), place_(place), monitor_(monitor) {
    const bool any = has_indices(graph);
    const auto indexed = any ? indexed_extents(graph, place) : std::vector<std::int64_t>(graph.values.size());
    const auto directly = any ? indexed_extents(graph, place, true) : indexed;
    for (const int input : graph.inputs) {
      const Value& value = graph.values[std::size_t(input)];
      Plan::Tensor& tensor = tensors_.emplace_back(Plan::Tensor{value.name, *value.type, *value.shape});
      tensor.draw.indexed = indexed[std::size_t(input)];
      if (may_be_index(value)) tensor.draw.indexed_directly = directly[std::size_t(input)];
      inputs_[value.name] = drawn(tensor, seed);
    }
  }

  std::vector<Draw> made() {
    std::set<int> given_up;  // values that no inputs make finite
    for (auto fault = first_fault(given_up); fault; fault = first_fault(given_up))
      if (!mend(*fault, given_up)) given_up.insert(*fault);
    std::vector<Draw> draws;
    for (const Plan::Tensor& tensor : tensors_) draws.push_back(tensor.draw);
    return draws;
  }

 private:
  // The first result of a cheap node that is not finite though all that the node takes is.
  std::optional<int> first_fault(const std::set<int>& given_up) {
    if (++tries_ > most_tries) return std::nullopt;
    std::vector<bool> finite(graph_.values.size(), true);
    for (std::size_t v = 0; v < finite.size(); ++v)
      if (const Value& value = graph_.values[v]; value.known)
        finite[v] = is_finite(value.known->elements(), *value.type);
    std::optional<int> fault;
    base::QuietMonitor quiet(monitor_);
    look_at(
        graph_, inputs_, place_, cheap_work,
        [&](const Node& node, int value, const Elements& elements) {
          finite[std::size_t(value)] = is_finite(elements, *graph_.values[std::size_t(value)].type);
          const bool takes_finite = std::all_of(node.operands.begin(), node.operands.end(), [&](int operand) {
            return operand < 0 || finite[std::size_t(operand)];
          });
          if (!fault && !finite[std::size_t(value)] && takes_finite && !given_up.contains(value)) fault = value;
        },
        quiet);
    return fault;
  }

  // The floating-point inputs that a value depends on, by place.
  std::vector<std::size_t> inputs_before(int value) const {
    std::vector<bool> before(graph_.values.size());
    before[std::size_t(value)] = true;
    for (auto node = graph_.nodes.rbegin(); node != graph_.nodes.rend(); ++node) {
      const auto is_before = [&](int result) { return result >= 0 && before[std::size_t(result)]; };
      if (!std::any_of(node->results.begin(), node->results.end(), is_before)) continue;
      for (const int operand : node->operands)
        if (operand >= 0) before[std::size_t(operand)] = true;
    }
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < tensors_.size(); ++i)
      if (before[std::size_t(graph_.inputs[i])] && codegen::is_floating(tensors_[i].type)) found.push_back(i);
    return found;
  }

  // Whether one input that is drawn otherwise makes the value finite; it stays so.
  bool mend(int value, const std::set<int>& given_up) {
    for (const std::size_t input : inputs_before(value)) {
      Plan::Tensor& tensor = tensors_[input];
      const Draw before = tensor.draw;
      for (Draw draw : other_draws) {
        draw.indexed = before.indexed, draw.indexed_directly = before.indexed_directly;
        tensor.draw = draw;
        inputs_[tensor.name] = drawn(tensor, seed);
        if (const auto fault = first_fault(given_up); tries_ <= most_tries && (!fault || *fault != value)) return true;
      }
      tensor.draw = before;
      inputs_[tensor.name] = drawn(tensor, seed);
    }
    return false;
  }

  static constexpr std::uint64_t seed = 1;  // of the numbers that are tried
  const Graph& graph_;
  const std::string_view place_;
  base::Monitor& monitor_;
  std::vector<Plan::Tensor> tensors_;  // the inputs
  std::map<std::string, Elements> inputs_;
  int tries_ = 0;
};

// The least, the greatest, and others at even distances. Numbers that are none are left out where there are others.
std::vector<double> some_of(const Elements& elements) {
  std::vector<double> some;
  const std::size_t step = std::max<std::size_t>(1, elements.size() / most_numbers);
  double least = INFINITY, greatest = -INFINITY;
  for (std::size_t e = 0; e < elements.size(); ++e) {
    const double number = elements[e];
    if (std::isnan(number)) continue;
    least = std::min(least, number), greatest = std::max(greatest, number);
    // Not always in the same column.
    if ((e + e / step / 7) % step == 0 && some.size() < most_numbers) some.push_back(number);
  }
  if (least <= greatest) some.insert(some.end(), {least, greatest});
  return some;
}

}  // namespace

std::vector<Draw> draws_of(const Graph& graph, std::string_view place, base::Monitor& monitor) {
  return Draws(graph, place, monitor).made();
}

std::map<std::string, Elements> check_inputs(const std::vector<Plan::Tensor>& inputs, std::uint64_t seed) {
  std::map<std::string, Elements> all;
  for (const Plan::Tensor& input : inputs) all[input.name] = drawn(input, seed);
  return all;
}

std::vector<std::string> indices_outside(const std::vector<Plan::Tensor>& inputs,
                                         const std::map<std::string, Elements>& given) {
  std::vector<std::string> lines;
  for (const Plan::Tensor& input : inputs) {
    const auto own = given.find(input.name);
    const std::int64_t extent = input.draw.indexed_directly;
    if (extent == 0 || own == given.end()) continue;
    const auto outside = std::find_if(own->second.begin(), own->second.end(), [&](double number) {
      return number < -double(extent) || number >= double(extent);
    });
    if (outside != own->second.end())
      lines.push_back(
          fmt::format("input {} has the index {}, and the dimension that it indexes has {} elements: the "
                      "nearest of them is taken",
                      in_quotes(input.name), *outside, extent));
  }
  return lines;
}

Samples samples_of_values(const Graph& graph, const std::map<std::string, Elements>& inputs, std::string_view place,
                          base::Monitor& monitor) {
  Samples samples(graph.values.size());
  for (std::size_t v = 0; v < samples.size(); ++v)
    if (const Known& known = graph.values[v].known) samples[v] = some_of(known->elements());
  for (const int input : graph.inputs)
    if (const auto given = inputs.find(graph.values[std::size_t(input)].name); given != inputs.end())
      samples[std::size_t(input)] = some_of(given->second);
  const double most = work_of(graph, place) <= most_work ? most_work : most_node_work;
  look_at(
      graph, inputs, place, most,
      [&](const Node&, int value, const Elements& elements) { samples[std::size_t(value)] = some_of(elements); },
      monitor);
  return samples;
}

std::map<std::string, codegen::Seen> seen_by_kernels(const OpenPlan& open, const Samples& samples) {
  std::map<std::string, codegen::Seen> seen;
  for (const Plan::Call* const call : all_calls(open.steps)) {
    const codegen::Workload& workload = open.plan.kernels[std::size_t(call->kernel)].workload;
    const auto [own, is_new] = seen.try_emplace(workload.text());
    if (!is_new) continue;
    for (const codegen::Tensor& tensor : workload.computation().tensors) {
      const int operand = operand_of(tensor);
      if (operand < 0) continue;
      const int buffer = call->operands.at(std::size_t(operand));
      const int value = open.plan.buffers[std::size_t(buffer)].value;
      if (value >= 0 && !samples[std::size_t(value)].empty()) own->second[tensor.name] = samples[std::size_t(value)];
    }
  }
  return seen;
}

}  // namespace graft::graph
