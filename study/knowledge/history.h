// Private to this folder: what earlier runs measured, of the same workload on another machine (or on this one when it
// was another one) or of other workloads; and whether the machine is another one now.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codegen/expression/target.h"
#include "codegen/expression/workload.h"
#include "datasets/trial.h"

namespace graft::study {

struct History {
  // By run and workload, the ok trials that can be applied here. Never empty ones.
  std::vector<std::vector<datasets::Trial>> runs;
  std::vector<codegen::Candidate> best;  // of each run the workload's fastest programs, to look at early
  std::string identity;                  // of all of it; "" for none
};
// What a recorded candidate is in the space that is searched now; nullopt: nothing.
using Applied = std::function<std::optional<codegen::Candidate>(const codegen::Candidate&)>;
// The run of this folder, or those in it, in order of their names.
std::vector<std::filesystem::path> runs_in(const std::filesystem::path& folder);
// Where a folder has several runs, such as a tuned network's, those of this workload count, if there are any. UserError
// for a folder without a run, and for a run that has no trial that can be applied.
History history_of(const std::vector<std::filesystem::path>& folders, const codegen::Workload& workload,
                   const Applied& applied);
// Schedules apply if they lower on the target.
Applied lowers_on(const codegen::Target& target);

// Folders made by earlier changes of the machine, "OUT.before-1", ..., in order; and the next one.
std::vector<std::filesystem::path> folders_before(const std::filesystem::path& out);
std::filesystem::path next_before(const std::filesystem::path& out);
// Whether a folder has the name of one of these.
bool is_folder_before(const std::filesystem::path& folder);

// For the same programs, by position: whether all of them take longer now, or all less long, and half of them by a
// quarter or more. On a busy machine, the times of several programs do not all change that much at once.
bool is_another_machine(std::span<const double> before, std::span<const double> now);

}  // namespace graft::study
