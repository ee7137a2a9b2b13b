// A plan that was written down and read again.
#pragma once

#include <gtest/gtest.h>

#include "graph/plan_document.h"

namespace graft::graph {

inline Plan kept(const Plan& plan) {
  StoredConstants once, twice;
  const base::Document document = stored(plan, once);
  const std::string constants = once.taken();
  std::vector<Plan::Kernel> kernels;
  for (const Plan::Kernel& kernel : plan.kernels)
    kernels.push_back({codegen::parse_workload(kernel.workload.text()), kernel.calls, kernel.label, kernel.foreign});
  const base::Document read = base::parse_json(document.to_json(), "plan");
  Plan again = plan_from(read, std::move(kernels), constants, "constants");
  EXPECT_EQ(stored(again, twice), document);
  EXPECT_EQ(twice.taken(), constants);
  return again;
}

}  // namespace graft::graph
