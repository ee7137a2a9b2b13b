// Runs an experiment: its searches or its evaluation, interruptible and continuable.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/monitor.h"
#include "base/team.h"
#include "study/experiments/experiment.h"
#include "study/experiments/results.h"

namespace graft::study {

struct ExperimentRequest {
  Experiment experiment;
  std::filesystem::path work;               // folder for runs and models; run again to continue
  std::filesystem::path others;             // folder with the measurements of others; "": none
  std::vector<std::filesystem::path> from;  // of one with peers: what scripts wrote (gathered)
  int threads = 1;                          // no result depends on it except times
  std::string command_line;                 // for provenance
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

// The results of an experiment with peers, from files that scripts wrote: documents {"searches": [...]}, the list as in
// results.json (results.h). UserError for a search that the definition does not name or that has another number of
// trials, for two of the same method, workload, platform and seed, and if one of a method is missing (of a baseline one
// may be).
ExperimentResults gathered(const Experiment& experiment, const std::vector<std::filesystem::path>& files);

}  // namespace graft::study
