// The results of an experiment, as stored in results.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/document.h"
#include "search/comparison.h"

namespace graft::study {

// Where the wall time of a method's searches went, in seconds, over the trials that were measured (not those that a
// search found in its folder when it went on).
struct MethodTime {
  std::int64_t measured = 0;
  double proposing = 0, learning = 0, measuring = 0;
};

struct ExperimentResults {
  std::string experiment, definition;  // Experiment::name and definition
  bool quick = false;
  bool complete = false;   // false: interrupted
  base::Document context;  // context_of, and "commit", "seconds" (of wall time, over all runs of it)
  std::vector<search::Searched> searches;
  std::map<std::string, MethodTime> times;  // of searches, by method; none in files of older versions
  base::Document evaluation;                // document of an EvaluationTable without single draws; null of searches
};

base::Document to_document(const ExperimentResults& results);
// The list under "searches": {"method", "workload", "platform", "seed", "trials", "best": [[trial, seconds], ...]}
// each, with the trials after which the best time changed. UserError if it is not valid.
std::vector<search::Searched> searches_from(const base::Document& list);
// UserError if the document is not valid.
ExperimentResults results_from(const base::Document& document);

}  // namespace graft::study
