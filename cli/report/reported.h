// What `graft report` is asked about, read from disk.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/document.h"
#include "search/run_directory.h"
#include "study/knowledge/answer.h"
#include "study/flows/explained.h"

namespace graft::cli {

// The best of a run for one workload, and what there is to know of it.
struct ReportedBest {
  study::Answer answer;
  study::Explained explained;
};

struct ReportedRun {
  std::string name;    // of its folder, below the one that was given
  std::string folder;  // as commands take it
  search::RunContent content;
  std::map<std::string, ReportedBest> best;  // by workload
  std::optional<base::Document> bench;       // of graft bench kernels --json
};

// A result of graft evaluate, compare, tune or bench kernels as JSON.
struct ReportedResult {
  std::string name;
  base::Document result;
};

struct Reported {
  std::vector<ReportedRun> runs;
  std::vector<ReportedResult> results;
};

// In the order of `inputs`: a run's folder, a folder of such folders (by name), or a result's file. A bench result is
// in a run's folder as bench.json. UserError for what is none of these, for another schema than 1, for a folder
// without runs, and where no run has a trial.
Reported read_reported(const std::vector<std::string>& inputs);

}  // namespace graft::cli
