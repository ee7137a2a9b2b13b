// The speed of nothing but multiply-adds on a platform, to hold results against.
#pragma once

#include <optional>

#include "tasks/platform.h"

namespace graft::tasks {

// fp32 operations per second of independent multiply-adds on registers, on target.threads cores: of a modelled platform
// what its core's model and clock give. Nothing where it would be a guess: descriptions of boards and of this host hold
// no clock (`graft bench kernels` measures this host's).
std::optional<double> peak_flops_per_second(const Platform& platform);

}  // namespace graft::tasks
