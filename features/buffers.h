// Which buffers of a program are large: encodings have room for a few, which they keep apart.
#pragma once

#include <vector>

#include "codegen/program/analysis.h"

namespace graft::features {

inline constexpr int buffer_slots = 5;  // buffers kept apart

// A buffer in memory that `run` uses.
struct BufferSize {
  int buffer = 0;
  std::size_t number = 0;    // in order of first use
  double bytes_touched = 0;  // the box around all accesses in run, at most the sum of the bytes that each touches
};

// Collects them, access by access. Names are ignored.
class BufferSizes {
 public:
  explicit BufferSizes(const codegen::LoopProgram& program);
  // An access of `run` to memory, in run's order; touched: elements by all loops around it. Returns the buffer's
  // number.
  std::size_t add(const codegen::Access& access, std::int64_t touched);
  std::vector<BufferSize> largest_first() const;  // ties in order of first use

 private:
  struct Box {  // around all accesses of one buffer so far
    int buffer = 0;
    std::size_t sides = 0;  // where its sides begin, one a dimension
    double sum = 0;         // elements touched by each access, added up
  };
  const codegen::LoopProgram& program_;
  std::vector<int> number_of_;  // by buffer, -1: not met
  std::vector<Box> boxes_;
  std::vector<codegen::Interval> sides_;
};

// The buffers of a whole program, largest first.
std::vector<BufferSize> buffers_by_size(const codegen::LoopProgram& program, const codegen::Analysis& analysis);

}  // namespace graft::features
