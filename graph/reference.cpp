#include "graph/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "codegen/expression/reference.h"
#include "graph/operators.h"

namespace graft::graph {

codegen::Elements evaluated(const codegen::Computation& computation,
                            const std::function<codegen::Elements(int operand)>& elements,
                            const codegen::Foreign* foreign) {
  std::vector<codegen::Elements> operands(computation.tensors.size());
  for (std::size_t t = 0; t < operands.size(); ++t)
    if (const int number = operand_of(computation.tensors[t]); number >= 0) operands[t] = elements(number);
  if (foreign != nullptr) return codegen::evaluated(*foreign, computation, operands);
  codegen::ReferenceSettings values;
  values.magnitudes = false;
  base::Monitor nobody;
  codegen::Reference all = codegen::reference(computation, std::move(operands), values, nobody);
  return std::move(all.tensors[std::size_t(computation.tensor_named("y"))]);
}

double work_of(const codegen::Computation& computation) {
  double work = 0;
  for (const codegen::Stage& stage : computation.stages) {
    double points = double(stage.value.nodes.size());
    for (const codegen::Axis& axis : stage.axes) points *= double(axis.extent);
    work += points;
  }
  return work;
}

namespace {

std::vector<Result> results_of(const Graph& graph, const Node& node, std::string_view place) {
  const auto operands = operands_of(graph, node);
  if (!operands) throw base::UserError(place, fmt::format("{}: shapes are not known", label(graph, node)));
  auto results = results_of(graph, node, *operands, place);
  if (!results) throw base::UserError(place, fmt::format("{}: {}", label(graph, node), results.reason().text));
  return std::move(results).value();
}

// A run of the nodes in order. Values are dropped when nothing needs them any more.
class Evaluation {
 public:
  Evaluation(const Graph& graph, const std::map<std::string, codegen::Elements>& inputs, std::string_view place)
      : graph_(graph),
        place_(place),
        values_(graph.values.size()),
        is_left_out_(graph.values.size()),
        readers_(graph.values.size()) {
    for (const Node& node : graph.nodes)
      for (const int operand : node.operands)
        if (operand >= 0) ++readers_[std::size_t(operand)];
    for (const int output : graph.outputs) ++readers_[std::size_t(output)];
    take(inputs);
  }

  void run(double most_work, const Look& look, base::Monitor& monitor) {
    std::int64_t done = 0;
    for (const Node& node : graph_.nodes) {
      base::check_stop(monitor);
      monitor.progress("reference", done++, std::int64_t(graph_.nodes.size()));
      compute(node, most_work, look);
      for (const int value : node.operands)
        if (value >= 0 && --readers_[std::size_t(value)] == 0) values_[std::size_t(value)] = {};
    }
  }

 private:
  codegen::Elements elements(int value) const {
    const Known& known = graph_.values[std::size_t(value)].known;
    return known ? known->elements() : values_[std::size_t(value)];
  }

  void take(const std::map<std::string, codegen::Elements>& inputs) {
    std::vector<std::string> names;
    for (const int input : graph_.inputs) {
      const Value& value = graph_.values[std::size_t(input)];
      names.push_back(value.name);
      const auto given = inputs.find(value.name);
      if (given == inputs.end())
        throw base::UserError(place_, fmt::format("input {} is missing", in_quotes(value.name)));
      if (std::int64_t(given->second.size()) != elements_of(*value.shape))
        throw base::UserError(place_, fmt::format("input {}: {} elements are given, its shape is {}",
                                                  in_quotes(value.name), given->second.size(), to_text(*value.shape)));
      values_[std::size_t(input)] = given->second;
    }
    for (const auto& [name, elements] : inputs)
      if (std::find(names.begin(), names.end(), name) == names.end())
        throw base::UserError(place_, fmt::format("'{}' is not an input{}", name, base::did_you_mean(name, names)));
  }

  void compute(const Node& node, double most_work, const Look& look) {
    const bool is_open = std::any_of(node.operands.begin(), node.operands.end(),
                                     [&](int operand) { return operand >= 0 && is_left_out_[std::size_t(operand)]; });
    const std::vector<Result> results = is_open ? std::vector<Result>() : results_of(graph_, node, place_);
    const auto operand = [&](int number) { return elements(node.operands[std::size_t(number)]); };
    for (std::size_t r = 0; r < node.results.size(); ++r) {
      if (node.results[r] < 0) continue;
      const std::size_t value = std::size_t(node.results[r]);
      if (is_open || (results[r].computation && work_of(*results[r].computation) > most_work)) {
        is_left_out_[value] = true;
        continue;
      }
      const Result& result = results[r];
      values_[value] = result.known          ? result.known->elements()
                       : result.same_as >= 0 ? operand(result.same_as)
                                             : evaluated(*result.computation, operand, result.foreign.get());
      if (look) look(node, int(value), values_[value]);
    }
  }

  const Graph& graph_;
  const std::string_view place_;
  std::vector<codegen::Elements> values_;
  std::vector<bool> is_left_out_;
  std::vector<int> readers_;  // still to come
};

}  // namespace

double work_of(const Graph& graph, std::string_view place) {
  double work = 0;
  for (const Node& node : graph.nodes)
    for (const Result& result : results_of(graph, node, place))
      if (result.computation) work += work_of(*result.computation);
  return work;
}

void look_at(const Graph& graph, const std::map<std::string, codegen::Elements>& inputs, std::string_view place,
             double most_work, const Look& look, base::Monitor& monitor) {
  Evaluation(graph, inputs, place).run(most_work, look, monitor);
}

}  // namespace graft::graph
