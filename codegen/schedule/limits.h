// Refuses a program before it is compiled, by analysis alone, if it would spill registers or have too many
// instructions. LLVM is not used.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "codegen/expression/target.h"
#include "codegen/program/program.h"

namespace graft::codegen {

// Register budget: accumulators + vector operands that wait for their next use <= target.vector_registers, counted in
// vector registers. Instruction caps: 1,200 in a row without a loop after unrolling, 4,000 in all of `run`. Vector
// loops: every access moves by 0, 1 or 2 elements per lane, or is a store outside of reduction loops. An intrinsic
// counts as one operation for each register of its results.
//
// Store by store while a program grows: no count ever falls, so that lowering can stop at the first store beyond a
// limit. Four in five draws from a convolution's space end there.
class LimitCounter {
 public:
  explicit LimitCounter(const Target& target) : target_(target) {}
  // A store of `run` with the loops around it (positions in program.loops), outermost first.
  std::optional<base::Reason> add(const LoopProgram& program, const Store& store, std::span<const int> loops);

 private:
  // The number of times that the surrounding unrolled loops make an access.
  struct UnrolledReads {
    std::int64_t distinct = 1;  // different elements (or vectors)
    std::int64_t live = 1;      // those of them that wait in registers for their next use, in order of the loops
    std::int64_t elements = 1;  // elements that an intrinsic takes at once
  };
  // `nest`: from this position among the loops, an intrinsic does all iterations at once.
  UnrolledReads unrolled_reads(const LoopProgram& program, const Access& access, std::span<const int> loops,
                               std::size_t nest);

  // Prefetches by the loops that were not counted before, times the number that unrolled loops make.
  std::int64_t new_prefetches(const LoopProgram& program, std::span<const int> loops);

  // A register buffer. Its start values only give a lower bound on its elements; the first store or load after
  // them gives their arrangement: an intrinsic's are packed into whole registers.
  struct Held {
    std::int64_t at_start = 0;  // vector registers, as start values are stored
    bool by_intrinsic = false;
  };

  const Target& target_;
  std::vector<Held> held_;                           // by buffer
  std::int64_t accumulators_ = 0, widest_row_ = 0;   // most of any store so far
  std::int64_t block_ = 0, largest_ = 0, code_ = 0;  // instructions: of the current block, the largest one, all
  std::set<int> counted_;                            // loops whose prefetches are in the counts
  int block_loop_ = -1;                              // innermost serial loop of the current block
  // Scratch. By loop: its position among those around the store. By that position: elements by which the last access
  // moves in its buffer per step of the loop. Step and extent of the unrolled loops that move it.
  std::vector<std::size_t> level_of_;
  std::vector<std::int64_t> moves_;
  std::vector<std::pair<std::int64_t, std::int64_t>> steps_;
};

}  // namespace graft::codegen
