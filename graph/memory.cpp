#include "graph/memory.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

namespace graft::graph {
namespace {

constexpr std::int64_t alignment = 64;

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace

Places placed(std::span<const Lifetime> buffers) {
  Places result{std::vector<std::int64_t>(buffers.size()), 0};
  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return buffers[a].bytes > buffers[b].bytes; });
  std::vector<std::size_t> done;  // by rising offset
  for (const std::size_t b : order) {
    const Lifetime& here = buffers[b];
    const std::int64_t bytes = aligned(here.bytes);
    std::int64_t free = 0, best = -1, least_gap = std::numeric_limits<std::int64_t>::max();
    for (const std::size_t other : done) {
      const Lifetime& there = buffers[other];
      if (there.last < here.first || here.last < there.first) continue;
      const std::int64_t gap = result.offsets[other] - free;
      if (gap >= bytes && gap < least_gap) {
        least_gap = gap;
        best = free;
      }
      free = std::max(free, result.offsets[other] + aligned(there.bytes));
    }
    result.offsets[b] = best >= 0 ? best : free;
    result.bytes = std::max(result.bytes, result.offsets[b] + bytes);
    done.insert(std::upper_bound(done.begin(), done.end(), b,
                                 [&](std::size_t a, std::size_t c) { return result.offsets[a] < result.offsets[c]; }),
                b);
  }
  return result;
}

std::int64_t peak_bytes(std::span<const Lifetime> buffers) {
  std::map<int, std::int64_t> changes;  // at the beginning of a call
  for (const Lifetime& buffer : buffers) {
    changes[buffer.first] += aligned(buffer.bytes);
    changes[buffer.last + 1] -= aligned(buffer.bytes);
  }
  std::int64_t now = 0, most = 0;
  for (const auto& [call, change] : changes) most = std::max(most, now += change);
  return most;
}

}  // namespace graft::graph
