// Reinforcement learning without a cost model: a policy changes a fast program a few times, each time choosing a domain
// and the row that it takes; the reward is the gain in speed, and REINFORCE (Williams, 1992) with the
// mean reward as its baseline makes rewarded choices more likely. The state is the program's features, seen through
// the scorer's encoding; rows are described by their numbers, so that what is learnt for one applies to similar ones.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "search/explorer.h"
#include "search/point.h"

namespace graft::search {

struct PolicySettings {
  int parents = 8;  // the fastest measured: where episodes begin
  int steps = 2;    // changes in an episode, which is one proposed program
  double learning_rate = 0.3;
  double baseline_weight = 0.05;  // of a new reward in the mean
  double most_reward = 1;         // |log of the ratio of times| is cut there; failures have the least
  int first = 16;                 // `ok` programs before episodes start; random draws until then
  int tries = 8;                  // for each program, until it is a new one
};

class Policy : public Explorer {
 public:
  Policy(const codegen::Space& space, std::uint64_t seed, const PolicySettings& settings,
         const SelectionSettings& selection);
  void told(std::span<const datasets::Trial> trials) override;

 private:
  Proposal proposal(int count, Scorer& scorer) override;

  struct Choice {
    std::size_t domain = 0, row = 0;
  };
  struct Episode {
    std::size_t sketch = 0;
    std::vector<float> state;  // of the program that it began with
    std::vector<Choice> choices;
    double seconds = 0;  // of that program
  };
  struct Weights {
    std::vector<std::vector<double>> domains;  // of domain: of state
    std::vector<std::vector<double>> rows;     // of domain: of a row's description
  };

  std::vector<double> domain_chances(const Weights& weights, const std::vector<float>& state,
                                     const codegen::SketchSpace& part) const;
  std::vector<double> row_chances(std::size_t sketch, std::size_t domain) const;
  std::vector<float> state_of(const codegen::Candidate& candidate, Scorer& scorer);
  void learn(const Episode& episode, double reward);

  const codegen::Space& space_;
  PolicySettings settings_;
  SelectionSettings selection_;  // its random share
  base::Stream stream_;
  std::vector<std::vector<std::vector<std::vector<double>>>> described_;  // of sketch, domain, row: numbers
  std::vector<Weights> weights_;                                          // of sketch
  double baseline_ = 0;
  std::vector<datasets::Trial> fastest_;                  // fastest first
  std::unordered_map<std::uint64_t, Episode> in_flight_;  // by hash of its final candidate
  KnownPrograms proposed_;
};

}  // namespace graft::search
