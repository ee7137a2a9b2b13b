// What a board is, found out over ssh: the YAML of a platform to measure on.
#pragma once

#include <string>
#include <vector>

#include "tasks/platform.h"

namespace graft::tasks {

// `board` says how to reach it: one destination, and the runner if there is one. The platform "ssh:NAME" (NAME: the
// destination's host) with all that /proc and /sys there tell: architecture, cpu, features, vector length (by a program
// of ours that reads it), cores, caches; comments name the cpu, its clock and its governor. Under a runner qemu-ARCH
// the architecture is that one, its cpu unknown and its caches absent. Failure where the board does not answer,
// UserError for an architecture that graft makes no programs for.
std::string probed(const Remote& board);

}  // namespace graft::tasks
