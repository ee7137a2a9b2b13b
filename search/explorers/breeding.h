// For datasets that are to know fast programs, too: a share of each round is bred from the fastest programs measured so
// far, without a model; the others are drawn as by Sampling.
#pragma once

#include <unordered_set>
#include <vector>

#include "search/explorer.h"

namespace graft::search {

class Breeding : public Explorer {
 public:
  // 0 <= share <= 1, of each round.
  Breeding(const codegen::Space& space, std::uint64_t seed, double share)
      : space_(space), share_(share), stream_(seed, "breeding") {}
  void told(std::span<const datasets::Trial> trials) override;

 private:
  Proposal proposal(int count, Scorer& scorer) override;

  const codegen::Space& space_;
  double share_;
  base::Stream stream_;
  std::vector<datasets::Trial> fastest_;  // fastest first
  std::unordered_set<std::uint64_t> proposed_;
};

}  // namespace graft::search
