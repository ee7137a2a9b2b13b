// A plan, call by call, in double precision: what its kernels compute if each does what its workload says.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/alternatives.h"
#include "graph/check.h"

namespace graft::graph {

// With nothing chosen.
inline Plan planned(const Graph& graph, const codegen::Target& target, std::string_view place,
                    codegen::DType storage = codegen::DType::f32) {
  return first_choice(open_plan(graph, target, place, storage));
}

inline std::vector<codegen::Elements> run(const Plan& plan, const std::map<std::string, codegen::Elements>& inputs) {
  base::Monitor nobody;
  return reference(plan, inputs, nobody);
}

}  // namespace graft::graph
