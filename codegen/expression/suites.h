// Workloads under one name, so that data of different platforms are of the same ones: `suite:shipped`. A suite may grow
// at its end; what it names stays, in its place.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/expression/workload.h"

namespace graft::codegen {

struct Suite {
  std::string name, description;
  std::vector<Workload> workloads;
};
// resnet18: the layers C1 .. C12. shipped: what the datasets of graft are made of; like operators stand together.
const std::vector<Suite>& suites();

// The workloads of `suite:NAME`, or the one workload that any other text is. UserError as parse_workload, or for a
// suite that is not known (did you mean).
std::vector<Workload> parse_workloads(std::string_view text);

}  // namespace graft::codegen
