// The peak of a core's multiply-add units, as a program: independent fp32 multiply-adds on registers, for our
// own code generation.
#pragma once

#include <cstdint>

#include "codegen/expression/target.h"
#include "codegen/program/program.h"

namespace graft::codegen {

constexpr std::int64_t peak_iterations = 1 << 18;  // a millisecond, so that starting threads has no weight

// As many accumulators as hide the latency of the unit and leave registers for both factors. Buffers: start
// values of the accumulators, both factors, results.
LoopProgram peak_program(const Target& target);
// The number of operations of one run.
double peak_flops(const LoopProgram& program);

}  // namespace graft::codegen
