// The outputs that a folded graph should have, node by node: what plans and programs are compared with.
#pragma once

#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/reference.h"

namespace graft::graph {

inline std::vector<codegen::Elements> reference(const Graph& graph,
                                                const std::map<std::string, codegen::Elements>& inputs,
                                                std::string_view place, base::Monitor& monitor) {
  std::vector<codegen::Elements> values(graph.values.size()), outputs;
  for (std::size_t v = 0; v < values.size(); ++v)
    if (graph.values[v].known) values[v] = graph.values[v].known->elements();
  for (const int input : graph.inputs)
    if (const auto given = inputs.find(graph.values[std::size_t(input)].name); given != inputs.end())
      values[std::size_t(input)] = given->second;
  look_at(
      graph, inputs, place, std::numeric_limits<double>::infinity(),
      [&](const Node&, int value, const codegen::Elements& elements) { values[std::size_t(value)] = elements; },
      monitor);
  for (const int output : graph.outputs) outputs.push_back(values[std::size_t(output)]);
  return outputs;
}

}  // namespace graft::graph
