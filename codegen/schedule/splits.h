// Tile sizes worth trying for an extent, and chains of them: what rules and templates fill tile steps with.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace graft::codegen {

// usual: exact divisors, and times powers of two, too, where that leaves little choice; factors: exact divisors alone;
// powers: times powers of two; tails: both. Powers of two need not divide: what is left is a remainder.
#define GRAFT_SPLIT_POLICIES(X) X(usual) X(factors) X(powers) X(tails)

enum class SplitPolicy {
#define X(name) name,
  GRAFT_SPLIT_POLICIES(X)
#undef X
};

// Multiples of `size` worth trying as the next larger tile of an extent, rising. The last one is all of the extent,
// rounded up to a multiple of `size` (with factors: only where `size` divides it).
std::vector<std::int64_t> multiples(std::int64_t size, std::int64_t extent, SplitPolicy policy = SplitPolicy::usual);

// All chains s1, s2, ... in which each size is one of the multiples of the next and the last one a multiple of 1;
// `given` holds the sizes that are settled (nullopt: open). Only chains that fit the given sizes, at most `most` and
// one.
std::vector<std::vector<std::int64_t>> chains(std::int64_t extent, std::span<const std::optional<std::int64_t>> given,
                                              SplitPolicy policy, std::size_t most);

}  // namespace graft::codegen
