// The loops and stores of `run` in the form that encodings use: the work of each, all accesses of a buffer
// together. Names are ignored, and so is the order of accesses.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "codegen/program/program.h"
#include "features/buffers.h"
#include "features/operations.h"

namespace graft::features {

// The effect of a loop with all inside of it, or of one execution of a store, on one of the largest buffers. All 0:
// none.
struct BufferTouch {
  std::int64_t touched = 0, reuse = 0, lines = 0;  // codegen::Touch's, the largest over the accesses inside
  std::int64_t stride = 0;                         // of the access inside that is executed most often
  std::int64_t loads = 0, stores = 0;              // executed; a store that combines loads, too
};

// A loop or store of run.
struct Part {
  bool is_loop = false;
  int item = 0;                // position in LoopProgram::loops or stores
  int parent = -1;             // position in Nest::parts, -1 outside of all loops
  int depth = 0;               // loops around it, itself included
  std::int64_t top_down = 1;   // product of extents from the outermost loop down to and including it
  std::int64_t bottom_up = 1;  // product of extents of it and the loops inside, the largest over stores inside
  double executions = 0;       // of all stores in it, in all of run
  // The part of these in tails: if several stores of run are the same statement (equal value, combine and buffers;
  // indices are ignored), all but the one executed most often (ties: the first) are remainders of tiles.
  double tail_executions = 0;
  Operations operations;  // one execution of the stores directly in it
  std::array<BufferTouch, buffer_slots> buffers;
  std::int64_t register_elements = 0;  // elements of register buffers touched, the largest over stores inside
};

struct Nest {
  std::vector<BufferSize> sizes;  // of all buffers in memory; Part::buffers is parallel to the first of them
  std::vector<Part> parts;        // in order of run, a loop before its contents
  // All of run, as if it were the inside of a loop of one iteration. The touched elements are the box of BufferSize,
  // reuse is the executions of all accesses per element of it.
  Part whole;
};
Nest nest(const codegen::LoopProgram& program);

// How often the loop is left by a branch: never if it is unrolled, a vector, or not a loop of a cpu.
std::int64_t exits(const codegen::LoopProgram& program, const Part& loop);
// Exits of a loop of more than 32 iterations: a predictor with history foresees the end of a shorter one. A rule of
// thumb from the loop alone.
inline constexpr std::int64_t foreseen_extent = 32;
std::int64_t unforeseen_exits(const codegen::LoopProgram& program, const Part& loop);

}  // namespace graft::features
