// What the multiply-add units can do at most (codegen/program/peak.h), measured, made by our own code generation for
// the target that the kernels compared with it are made for.
#pragma once

#include "bench/library.h"
#include "bench/timing.h"
#include "codegen/expression/target.h"

namespace graft::bench {

// The contender "peak": the program once on each of `threads` cores. What it needs lives as long as the contender does.
Contender peak_contender(const codegen::Target& target, int threads, Parallel parallel);

}  // namespace graft::bench
