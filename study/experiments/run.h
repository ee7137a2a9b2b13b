// Running an experiment: its searches or its evaluation, so that it can be interrupted and continued.
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
  int threads = 1;               // no result depends on it but that of timing
  std::string command_line;      // for provenance
};

// Searches go workload by workload and seed by seed, the methods of a seed one after the other, so that a machine whose
// speed moves treats them alike; on hardware the finalists of a workload are then timed again in turn. UserError for
// settings that no search or evaluation has. When the monitor asks to stop, what is known so far, not complete.
ExperimentResults run(const ExperimentRequest& request, base::Monitor& monitor);

}  // namespace graft::study
