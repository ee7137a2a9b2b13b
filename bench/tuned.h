// What runs of `graft tune` and `graft collect` found.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "datasets/trial.h"
#include "tasks/platform.h"

namespace graft::bench {

struct Tuned {
  std::string run;
  tasks::Platform platform;
  codegen::Workload workload;
  datasets::Trial trial;    // the fastest
  std::string pipeline;     // that built it fastest; "": the target's own to search with
  std::int64_t trials = 0;  // of this workload
};

// The best of every workload in a run, as built in the end, in the order of their first trials; `most` > 0: of the
// run's first so many trials, as built to search. UserError for a folder that is no run, for a run of another platform
// than `native...`, and for one without any ok trial.
std::vector<Tuned> tuned_kernels(const std::filesystem::path& run, std::int64_t most);

}  // namespace graft::bench
