// Gradient boosting: trees that reduce a loss step by step, grown by XGBoost on the derivatives of objectives.h, so
// that a loss means the same for trees and for networks.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/arrays.h"
#include "features/encoding.h"
#include "meta/forests/forest.h"
#include "meta/objectives.h"

namespace graft::meta {

struct BoostingSettings {
  std::int64_t trees = 0;
  int depth = 6;            // at most DecisionForest::deepest
  double rate = 0.1;        // share of each Newton step that is taken
  double lambda = 1;        // penalty on leaf values; as this and the next, in rows of mean curvature
  double least_weight = 1;  // of a leaf
  double features = 1;      // share of the features that a tree may use, drawn for each
  std::uint64_t seed = 1;
  int threads = 1;  // changes only the time
};

// Trees on `rows` (finite numbers; objective.rows() of them) starting from the scores `start`; none if no group of the
// objective counts. `on_tree(k)` is called after tree k = 1, 2, ..., and may throw.
DecisionForest boosted(const base::Matrix& rows, const Objective& objective, std::span<const float> start,
                       const BoostingSettings& settings, const std::function<void(std::int64_t)>& on_tree = {});

// The features of programs for trees: the sum of each program's rows, with 0 in place of values that are not finite.
base::Matrix tree_rows(const features::Encoded& programs);

}  // namespace graft::meta
