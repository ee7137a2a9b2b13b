// Pages of experiments as Markdown with drawings, made of their definitions and results alone: the same text again for
// the same files, so that a page that is out of date can be told.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "study/experiments/experiment.h"
#include "study/experiments/results.h"

namespace graft::cli {

struct ExperimentEntry {
  study::Experiment experiment;
  std::optional<study::ExperimentResults> results;  // nothing: it has not been run
};

// A claim's row in tables; without results it has only what is asked.
struct ClaimText {
  std::string figure, asked, verdict;
};
ClaimText claim_text(const study::Experiment& experiment, const study::Claim& claim,
                     const study::ExperimentResults* results);

// File names and contents: page.md, and the drawings that it shows.
std::map<std::string, std::string> experiment_files(const ExperimentEntry& entry);

// experiments/README.md: a row for each experiment with its first claim, which is its main one, and a row for each claim
// that was not reproduced.
std::string experiments_table(const std::vector<ExperimentEntry>& entries);

}  // namespace graft::cli
