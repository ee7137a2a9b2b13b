// A plan, call by call, in double precision: what its kernels compute if each does what its workload says.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/check.h"

namespace graft::graph {

inline std::vector<codegen::Elements> run(const Plan& plan, const std::map<std::string, codegen::Elements>& inputs) {
  base::Monitor nobody;
  return reference(plan, inputs, nobody);
}

}  // namespace graft::graph
