// Which search finds fast programs with fewer trials, by runs of several; and how platforms agree on what is fast, by
// datasets (datasets/agreement.h), as a document.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/document.h"
#include "base/monitor.h"
#include "datasets/agreement.h"
#include "search/comparison.h"
#include "search/run_directory.h"

namespace graft::study {

struct CompareRequest {
  std::vector<std::filesystem::path> runs;  // of one method in one folder
  std::vector<std::int64_t> trials;         // after which the best is compared; none: the usual ones that all have
  double near = 0.95;                       // share of the fastest known speed that trials are counted to
  std::string against;                      // the method that others are held against; "": the first
  std::int64_t again = 0;  // from 1 on: the finalists are timed again, this number of times in turn, and these count
  std::uint64_t seed = 1;
  int threads = 1;  // no result depends on it
};

struct CompareResult {
  std::vector<std::int64_t> trials;
  std::string against;
  double near = 0;
  std::int64_t again = 0;
  std::vector<search::MethodSearched> methods;
};

// FieldError for fields that no runs go with, UserError as search/comparison.h and for emulated times; Stopped when the
// monitor asks for it.
CompareResult compare(const CompareRequest& request, base::Monitor& monitor);

// The name of the folder that the run is in.
std::string method_of(const std::filesystem::path& run);

// Those asked for, which must rise, or the usual ones as far as every search has them: at least one.
std::vector<std::int64_t> counts_of(const std::vector<std::int64_t>& asked,
                                    const std::vector<search::Searched>& searches);

// The finalists of all runs timed again, those of a workload in turn, `rounds` times. FieldError for modelled platforms
// and for those that are not what the runs were made on.
search::Retimed times_again(const std::vector<search::RunContent>& runs, std::int64_t rounds, int threads,
                            base::Monitor& monitor);

// {"trials":[...],"against":...,"near":...,"again":...,"methods":[...]}
base::Document to_document(const CompareResult& result);
// {"platforms":[...],"families":[...],"regret":{...}}
base::Document to_document(const datasets::Agreement& agreement);

}  // namespace graft::study
