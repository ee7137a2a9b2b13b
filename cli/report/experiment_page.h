// Pages of experiments as Markdown with drawings, generated from their definitions and results alone: the same text
// for the same files, so that an outdated page can be detected.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "study/experiments/experiment.h"
#include "study/experiments/results.h"

namespace graft::cli {

// The default folder of experiments, which commands need not name.
inline constexpr const char* default_folder = "experiments";

struct ExperimentEntry {
  study::Experiment experiment;
  std::optional<study::ExperimentResults> results;  // nullopt: it has not been run
};

// A claim's row in tables; without results it has only the question.
struct ClaimText {
  std::string figure, asked, verdict;
};
ClaimText claim_text(const study::Experiment& experiment, const study::Claim& claim,
                     const study::ExperimentResults* results);

// File names and contents: page.md, and the drawings that it shows. `folder`: of the experiments, for commands.
std::map<std::string, std::string> experiment_files(const ExperimentEntry& entry, const std::string& folder);

// experiments/README.md: a row for each experiment with its first claim, which is its main one, and a row for each
// claim that was not reproduced.
std::string experiments_table(const std::vector<ExperimentEntry>& entries, const std::string& folder);

}  // namespace graft::cli
