// For datasets that should include fast programs: a share of each round is bred from the fastest programs measured so
// far, without a model; the others are drawn as by Sampling.
#pragma once

#include <unordered_set>
#include <vector>

#include "search/explorer.h"

namespace graft::search {

struct BreedingSettings {
  double share = 0;               // of each round, 0 <= share <= 1
  int parents = 32;               // the fastest measured
  double crossover_share = 0.25;  // of the children
  int tries_for_a_child = 20;
};

class Breeding : public Explorer {
 public:
  Breeding(const codegen::Space& space, std::uint64_t seed, const BreedingSettings& settings)
      : space_(space), settings_(settings), stream_(seed, "breeding") {}
  void told(std::span<const datasets::Trial> trials) override;

 private:
  Proposal proposal(int count, Scorer& scorer) override;

  const codegen::Space& space_;
  BreedingSettings settings_;
  base::Stream stream_;
  std::vector<datasets::Trial> fastest_;  // fastest first
  std::unordered_set<std::uint64_t> proposed_;
};

}  // namespace graft::search
