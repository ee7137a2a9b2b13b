// Used by every command that measures by rounds (search/tuning.h): runs them to the end, counts the statuses of
// trials, and suggests remedies if none was ok.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "base/document.h"
#include "base/monitor.h"
#include "datasets/trial.h"
#include "search/run_directory.h"
#include "search/tuning.h"
#include "tasks/platform.h"

namespace graft::study {

// Notes the number of trials that a continued run has recorded; no note for a new one.
void note_continued(const std::filesystem::path& run, std::int64_t trials, base::Monitor& monitor);

// Runs rounds until the budget is spent, the search is hopeless or a stop is requested; false in the last case. Notes
// if the space had no more candidates.
bool run_rounds(search::Tuning& tuning, std::int64_t trials, base::Monitor& monitor);

// For a search in which no trial was ok, in one line: the most frequent reason, its count, and a remedy.
std::string nothing_ok_text(std::span<const datasets::Trial> trials, const tasks::Platform& platform,
                            const std::filesystem::path& run);
// The same for configurations that a command of the user's measured.
std::string no_configuration_ok_text(std::span<const datasets::Trial> trials, const std::string& platform,
                                     const std::filesystem::path& run);

// {"ok":40,"wrong_result":1}, in the order of the list of statuses, without those that did not occur.
base::Document status_counts(std::span<const datasets::Trial> trials);

}  // namespace graft::study
