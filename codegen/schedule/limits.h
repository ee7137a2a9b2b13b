// Refuses a program before it is compiled, from analysis alone: what would spill or explode in instructions. LLVM is
// never asked.
#pragma once

#include <optional>

#include "base/error.h"
#include "codegen/expression/target.h"
#include "codegen/program/program.h"

namespace graft::codegen {

// Register budget: accumulators + vector operands that wait for their next use <= target.vector_registers, counted in
// vector registers. Instruction caps: 1,200 in a row without a loop after unrolling, 4,000 in all of `run`. Vector
// loops: every access moves by 0, 1 or 2 elements per lane, or is a store outside of reduction loops.
std::optional<base::Reason> beyond_limits(const LoopProgram& program, const Target& target);

}  // namespace graft::codegen
