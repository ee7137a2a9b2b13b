// Compares searches by the trials that they need for fast programs, from their runs; and platforms by their agreement
// on which programs are fast, from datasets (datasets/agreement.h), as a document.
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
#include "study/inputs/setting.h"

namespace graft::study {

struct CompareRequest {
  std::vector<std::filesystem::path> runs;  // of one method in one folder
#include "study/inputs/settings/compare.def"
};

struct CompareResult {
  std::vector<std::int64_t> trials;
  std::string against;
  double near = 0;
  std::int64_t again = 0;
  std::vector<search::MethodSearched> methods;
};

// FieldError for fields that do not fit the runs, UserError as search/comparison.h and for emulated times; Stopped when
// the monitor asks for it.
CompareResult compare(const CompareRequest& request, base::Monitor& monitor);

// The method's name: that of the folder that contains the run.
std::string method_of(const std::filesystem::path& run);

// The requested numbers, which must rise, or the usual ones that every search reaches: at least one.
std::vector<std::int64_t> counts_of(const std::vector<std::int64_t>& asked,
                                    const std::vector<search::Searched>& searches);

// Times the finalists of all runs again, those of a workload in turn, `rounds` times. FieldError for modelled platforms
// and for platforms other than those of the runs.
search::Retimed times_again(const std::vector<search::RunContent>& runs, std::int64_t rounds, int threads,
                            base::Monitor& monitor);

// {"trials":[...],"against":...,"near":...,"again":...,"methods":[...]}
base::Document to_document(const CompareResult& result);
// {"platforms":[...],"families":[...],"regret":{...}}, and "notes":[...] if there are any
base::Document to_document(const datasets::Agreement& agreement);

}  // namespace graft::study
