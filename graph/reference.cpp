#include "graph/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "codegen/expression/reference.h"
#include "graph/operators.h"

namespace graft::graph {

codegen::Elements evaluated(const codegen::Computation& computation,
                            const std::function<codegen::Elements(int operand)>& elements) {
  std::vector<codegen::Elements> operands(computation.tensors.size());
  for (std::size_t t = 0; t < operands.size(); ++t)
    if (const int number = operand_of(computation.tensors[t]); number >= 0) operands[t] = elements(number);
  codegen::Reference all = codegen::reference(computation, std::move(operands));
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

std::vector<codegen::Elements> reference(const Graph& graph, const std::map<std::string, codegen::Elements>& inputs,
                                         std::string_view place, base::Monitor& monitor) {
  std::vector<codegen::Elements> values(graph.values.size());
  std::vector<int> readers(graph.values.size());  // still to come
  for (const Node& node : graph.nodes)
    for (const int operand : node.operands)
      if (operand >= 0) ++readers[std::size_t(operand)];
  for (const int output : graph.outputs) ++readers[std::size_t(output)];

  std::vector<std::string> names;
  for (const int input : graph.inputs) {
    const Value& value = graph.values[std::size_t(input)];
    names.push_back(value.name);
    const auto given = inputs.find(value.name);
    if (given == inputs.end()) throw base::UserError(place, fmt::format("input {} is missing", in_quotes(value.name)));
    if (std::int64_t(given->second.size()) != elements_of(*value.shape))
      throw base::UserError(place, fmt::format("input {}: {} elements are given, its shape is {}",
                                               in_quotes(value.name), given->second.size(), to_text(*value.shape)));
    values[std::size_t(input)] = given->second;
  }
  for (const auto& [name, elements] : inputs)
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw base::UserError(place, fmt::format("'{}' is not an input{}", name, base::did_you_mean(name, names)));

  const auto elements_of_value = [&](int value) {
    const Known& known = graph.values[std::size_t(value)].known;
    return known ? known->elements() : values[std::size_t(value)];
  };
  std::int64_t done = 0;
  for (const Node& node : graph.nodes) {
    base::check_stop(monitor);
    monitor.progress("reference", done++, std::int64_t(graph.nodes.size()));
    const auto operands = operands_of(graph, node);
    if (!operands) throw base::UserError(place, fmt::format("{}: shapes are not known", label(graph, node)));
    const auto results = results_of(graph, node, *operands, place);
    if (!results) throw base::UserError(place, fmt::format("{}: {}", label(graph, node), results.reason().text));
    const auto operand = [&](int number) { return elements_of_value(node.operands[std::size_t(number)]); };
    for (std::size_t r = 0; r < node.results.size(); ++r) {
      if (node.results[r] < 0) continue;
      const Result& result = (*results)[r];
      values[std::size_t(node.results[r])] = result.known          ? result.known->elements()
                                             : result.same_as >= 0 ? operand(result.same_as)
                                                                   : evaluated(*result.computation, operand);
    }
    for (const int value : node.operands)
      if (value >= 0 && --readers[std::size_t(value)] == 0) values[std::size_t(value)] = {};
  }
  std::vector<codegen::Elements> outputs;
  for (const int output : graph.outputs) outputs.push_back(elements_of_value(output));
  return outputs;
}

}  // namespace graft::graph
