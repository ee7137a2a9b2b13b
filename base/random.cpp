#include "base/random.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>
#include <numeric>
#include <unordered_map>

#include "base/hash.h"

namespace graft::base {

Stream::Stream(std::uint64_t seed, std::string_view name, std::uint64_t index)
    : key_(hash_combine(hash_combine(seed, hash_bytes(name)), index)) {}

std::uint64_t Stream::bits() {
  // splitmix64 (Steele, Lea, Flood, OOPSLA 2014), started at the key.
  return hash_mix(key_ + ++counter_ * 0x9e3779b97f4a7c15u);
}

double Stream::uniform() {
  return double(bits() >> 11) * 0x1p-53;
}

std::int64_t Stream::below(std::int64_t n) {
  assert(n >= 1);
  // Lemire, "Fast random integer generation in an interval" (2019): multiply, and draw again in the biased rest.
  using Wide = unsigned __int128;
  const std::uint64_t range = std::uint64_t(n);
  const std::uint64_t biased = (0 - range) % range;
  Wide product = Wide(bits()) * range;
  while (std::uint64_t(product) < biased) product = Wide(bits()) * range;
  return std::int64_t(product >> 64);
}

double Stream::normal() {
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));  // 1 - u is never 0
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

std::vector<std::int64_t> Stream::choose(std::int64_t n, std::int64_t count) {
  assert(n >= 0);
  count = std::max<std::int64_t>(0, std::min(count, n));
  std::vector<std::int64_t> chosen;
  chosen.reserve(std::size_t(count));
  // The first `count` steps of Fisher-Yates. A space may have 10^12 members, so a short draw keeps only the places that
  // were moved; both ways give the same numbers.
  if (n <= 4 * count) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(n));
    std::iota(all.begin(), all.end(), 0);
    for (std::int64_t i = 0; i < count; ++i) {
      std::swap(all[std::size_t(i)], all[std::size_t(i + below(n - i))]);
      chosen.push_back(all[std::size_t(i)]);
    }
    return chosen;
  }
  std::unordered_map<std::int64_t, std::int64_t> moved;
  const auto at = [&](std::int64_t i) {
    const auto found = moved.find(i);
    return found == moved.end() ? i : found->second;
  };
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t j = i + below(n - i);
    chosen.push_back(at(j));
    moved[j] = at(i);
  }
  return chosen;
}

}  // namespace graft::base
