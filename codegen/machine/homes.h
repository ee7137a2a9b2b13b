// Private to this folder: where a kernel's buffers in memory are stored while it runs. What `prepare` leaves for `run`
// is one block of memory; all other temporaries are in another one, whose content nobody needs between calls.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/program/program.h"

namespace graft::codegen {

// Every pointer that a kernel takes, and every temporary within its blocks, is at a multiple of this.
inline constexpr std::int64_t alignment_bytes = 64;
// For a program's parameters, that is, of what its callers have: memory as allocators give it. Instructions for vectors
// that are wider take any address.
inline constexpr std::int64_t parameter_alignment_bytes = 16;

// The location of a memory buffer. Literals are part of the code.
struct Home {
  enum class Block { none, parameters, prepared, scratch };  // none: registers, literals
  Block block = Block::none;
  std::int64_t place = -1;      // position among the parameters, or bytes into the block
  std::int64_t copy_bytes = 0;  // from one slot's copy to the next of a temporary that each slot has; 0: one copy
};
struct Homes {
  std::vector<Home> buffers;  // parallel to LoopProgram::buffers
  std::int64_t prepared_bytes = 0;
  std::int64_t prepare_scratch_bytes = 0, scratch_bytes = 0;  // while `prepare` runs, and while `run` does
};
// Temporaries of a block are consecutive, at multiples of 64 bytes; those of `prepare` alone and those of `run` are
// in the same bytes of the scratch.
Homes homes(const LoopProgram& program, std::int64_t threads);

}  // namespace graft::codegen
