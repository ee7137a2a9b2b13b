// Refuses a program before it is compiled, from analysis alone: what would spill or explode in instructions. LLVM is
// never asked.
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
std::optional<base::Reason> beyond_limits(const LoopProgram& program, const Target& target);

// The same, store by store while a program grows: no count ever falls, so that lowering can stop at the first store
// beyond a limit. Four in five draws from a convolution's space end there.
class LimitCounter {
 public:
  explicit LimitCounter(const Target& target) : target_(target) {}
  // A store of `run` with the loops around it (positions in program.loops), outermost first.
  std::optional<base::Reason> add(const LoopProgram& program, const Store& store, std::span<const int> loops);

 private:
  // How often the unrolled loops around an access make it.
  struct UnrolledReads {
    std::int64_t distinct = 1;  // different elements (or vectors)
    std::int64_t live = 1;      // of them, those that wait in registers for their next use, in order of the loops
    std::int64_t elements = 1;  // that an intrinsic takes at once
  };
  // `nest`: from this place among the loops on, an intrinsic does all iterations at once.
  UnrolledReads unrolled_reads(const LoopProgram& program, const Access& access, std::span<const int> loops,
                               std::size_t nest);

  // Prefetches of those of the loops that were not counted before, as often as unrolled loops make them.
  std::int64_t new_prefetches(const LoopProgram& program, std::span<const int> loops);

  // A register buffer. Its start values only say how many elements there are, at least; the first store or load behind
  // them, how they lie: an intrinsic's side by side in whole registers.
  struct Held {
    std::int64_t at_start = 0;  // vector registers, as start values are stored
    bool by_intrinsic = false;
  };

  const Target& target_;
  std::vector<Held> held_;                           // by buffer
  std::int64_t accumulators_ = 0, widest_row_ = 0;   // most of any store so far
  std::int64_t block_ = 0, largest_ = 0, code_ = 0;  // instructions: of the block at hand, the largest one, all
  std::set<int> counted_;                            // loops whose prefetches are in the counts
  int block_loop_ = -1;                              // innermost serial loop of the block at hand
  // Scratch. By loop: its place among those around the store. By that place: elements that the access looked at last
  // moves in its buffer per step of the loop. Step and extent of the unrolled loops that move it.
  std::vector<std::size_t> level_of_;
  std::vector<std::int64_t> moves_;
  std::vector<std::pair<std::int64_t, std::int64_t>> steps_;
};

}  // namespace graft::codegen
