// What a board or this machine is, found out there: the YAML of a platform to measure on.
#pragma once

#include <string>
#include <vector>

#include "tasks/platform.h"

namespace graft::tasks {

struct Probed {
  std::string yaml;
  std::string saw;  // what a program of ours met there: "riscv64 with RVV of 256 bits"
};

// `board` says how to reach it: one destination, and the runner if there is one; or a prefix on this machine. The
// platform "ssh:NAME" (NAME: the destination's host) or "here:ARCH" with all that /proc and /sys there tell:
// architecture, cpu, features, cores, caches; comments name the cpu, its clock and its governor. Under qemu-ARCH the
// architecture is that one, its cpu unknown and its caches absent. The length of vectors is what a program of ours
// (codegen::probe_program) finds, which runs as candidates will. Failure, with the remedy where one is known, where the
// board does not answer or that program does not run; UserError for an architecture that graft makes no programs for.
Probed probed(const Remote& board);
// The platform `native`, when such a program has run on this machine.
Probed probed_here();

}  // namespace graft::tasks
