// The sources: one model per source platform, the similarity of each platform to the target, the contradictory ones
// among them, and their form among a model's arrays. `ridge`, `nearest` and `residual` start from them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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
    std::vector<float> target;  // its values in target_columns
    bool doubted = false;       // contradictory: has weight 0 before anything is measured
    // The first trees of a forest, which learnt from datasets; -1: all of them. Those that follow learnt from
    // measurements that were given back, and are grown again when there are more of these.
    std::int64_t settled_trees = -1;
    float weight = 1;  // of its similarity in `shares`: less where little was measured
  };
  std::vector<Source> sources;
  Normalisation normalisation;
  NetworkShape shape;
  std::vector<std::vector<float>> thetas;                    // one per source; none if there are forests
  std::vector<DecisionForest> forests;                       // one per source; none if there are networks
  std::vector<std::shared_ptr<const ForestScorer>> scorers;  // of the forests
  std::vector<std::int64_t> target_columns;                  // of the features: of_target

  // programs x sources: the score of each source, times scale(). Without it, a platform whose programs differ
  // by factors would dominate the mean if the others' differ by per cents.
  base::Matrix predict(const features::Encoded& programs) const;
  float usual_spread() const;             // the sources' mean
  float scale(std::size_t source) const;  // the mean spread over this source's; 1 if that is 0
  // programs x sources: the similarity of each source to the target, summing to 1: equal, or by exp(-d^2 / 2) of the
  // distance d in target_columns, if there are any. Similar machines prefer the same programs.
  base::Matrix likeness(const features::Encoded& programs) const;
  // The weight of each source before anything is measured: its similarity among the trusted ones times its weight,
  // summing to 1.
  base::Matrix shares(const features::Encoded& programs) const;
  bool counts(std::size_t source) const;     // trusted, or no source is
  std::vector<double> equal_shares() const;  // of the trusted sources by their weights, summing to 1
  bool takes(const features::Encoding& encoding) const;
};

// Marks sources as contradictory that rank these programs against the others: while at least three remain, the one
// whose mean rank correlation with the others' predictions is least, if it is below 0, as it is for reversed times or
// times of other programs. No measurement is used.
void doubt_contrary_sources(SourceBasis& basis, std::span<const Examples> groups);

// Adds a source; it replaces that of a known platform.
void add(SourceBasis& basis, const SourceBasis::Source& source, std::vector<float> theta);
void add(SourceBasis& basis, const SourceBasis::Source& source, DecisionForest forest);
SourceBasis without(SourceBasis basis, std::size_t source);
SourceBasis only(const SourceBasis& basis, std::size_t source);
// The position of the platform's source; nullopt if it is none.
std::optional<std::size_t> source_of(const SourceBasis& basis, std::string_view platform);
void put(const SourceBasis& basis, base::Arrays& arrays);
SourceBasis basis_from(const base::Arrays& arrays);

}  // namespace graft::meta
