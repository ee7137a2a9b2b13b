#include "meta/networks/numbers.h"

#include <algorithm>
#include <bit>
#include <new>
#include <vector>

namespace graft::meta {
namespace {

constexpr std::size_t alignment = 64, most_kept = std::size_t(512) << 20;  // bytes

// Sizes are rounded up to a quarter of a power of two: what one pass gives back fits the next one of nearly its size.
std::size_t rounded(std::size_t bytes) {
  const std::size_t step = std::max(std::bit_floor(std::max(bytes, std::size_t(1))) / 4, std::size_t(256));
  return (bytes + step - 1) / step * step;
}

struct Kept {
  struct Block {
    void* memory;
    std::size_t bytes;
  };
  std::vector<Block> blocks;
  std::size_t bytes = 0;
  ~Kept() {
    for (const Block& block : blocks) ::operator delete(block.memory, std::align_val_t(alignment));
  }
};
thread_local Kept kept;

}  // namespace

void* borrow(std::size_t bytes) {
  const std::size_t needed = rounded(bytes);
  for (std::size_t i = kept.blocks.size(); i-- > 0;) {
    if (kept.blocks[i].bytes != needed) continue;
    void* const memory = kept.blocks[i].memory;
    kept.blocks.erase(kept.blocks.begin() + std::ptrdiff_t(i));
    kept.bytes -= needed;
    return memory;
  }
  return ::operator new(needed, std::align_val_t(alignment));
}

void give_back(void* memory, std::size_t bytes) noexcept {
  const std::size_t held = rounded(bytes);
  const auto release = [](void* block) { ::operator delete(block, std::align_val_t(alignment)); };
  while (!kept.blocks.empty() && kept.bytes + held > most_kept) {  // the oldest block makes room
    release(kept.blocks.front().memory);
    kept.bytes -= kept.blocks.front().bytes;
    kept.blocks.erase(kept.blocks.begin());
  }
  if (held > most_kept) return release(memory);
  try {
    kept.blocks.push_back({memory, held});
    kept.bytes += held;
  } catch (const std::bad_alloc&) {  // no room to remember it
    release(memory);
  }
}

}  // namespace graft::meta
