#include "codegen/schedule/splits.h"

#include <algorithm>
#include <set>

namespace graft::codegen {
namespace {

constexpr std::size_t few_choices = 4;

// Fills chain[level] and all in front of it.
void extend(std::int64_t extent, std::span<const std::optional<std::int64_t>> given, SplitPolicy policy,
            std::size_t most, std::size_t level, std::vector<std::int64_t>& chain,
            std::vector<std::vector<std::int64_t>>& result) {
  const std::int64_t inner = level + 1 < chain.size() ? chain[level + 1] : 1;
  std::vector<std::int64_t> sizes;
  if (!given[level]) {
    sizes = multiples(inner, extent, policy);
  } else if (*given[level] % inner == 0) {
    sizes = {*given[level]};
  }
  for (const std::int64_t size : sizes) {
    if (result.size() > most) return;
    chain[level] = size;
    if (level == 0) {
      result.push_back(chain);
    } else {
      extend(extent, given, policy, most, level - 1, chain, result);
    }
  }
}

}  // namespace

std::vector<std::int64_t> multiples(std::int64_t size, std::int64_t extent, SplitPolicy policy) {
  std::set<std::int64_t> result;
  const std::int64_t whole = (extent + size - 1) / size * size;
  if (whole == extent || policy != SplitPolicy::factors) result.insert(whole);
  if (policy != SplitPolicy::powers) {
    for (std::int64_t factor = 1; size * factor < extent; ++factor) {
      if (extent % (size * factor) == 0) result.insert(size * factor);
    }
  }
  const bool powers = policy == SplitPolicy::powers || policy == SplitPolicy::tails ||
                      (policy == SplitPolicy::usual && result.size() < few_choices);
  for (std::int64_t factor = 1; powers && size * factor < extent; factor *= 2) result.insert(size * factor);
  return {result.begin(), result.end()};
}

std::vector<std::vector<std::int64_t>> chains(std::int64_t extent, std::span<const std::optional<std::int64_t>> given,
                                              SplitPolicy policy, std::size_t most) {
  std::vector<std::vector<std::int64_t>> result;
  std::vector<std::int64_t> chain(given.size());
  if (!given.empty()) extend(extent, given, policy, most, given.size() - 1, chain, result);
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace graft::codegen
