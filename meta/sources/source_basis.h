// The store of sources: one model per source platform, how like the target each platform is, which of them contradict
// the others, and all of it among a model's arrays. What `ridge`, `nearest` and `residual` start from.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/arrays.h"
#include "meta/forests/forest.h"
#include "meta/network.h"
#include "meta/normalisation.h"
#include "meta/task_set.h"

namespace graft::meta {

// One network, or one forest, per source platform, trained on -log seconds centred per workload.
struct SourceBasis {
  struct Source {
    std::string platform;
    float spread = 1;           // standard deviation of its labels
    std::vector<float> target;  // what it has in target_columns
    bool doubted = false;       // counts nothing before anything is measured
  };
  std::vector<Source> sources;
  Normalisation normalisation;
  NetworkShape shape;
  std::vector<std::vector<float>> thetas;                    // one per source; none where there are forests
  std::vector<DecisionForest> forests;                       // one per source; none where there are networks
  std::vector<std::shared_ptr<const ForestScorer>> scorers;  // of the forests
  std::vector<std::int64_t> target_columns;                  // of the features: of_target

  // programs x sources: what each source would score, times scale(). Where one platform's programs differ by factors
  // and the others' by per cents, it would decide alone on the mean of all.
  base::Matrix predict(const features::Encoded& programs) const;
  float scale(std::size_t source) const;  // the mean spread over this source's; 1 where that is 0
  // programs x sources: how like the target each of them is, 1 in all: alike, or where there are target_columns by
  // exp(-d^2 / 2) of the distance d in them. Machines alike like the same programs.
  base::Matrix likeness(const features::Encoded& programs) const;
  // What each of them counts before anything is measured: its likeness, of those that count, 1 in all.
  base::Matrix shares(const features::Encoded& programs) const;
  bool counts(std::size_t source) const;     // not doubted, or all are
  std::vector<double> equal_shares() const;  // of those that count, 1 in all
  bool takes(const features::Encoding& encoding) const;
};

// Doubts sources that order these programs against the others: while there are three, the one whose mean rank
// correlation with the others' predictions is least, if it is below 0, as of times that were reversed or are of other
// programs. No measurement is looked at.
void doubt_contrary_sources(SourceBasis& basis, std::span<const Examples> groups);

// A source more; that of a platform that is known is replaced.
void add(SourceBasis& basis, const SourceBasis::Source& source, std::vector<float> theta);
void add(SourceBasis& basis, const SourceBasis::Source& source, DecisionForest forest);
SourceBasis without(SourceBasis basis, std::size_t source);
void put(const SourceBasis& basis, base::Arrays& arrays);
SourceBasis basis_from(const base::Arrays& arrays);

}  // namespace graft::meta
