// A plan as it is kept: a document, and its constants. What reads it needs neither the model's file nor the passes that
// made the plan of it, so that a later graft compiles and runs what an earlier one tuned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/document.h"
#include "graph/plan.h"

namespace graft::graph {

// The constants of one plan or several, as buffers have them, before kernels prepare them: each content once.
class StoredConstants {
 public:
  base::Document add(const std::string& content);  // {"offset":...,"hash":...}
  std::string taken() { return std::move(all_); }

 private:
  std::map<std::pair<std::uint64_t, std::size_t>, std::int64_t> places_;
  std::string all_;
};

// {"inputs":[...],"outputs":[...],"buffers":[...],"calls":[...]}: all but the kernels, which calls name by number, and
// the content of constants.
base::Document stored(const Plan& plan, StoredConstants& constants);

std::vector<Plan::Tensor> inputs_from(const base::Document& document);  // of a stored plan

// `constants_file` names the constants in errors. UserError for a document that is broken, constants that are not those
// of the plan, or calls that do not fit their kernels: what is read may be run.
Plan plan_from(const base::Document& document, std::vector<Plan::Kernel> kernels, std::string_view constants,
               std::string_view constants_file);

}  // namespace graft::graph
