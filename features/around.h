// The loops around stores in the form that cheap encodings use: all stores of one body share it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "codegen/program/analysis.h"

namespace graft::features {

struct Around {
  struct Level {
    int loop = 0;  // position in the program's loops
    std::int64_t extent = 1, top_down = 1;
    codegen::LoopKind kind = codegen::LoopKind::serial;
  };
  std::vector<Level> levels;          // outermost first
  std::vector<std::size_t> carriers;  // levels of vector, unrolled and parallel loops
  int innermost = -1;                 // level of the innermost loop but vector loops, -1: none
  int vector = -1;                    // level of the vector loop
  // The loops next to the store that are unrolled or the vector loop, its straight-line code, begin at this level.
  std::size_t straight = 0;
  double unrolled_next = 1, unrolled = 1, parallel = 1, vector_extent = 1;  // products of extents

  void enter(const codegen::LoopProgram& program, const codegen::StoreContext& context);

  // Executed loads or stores of an access of memory: a vector loop is one, and so are copies by the other loops of the
  // straight-line code that do not move it. touches: of the access.
  double memory_operations(std::span<const codegen::Touch> touches, double executions) const;
};

}  // namespace graft::features
