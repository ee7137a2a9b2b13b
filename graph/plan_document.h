// A plan as it is kept: a document, and its constants. What reads it needs neither the model's file nor the passes that
// made the plan of it, so that a later graft compiles and runs what an earlier one tuned.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "graph/plan.h"

namespace graft::graph {

struct StoredPlan {
  // {"inputs":[...],"outputs":[...],"buffers":[...],"calls":[...]}: all but the kernels, which calls name by number.
  base::Document document;
  std::string constants;  // as buffers have them, before kernels prepare them; each content once
};
StoredPlan stored(const Plan& plan);

// `constants_file` names the constants in errors. UserError for a document that is broken, constants that are not those
// of the plan, or calls that do not fit their kernels: what is read may be run.
Plan plan_from(const base::Document& document, std::vector<Plan::Kernel> kernels, std::string_view constants,
               std::string_view constants_file);

}  // namespace graft::graph
