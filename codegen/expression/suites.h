// Named lists of workloads, so that data of different platforms are about the same workloads: `suite:shipped`. A suite
// may grow at its end; its present entries keep their positions.
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
// resnet18: the layers C1 .. C12. shipped: the workloads of graft's datasets, grouped by operator.
const std::vector<Suite>& suites();

// The workloads of `suite:NAME`, or the single workload that any other text names. UserError as parse_workload, or for
// a suite that is not known (did you mean).
std::vector<Workload> parse_workloads(std::string_view text);

}  // namespace graft::codegen
