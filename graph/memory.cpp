#include "graph/memory.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "base/random.h"

namespace graft::graph {
namespace {

constexpr std::int64_t alignment = 64;
constexpr std::int64_t most_rounds = 2000;        // orders that are tried
constexpr std::int64_t most_steps = 400'000'000;  // comparisons of buffers in them

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// Each buffer in this order, where it fits best between those that are placed.
Places placed_in_order(std::span<const Lifetime> buffers, std::span<const std::size_t> order) {
  Places result{std::vector<std::int64_t>(buffers.size()), 0};
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

}  // namespace

Places placed(std::span<const Lifetime> buffers) {
  const auto bytes = [&](std::size_t b) { return double(buffers[b].bytes); };
  const auto calls = [&](std::size_t b) { return double(buffers[b].last - buffers[b].first + 1); };
  const std::int64_t least = peak_bytes(buffers);
  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  const auto by = [&](const auto& key) {
    std::vector<std::size_t> sorted = order;
    std::stable_sort(sorted.begin(), sorted.end(), [&](std::size_t a, std::size_t b) { return key(a) > key(b); });
    return sorted;
  };
  std::vector<std::size_t> best_order = by(bytes);
  Places best = placed_in_order(buffers, best_order);
  const auto try_order = [&](std::vector<std::size_t> other) {
    Places places = placed_in_order(buffers, other);
    if (places.bytes > best.bytes) return;
    best = std::move(places);
    best_order = std::move(other);
  };
  if (best.bytes > least) try_order(by([&](std::size_t b) { return bytes(b) * calls(b); }));
  if (best.bytes > least) try_order(by([&](std::size_t b) { return calls(b); }));
  // Neighbours of the best order: one buffer earlier.
  base::Stream stream(1, "places");
  const std::int64_t count = std::int64_t(order.size());
  for (std::int64_t round = 0;
       round < std::min(most_rounds, most_steps / std::max<std::int64_t>(count * count, 1)) && best.bytes > least;
       ++round) {
    std::vector<std::size_t> other = best_order;
    const std::int64_t from = stream.below(count), to = stream.below(from + 1);
    std::rotate(other.begin() + to, other.begin() + from, other.begin() + from + 1);
    try_order(std::move(other));
  }
  return best;
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
