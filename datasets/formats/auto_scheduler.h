// Logs of TVM's auto_scheduler (Ansor), one JSON record a line. The transform steps are replayed on our own expressions
// if the record is of a matmul, conv2d or depthwise convolution tiled by Ansor's rules for CPUs:
// splits, order, a result cached in tiles, padding inlined or computed in tiles, parallel and vector loops, unrolling
// by pragma. A copy of a cached result back, and a padding computed in tiles, become the nests that our lowering makes.
// Everything else (GPU threads, cached reads, factored reductions, layouts, unknown workloads) keeps its steps' numbers
// in columns, and is counted by reason.
#pragma once

#include "datasets/formats/format.h"

namespace graft::datasets::formats {

// UserError "<file>:<line>: ...".
void import_auto_scheduler(Import& import);

}  // namespace graft::datasets::formats
