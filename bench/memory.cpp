#include "bench/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace graft::bench {

Memory::Memory(std::int64_t bytes) : bytes_(std::max<std::int64_t>(1, bytes)) {
  constexpr std::size_t line = 64, huge_page = std::size_t(2) << 20;
  const bool huge = std::size_t(bytes_) >= huge_page;
  const std::size_t unit = huge ? huge_page : line;
  const std::size_t padded = (std::size_t(bytes_) + unit - 1) / unit * unit;
  data_.reset(std::aligned_alloc(unit, padded));
  if (!data_) throw std::bad_alloc();
  if (huge) madvise(data_.get(), padded, MADV_HUGEPAGE);
  std::memset(data_.get(), 0, padded);
}

}  // namespace graft::bench
