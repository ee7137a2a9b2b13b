// Results of runs of `graft tune` and `graft collect`.
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
  std::string pipeline;     // the one that built it fastest; "": the target's search pipeline
  std::int64_t trials = 0;  // of this workload
};

// The best of every workload in a run, as finally built, in the order of their first trials; `most` > 0: among this
// many first trials of the run, as built for the search. UserError for a folder that is not a run, for a run of another
// platform than `native...`, and for one without any ok trial.
std::vector<Tuned> tuned_kernels(const std::filesystem::path& run, std::int64_t most);

}  // namespace graft::bench
