// Counts of the actual execution of a modelled cpu's code under qemu, by our plug-in (counters.c): a check of the
// counts that modelled times are computed from. Nothing here is a source of times.
#pragma once

#include "base/error.h"
#include "codegen/program/program.h"
#include "tasks/modelled/caches.h"
#include "tasks/platform.h"
#include "tasks/remote.h"

namespace graft::tasks {

struct Counted {
  double instructions = 0;  // executed by the function that core_timing models, all of it
  double loads = 0, stores = 0;
  double l1_misses = 0;  // lines, by a first cache of the geometry's size, ways and lines, fed with every access
};

// Counts of the second call of `run` in one process, on one thread, with buffers assumed to be at buffer_addresses
// (code and stack where they are). A Reason if there is no code for the target or none that qemu runs, `qemu` does not
// start, or takes no plug-ins.
base::Result<Counted> count_under(const std::vector<std::string>& qemu, const codegen::LoopProgram& program,
                                  const codegen::Target& target, const Geometry& geometry, const Expected& expected,
                                  std::chrono::milliseconds deadline);

}  // namespace graft::tasks
