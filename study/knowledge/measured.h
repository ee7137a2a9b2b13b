// What searches measured, to learn from without measuring again.
#pragma once

#include <filesystem>
#include <vector>

#include "datasets/dataset.h"

namespace graft::study {

// The measurements of runs (of tune, tune-all, adapt, collect), of all runs in a folder, such as that of a network's
// tuning, and of datasets; one dataset a platform, by name. What was measured before a machine changed (OUT.before-1 of
// `graft tune --watch`) is not in it. UserError for what is none of these, has nothing that ran, or has times of an
// emulator, and for platforms that changed between them.
std::vector<datasets::Dataset> measured_in(const std::vector<std::filesystem::path>& from);

}  // namespace graft::study
