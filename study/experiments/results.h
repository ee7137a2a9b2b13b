// What an experiment found, as its results.json has it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/document.h"
#include "search/comparison.h"

namespace graft::study {

struct ExperimentResults {
  std::string experiment, definition;  // Experiment::name and definition
  bool quick = false;
  bool complete = false;   // false: interrupted
  base::Document context;  // context_of, and "commit", "seconds" (of wall time, over all runs of it)
  std::vector<search::Searched> searches;
  base::Document evaluation;  // document of an EvaluationTable without single draws; null of searches
};

base::Document to_document(const ExperimentResults& results);
// UserError for a document that is none.
ExperimentResults results_from(const base::Document& document);

}  // namespace graft::study
