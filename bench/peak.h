// The measured peak of the multiply-add units (codegen/program/peak.h), with code from our own code generation
// for the same target as the kernels compared with it.
#pragma once

#include "bench/library.h"
#include "bench/timing.h"
#include "codegen/expression/target.h"

namespace graft::bench {

// The contender "peak": the program once on each of `threads` cores. Its resources live as long as the contender.
Contender peak_contender(const codegen::Target& target, int threads, Parallel parallel);

}  // namespace graft::bench
