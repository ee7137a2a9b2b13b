// What every command that measures by rounds (search/tuning.h) does with them: run them to the end, count how trials
// ended, and say what may help where none was ok.
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

// Notes how many trials a run has that is continued; nothing for a fresh one.
void note_continued(const search::RunDirectory& run, base::Monitor& monitor);

// Rounds until the budget is spent, the search is hopeless or a stop is asked for; false in the last case. Notes when
// the space had no more candidates.
bool run_rounds(search::Tuning& tuning, std::int64_t trials, base::Monitor& monitor);

// For a search in which no trial was ok, in one line: the most frequent reason, how often it occurred, and what may
// help.
std::string nothing_ok_text(std::span<const datasets::Trial> trials, const tasks::Platform& platform,
                            const std::filesystem::path& run);

// {"ok":40,"wrong_result":1}, in the order of the list of statuses, without those that did not occur.
base::Document status_counts(std::span<const datasets::Trial> trials);

}  // namespace graft::study
