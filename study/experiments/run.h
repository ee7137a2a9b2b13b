// Runs an experiment: its searches or its evaluation, interruptible and continuable.
#pragma once

#include <filesystem>
#include <string>

#include "base/monitor.h"
#include "study/experiments/experiment.h"
#include "study/experiments/results.h"

namespace graft::study {

struct ExperimentRequest {
  Experiment experiment;
  std::filesystem::path work;    // folder for runs and models; run again to continue
  std::filesystem::path others;  // folder with the measurements of others; "": none
  int threads = 1;               // no result depends on it except times
  std::string command_line;      // for provenance
};

// Searches go workload by workload and seed by seed, the methods of a seed in succession, so that changes of the
// machine's speed affect them equally; on hardware the finalists of a workload are then timed again in turn. UserError
// for unknown settings of searches or evaluations. When the monitor asks to stop, returns the results so far, marked as
// not complete.
ExperimentResults run(const ExperimentRequest& request, base::Monitor& monitor);

}  // namespace graft::study
