// The definition of a forest's score, which the fast scorer is compared with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "meta/forests/forest.h"

namespace graft::meta {

// Tree after tree, from the root down.
inline float score_of(const DecisionForest& forest, std::span<const float> row) {
  float sum = 0;
  for (std::int64_t t = 0; t < forest.trees(); ++t) {
    const DecisionForest::Node* const tree = forest.nodes.data() + forest.begins[std::size_t(t)];
    const DecisionForest::Node* node = tree;
    while (node->feature >= 0) node = tree + node->left + (row[std::size_t(node->feature)] < node->number ? 0 : 1);
    sum += node->number;
  }
  return sum;
}

}  // namespace graft::meta
