// Tile sizes worth trying for an extent, and chains of them: what rules and templates fill tile steps with.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace graft::codegen {

// factors: exact divisors; powers: times powers of two, up to the first that covers the extent (its tail is a
// remainder); tails: both.
#define GRAFT_SPLIT_POLICIES(X) X(factors) X(powers) X(tails)

enum class SplitPolicy {
#define X(name) name,
  GRAFT_SPLIT_POLICIES(X)
#undef X
};

// Multiples of `size` worth trying as the next larger tile of an extent, rising: by the policy, the last one being all
// of the extent (rounded up to a multiple of `size`; with factors only where that is the extent itself).
std::vector<std::int64_t> multiples(std::int64_t size, std::int64_t extent, SplitPolicy policy = SplitPolicy::tails);

// All chains s1, s2, ... in which each size is one of the multiples of the next and the last one a multiple of 1;
// `given` holds the sizes that are settled (nullopt: open). Only chains that fit the given sizes, at most `most` and
// one.
std::vector<std::vector<std::int64_t>> chains(std::int64_t extent, std::span<const std::optional<std::int64_t>> given,
                                              SplitPolicy policy, std::size_t most);

}  // namespace graft::codegen
