// The speed of pure multiply-adds on a platform, to compare results with.
#pragma once

#include <optional>

#include "tasks/platform.h"

namespace graft::tasks {

// fp32 operations per second of independent multiply-adds on registers, on target.threads cores: of a modelled platform
// the value of its core's model and clock. nullopt if it would be a guess: descriptions of boards and of this host hold
// no clock (`graft bench kernels` measures this host's).
std::optional<double> peak_flops_per_second(const Platform& platform);

}  // namespace graft::tasks
