// What `graft report` is asked about, read from disk.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/document.h"
#include "base/monitor.h"
#include "search/run_directory.h"
#include "study/flows/explained.h"
#include "study/flows/network.h"
#include "study/knowledge/answer.h"

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
  std::optional<base::Document> result;      // best.json of a run whose times are a command's
};

// A tuned network.
struct ReportedNetwork {
  std::string name;  // of its folder
  study::TunedNetwork tuned;
  std::optional<graph::Plan> plan;
  // What its program needs; nothing: `unknown` says why.
  struct Memory {
    std::int64_t weights_bytes = 0, arena_bytes = 0, peak_bytes = 0;
  };
  std::optional<Memory> memory;
  std::string unknown;                  // why the plan or memory is nothing
  std::optional<base::Document> bench;  // of graft bench kernels --json
  std::optional<base::Document> check;  // of graft run --json
};

// A result of graft evaluate, compare, tune or bench kernels as JSON.
struct ReportedResult {
  std::string name;
  base::Document result;
};

struct Reported {
  std::vector<ReportedRun> runs;
  std::vector<ReportedNetwork> networks;
  std::vector<ReportedResult> results;
};

// In the order of `inputs`: a run's folder, a folder of such folders (by name), a network's folder, or a result's file.
// A bench result is in a run's or network's folder as bench.json, and one of graft run in a network's as check.json.
// Networks are compiled, which takes seconds. UserError for what is none of these, for another schema than 1, for a
// folder without runs, and where no run has a trial.
Reported read_reported(const std::vector<std::string>& inputs, base::Monitor& monitor);

}  // namespace graft::cli
