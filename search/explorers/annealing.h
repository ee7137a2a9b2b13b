// Parallel simulated annealing on the cost model (AutoTVM's explorer): many chains mutate at once, their state persists
// between rounds, and the batch is selected from the best distinct programs seen.
#pragma once

#include <unordered_set>
#include <vector>

#include "search/explorer.h"

namespace graft::search {

struct AnnealingSettings {
  int chains = 64;
  int steps = 60;               // per round
  double temperature = 1;       // at a round's first step, falling linearly towards 0; in standard deviations of scores
  int patience = 20;            // steps without a change among the best before a round ends early
  double measured_share = 0.5;  // of the chains: each round they start again from the fastest programs measured
};

class Annealing : public Explorer {
 public:
  Annealing(const codegen::Space& space, std::uint64_t seed, const AnnealingSettings& settings,
            const SelectionSettings& selection);
  void told(std::span<const datasets::Trial> trials) override;

 private:
  Proposal proposal(int count, Scorer& scorer) override;

  const codegen::Space& space_;
  std::uint64_t seed_;
  AnnealingSettings settings_;
  SelectionSettings selection_;
  base::Stream stream_;
  std::int64_t mutations_ = 0;  // numbers the streams of the chains
  std::vector<codegen::Candidate> chains_;
  std::vector<datasets::Trial> best_measured_;  // fastest first
  KnownPrograms proposed_;
};

}  // namespace graft::search
