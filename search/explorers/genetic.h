// A genetic algorithm without a model, as AutoTVM's: a generation is measured as a whole; the next one consists of
// children of its fastest and of the fastest known (elites), crossed and mutated. A parent's chance is 1 / rank: in
// proportion to their speed, as AutoTVM draws them, the fastest are hardly likelier than the others.
#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "search/explorer.h"

namespace graft::search {

struct GeneticSettings {
  int population = 16;        // of a generation, which may take several rounds to measure
  int elites = 4;             // the fastest known, which are parents of every generation
  double mutation = 0.1;      // chance of each domain of a child to be drawn again
  int tries_for_a_child = 8;  // until it is a new program; then a random one replaces it
};

class Genetic : public Explorer {
 public:
  Genetic(const codegen::Space& space, std::uint64_t seed, const GeneticSettings& settings);
  void told(std::span<const datasets::Trial> trials) override;
  // Fastest first.
  const std::vector<datasets::Trial>& elites() const { return elites_; }

 private:
  Proposal proposal(int count, Scorer& scorer) override;
  void breed(Scorer& scorer);
  codegen::Candidate child(Scorer& scorer);

  const codegen::Space& space_;
  GeneticSettings settings_;
  base::Stream stream_;
  std::vector<datasets::Trial> generation_;  // the measured part
  std::vector<datasets::Trial> elites_;      // fastest first
  std::vector<datasets::Trial> parents_;     // of the generation under measurement
  std::vector<double> chances_;              // of the parents
  std::vector<codegen::Candidate> unborn_;   // of that generation, not proposed yet; the last one is next
  KnownPrograms proposed_;
};

}  // namespace graft::search
