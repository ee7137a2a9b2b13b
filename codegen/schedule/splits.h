// Tile sizes worth trying for an extent, and chains of them, for the tile steps of rules and templates.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace graft::codegen {

// usual: exact divisors, and also multiples by powers of two if that leaves little choice; factors: exact divisors
// alone; powers: times powers of two; tails: both. Powers of two need not divide: the rest is a remainder.
#define GRAFT_SPLIT_POLICIES(X) X(usual) X(factors) X(powers) X(tails)

enum class SplitPolicy {
#define X(name) name,
  GRAFT_SPLIT_POLICIES(X)
#undef X
};

// Multiples of `size` worth trying as the next larger tile of an extent, rising. The last one is all of the extent,
// rounded up to a multiple of `size` (with factors: only if `size` divides it).
std::vector<std::int64_t> multiples(std::int64_t size, std::int64_t extent, SplitPolicy policy = SplitPolicy::usual);

// All chains s1, s2, ... in which each size is one of the multiples of the next and the last one a multiple of 1;
// `given` holds the fixed sizes (nullopt: open). Only chains that match the fixed sizes, at most `most` and
// one.
std::vector<std::vector<std::int64_t>> chains(std::int64_t extent, std::span<const std::optional<std::int64_t>> given,
                                              SplitPolicy policy, std::size_t most);

}  // namespace graft::codegen
