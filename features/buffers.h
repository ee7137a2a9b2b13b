// Which buffers of a program are large: encodings have room for a few, and these are the ones they keep apart.
#pragma once

#include <vector>

#include "codegen/program/analysis.h"

namespace graft::features {

inline constexpr int buffer_slots = 5;  // buffers kept apart

// A buffer in memory that `run` uses.
struct BufferSize {
  int buffer = 0;
  double bytes_touched = 0;  // the box around all accesses in run, at most the sum of what each touches
};
// Largest first, ties in order of first use. Names count nothing.
std::vector<BufferSize> buffers_by_size(const codegen::LoopProgram& program, const codegen::Analysis& analysis);

}  // namespace graft::features
