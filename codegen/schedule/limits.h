// Refuses a program before it is compiled, from analysis alone: what would spill or explode in instructions. LLVM is
// never asked.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "codegen/expression/target.h"
#include "codegen/program/program.h"

namespace graft::codegen {

// Register budget: accumulators + one row of vector operands + 1 <= target.vector_registers, counted in vector
// registers. Instruction cap: straight-line instructions of `run` after unrolling <= 1,200. Vector loops: every access
// moves by 0, 1 or 2 elements per lane, or is a store outside of reduction loops.
std::optional<base::Reason> beyond_limits(const LoopProgram& program, const Target& target);

// The same, store by store while a program grows: no count ever falls, so that lowering can stop at the first store
// beyond a limit. Four in five draws from a convolution's space end there.
class LimitCounter {
 public:
  explicit LimitCounter(const Target& target) : target_(target) {}
  // A store of `run` with the loops around it (positions in program.loops), outermost first.
  std::optional<base::Reason> add(const LoopProgram& program, const Store& store, std::span<const int> loops);

 private:
  // Copies of an access that differ: the unrolled loops that move it. Sets `moves_`.
  std::int64_t distinct_copies(const LoopProgram& program, const Access& access, std::span<const int> loops);

  const Target& target_;
  std::int64_t most_accumulators_ = 0, widest_row_ = 0, instructions_ = 0;
  std::vector<std::size_t> level_of_;  // by loop; right for those around the store
  std::vector<std::int64_t> moves_;    // by level: elements that the access moves in its buffer per step of the loop
};

}  // namespace graft::codegen
