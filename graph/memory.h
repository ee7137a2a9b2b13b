// Places in one memory for buffers that live at different times.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace graft::graph {

// What lives from the beginning of call `first` to the end of call `last`.
struct Lifetime {
  std::int64_t bytes = 0;
  int first = 0, last = 0;
};

struct Places {
  std::vector<std::int64_t> offsets;  // by buffer, multiples of 64
  std::int64_t bytes = 0;             // of the memory
};

// No two that live at the same time overlap. The largest first, each where it fits best between those that are placed:
// Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020 ("greedy by size"); then other
// orders, as long as the memory is larger than the peak. The same for the same buffers.
Places placed(std::span<const Lifetime> buffers);

// The largest sum of bytes (each a multiple of 64) that live during one call: no places can need less.
std::int64_t peak_bytes(std::span<const Lifetime> buffers);

}  // namespace graft::graph
