// What a core's multiply-add units can do at most, as a program: independent fp32 multiply-adds on registers, for our
// own code generation to make code of.
#pragma once

#include <cstdint>

#include "codegen/expression/target.h"
#include "codegen/program/program.h"

namespace graft::codegen {

constexpr std::int64_t peak_iterations = 1 << 18;  // a millisecond: starting threads must not count

// As many accumulators as hide the latency of the unit and leave registers for both factors. Buffers: what the
// accumulators start from, both factors, what they come to.
LoopProgram peak_program(const Target& target);
// Operations of one run of it.
double peak_flops(const LoopProgram& program);

}  // namespace graft::codegen
