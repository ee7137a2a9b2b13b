// What the target's multiply-add units can do at most, measured: independent fp32 multiply-adds on registers, made by
// our own code generation for the target that the kernels beside it are made for.
#pragma once

#include "bench/library.h"
#include "bench/timing.h"
#include "codegen/expression/target.h"
#include "codegen/program/program.h"

namespace graft::bench {

// As many accumulators as hide the latency of the unit and leave registers for both factors.
codegen::LoopProgram peak_program(const codegen::Target& target);
// Of one run of it.
double peak_flops(const codegen::LoopProgram& program);

// The contender "peak": the program once on each of `threads` cores. What it needs lives as long as the contender does.
Contender peak_contender(const codegen::Target& target, int threads, Parallel parallel);

}  // namespace graft::bench
