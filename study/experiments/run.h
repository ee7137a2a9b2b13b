// Runs an experiment: its searches or its evaluation, interruptible and continuable.
#pragma once

#include <filesystem>
#include <string>

#include "base/monitor.h"
#include "base/team.h"
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
//
// Run by all ranks of the team, which need the same request and files, a shared work folder included. Searches on
// modelled platforms, and evaluations, are shared among them; whatever is measured on machines is measured by rank 0
// alone. Every rank has the same results, apart from times of searches.
ExperimentResults run(const ExperimentRequest& request, base::Team& team, base::Monitor& monitor);

}  // namespace graft::study
