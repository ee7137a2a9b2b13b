// Bayesian optimisation of a black box by tree-structured Parzen estimators (Bergstra et al., NeurIPS 2011), without a
// cost model: densities of the rows of each domain among the fastest programs measured and among the others; proposals
// are drawn from the first and have the largest ratio of the two, which is the largest expected improvement.
#pragma once

#include <cstdint>
#include <vector>

#include "search/explorer.h"
#include "search/point.h"

namespace graft::search {

struct BayesianSettings {
  int first = 32;            // measured programs before the densities are used; random draws until then
  double good_share = 0.15;  // of the measured programs: the fast ones
  double bandwidth = 0.7;    // of a kernel, in the distance of rows (codegen/space/space.h)
  double prior_weight = 1;   // of the uniform density, in measured programs
  int draws = 24;            // from the density of the fast ones, for each that is proposed
};

class Bayesian : public Explorer {
 public:
  Bayesian(const codegen::Space& space, std::uint64_t seed, const BayesianSettings& settings,
           const SelectionSettings& selection);
  void told(std::span<const datasets::Trial> trials) override;

 private:
  Proposal proposal(int count, Scorer& scorer) override;

  struct Measured {
    Point at;
    double seconds = 0;  // infinite for failures
  };
  struct Density {
    std::vector<double> sketches;                        // probabilities
    std::vector<std::vector<std::vector<double>>> rows;  // of sketch, of domain
  };
  Density density(std::span<const Measured> measured) const;

  const codegen::Space& space_;
  BayesianSettings settings_;
  SelectionSettings selection_;  // its random share
  base::Stream stream_;
  std::vector<Measured> measured_;  // fastest first
  KnownPrograms proposed_;
};

}  // namespace graft::search
