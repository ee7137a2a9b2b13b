// Regression forests: sums of binary decision trees on the summed rows of programs, and their scoring. Boosting
// (boosting.h) makes them; nothing here needs the training library.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/arrays.h"

namespace graft::meta {

struct DecisionForest {
  // A row goes left if row[feature] < number, else right (also if it is NaN): to node `left` or
  // `left` + 1 of its tree, both after the node itself. Leaves have feature -1; their number is added to the score.
  struct Node {
    std::int32_t feature = -1;
    float number = 0;
    std::int32_t left = 0;
    bool operator==(const Node&) const = default;
  };
  // The most levels of decisions of a tree.
  static constexpr int deepest = 8;

  std::int64_t features = 0;            // columns of a row
  std::vector<Node> nodes;              // tree after tree, roots first
  std::vector<std::int64_t> begins{0};  // tree t has the nodes [begins[t], begins[t + 1])

  std::int64_t trees() const { return std::int64_t(begins.size()) - 1; }
  bool operator==(const DecisionForest&) const = default;
  template <class Bytes, class Self>
  static void fields(Bytes& bytes, Self& self) {  // base/bytes.h
    bytes(self.features), bytes(self.nodes), bytes(self.begins);
  }
};

// Appends the trees of `more` to those of `all`; both on the same features.
void append(DecisionForest& all, const DecisionForest& more);

// The trees first, first + 1, ..., last - 1.
DecisionForest part(const DecisionForest& forest, std::int64_t first, std::int64_t last);

// Scores many rows of one forest. 512 rows at a time: each distinct decision (feature, number) is evaluated once for
// all rows, as one bit a row; the paths through a tree are then found for all rows by selections among words of such
// bits, without branches and without waiting for loads. Few rows go down several trees in parallel. Plain loops over 16
// lanes; on x86-64 the best instructions of the processor are chosen at run time. Thread-safe.
class ForestScorer {
 public:
  explicit ForestScorer(const DecisionForest& forest);

  // Sets scores[r] for rows of `features` columns; sums in the order of the trees.
  void score(const base::Matrix& rows, std::span<float> scores) const;
  // The scorer of a forest that differs only in the numbers of leaves: made in a fraction of the time.
  ForestScorer with_leaves_of(const DecisionForest& forest) const;

 private:
  struct Compiled;
  ForestScorer() = default;
  std::shared_ptr<const Compiled> compiled_;
  std::vector<float> leaves_;  // of the complete trees
};

// The leaf of each tree that rows end in: for regression on the partitions made by trees.
class LeafTable {
 public:
  LeafTable() = default;
  LeafTable(const DecisionForest& forest, const base::Matrix& rows);
  std::int64_t rows() const { return rows_; }
  // rows() x other.rows(): the share of the forest in which both rows end in the same leaf, 0 .. 1. Both of one forest.
  base::Matrix shared(const LeafTable& other) const;
  // The forest with other numbers in its leaves: those of tree t times scales[t], and its share of the forest times the
  // sum of values[r] over the table's rows that end there.
  DecisionForest relabelled(DecisionForest forest, std::span<const float> scales, std::span<const float> values) const;

 private:
  std::int64_t rows_ = 0, trees_ = 0, stride_ = 0;
  std::vector<std::uint8_t> leaves_;   // by row and tree, in the order of the tree's nodes; 0 after the trees
  std::vector<std::uint8_t> weights_;  // by tree: its share of the forest, times weight_; 0 after the trees
  std::int64_t weight_ = 0;            // the sum
};

// "forest/..." among a model's arrays, and back: UserError for an invalid forest (children before their parents,
// nodes with none or two of them, features that do not exist, trees deeper than `deepest`).
void put(const DecisionForest& forest, base::Arrays& arrays);
DecisionForest forest_from(const base::Arrays& arrays);

}  // namespace graft::meta
