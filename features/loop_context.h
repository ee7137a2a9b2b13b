// The loop-context encoding: AutoTVM's features of each loop ("itervar"), in one row of one length for any program.
// Loops are listed in the order of `run`; so the meaning of a position depends on the structure of the
// nest, and the encoding suits programs of one sketch and workload better than transfer.
//
// Differences from AutoTVM's: buffers instead of single accesses (the largest ones, the same buffer in the same place
// of every loop), touched elements and reuse by affine forms, integers counted, lines of memory, control, no rows of
// different length.
#pragma once

#include "features/encoding.h"

namespace graft::features {

// Loops of a program that are kept: those with the most executions of stores in them (ties: the first in run). A loop
// around a kept one has at least as many, so whole paths are kept, those of the heaviest nests; tails, copies
// and loops next to them are cut. With fewer loops, the remaining places are 0.
inline constexpr int kept_loops = 24;

Encoding loop_context();  // version 1

}  // namespace graft::features
