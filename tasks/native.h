// The measurer of native platforms: candidates are compiled ahead (compile_ahead.h), checked and timed one after the
// other by a worker process (host_runner.h).
#pragma once

#include <memory>

#include "tasks/measurer.h"
#include "tasks/platform.h"

namespace graft::tasks {

// UserError for settings that HostRunner refuses, and for a negative abort_factor.
std::unique_ptr<Measurer> make_native_measurer(const Platform& platform, const MeasureSettings& settings);

}  // namespace graft::tasks
