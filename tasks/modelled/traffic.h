// How many cache lines a program's `run` moves between the levels of a memory hierarchy, from footprints alone: nothing
// is executed or simulated. Capacity only: no conflict misses, no address translation, no sharing between cores.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/program/program.h"

namespace graft::tasks {

struct Lines {
  double sequential = 0;  // in runs of at least four lines, walked in the order of their addresses
  double scattered = 0;
  double written = 0;  // of them all, those that are dirty when they leave
  double all() const { return sequential + scattered; }
};

// Lines missed by each cache in one `run` of many, `capacities` in bytes, the innermost cache first; parallel to
// `capacities`.
//
// The region of a buffer under a loop is the box of all indices that accesses under the loop reach while the loops
// outside stand still, counted in lines: rows of the box are contiguous, and rows that fill their dimension join up.
// A cache keeps what it needs from one iteration of a loop to the next when the regions of one iteration fit; the loop
// then fetches its regions once. Otherwise every iteration fetches anew. `run` itself counts as an iteration of an
// endless loop: what fits as a whole misses nothing. Buffers in registers cost nothing.
std::vector<Lines> missed_lines(const codegen::LoopProgram& program, const std::vector<std::int64_t>& capacities,
                                std::int64_t line_bytes);

}  // namespace graft::tasks
