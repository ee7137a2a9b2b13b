// A plan that was written down and read again.
#pragma once

#include <gtest/gtest.h>

#include "graph/plan_document.h"

namespace graft::graph {

inline Plan kept(const Plan& plan) {
  const StoredPlan stored_plan = stored(plan);
  std::vector<Plan::Kernel> kernels;
  for (const Plan::Kernel& kernel : plan.kernels)
    kernels.push_back({codegen::parse_workload(kernel.workload.text()), kernel.calls, kernel.label, kernel.foreign});
  const base::Document document = base::parse_json(stored_plan.document.to_json(), "plan");
  Plan again = plan_from(document, std::move(kernels), stored_plan.constants, "constants");
  const StoredPlan twice = stored(again);
  EXPECT_EQ(twice.document, stored_plan.document);
  EXPECT_EQ(twice.constants, stored_plan.constants);
  return again;
}

}  // namespace graft::graph
