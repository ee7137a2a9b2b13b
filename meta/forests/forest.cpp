#include "meta/forests/forest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "meta/state.h"

// One copy of a function for each level of x86-64; the dynamic linker picks.
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__SANITIZE_ADDRESS__)
#define GRAFT_BEST_INSTRUCTIONS __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define GRAFT_BEST_INSTRUCTIONS
#endif

namespace graft::meta {
namespace {

// A block is `steps` times `lanes` rows; a row's bit of a word is its step, the word its lane.
constexpr std::int64_t lanes = 16, steps = 32, block = lanes * steps;
// Below this, going down the trees row by row is faster than a block that is nearly empty.
constexpr std::int64_t few_rows = 8;

using Words = std::array<std::uint32_t, lanes>;

// Bits of the rows that go right: not (x < number), for `count` steps of the column.
GRAFT_BEST_INSTRUCTIONS
void decide(const float* column, const float* numbers, std::int64_t decisions, std::int64_t count, Words* bits) {
  for (std::int64_t d = 0; d < decisions; ++d) {
    const float number = numbers[d];
    std::uint32_t words[lanes] = {};
    for (std::int64_t q = 0; q < count; ++q) {
      const std::uint32_t bit = std::uint32_t(1) << q;
      for (std::int64_t l = 0; l < lanes; ++l) words[l] |= column[q * lanes + l] < number ? 0 : bit;
    }
    for (std::int64_t l = 0; l < lanes; ++l) bits[d][std::size_t(l)] = words[l];
  }
}

// Adds the leaves that the rows of a block reach in one complete tree of `depth` levels. `decisions`: of its inner
// nodes, level by level.
GRAFT_BEST_INSTRUCTIONS
void add_tree(const Words* bits, const std::int32_t* decisions, const float* leaves, int depth, std::int64_t count,
              float* scores) {
  std::uint32_t path[DecisionForest::deepest][lanes];
  std::uint32_t words[std::size_t(1) << (DecisionForest::deepest - 2)][lanes];
  for (int level = 0; level < depth; ++level) {
    // Each row needs one of 2^level decisions: halves are chosen by the path so far, from the root.
    const std::int32_t* const nodes = decisions + (std::int64_t(1) << level) - 1;
    std::int64_t half = std::int64_t(1) << level;
    if (level == 0) {
      for (std::int64_t l = 0; l < lanes; ++l) path[0][l] = bits[nodes[0]][std::size_t(l)];
      continue;
    }
    half /= 2;
    for (std::int64_t i = 0; i < half; ++i) {
      const std::uint32_t *const left = bits[nodes[i]].data(), *const right = bits[nodes[i + half]].data();
      for (std::int64_t l = 0; l < lanes; ++l) words[i][l] = (left[l] & ~path[0][l]) | (right[l] & path[0][l]);
    }
    for (int above = 1; above < level; ++above) {
      half /= 2;
      for (std::int64_t i = 0; i < half; ++i) {
        for (std::int64_t l = 0; l < lanes; ++l) {
          words[i][l] = (words[i][l] & ~path[above][l]) | (words[i + half][l] & path[above][l]);
        }
      }
    }
    for (std::int64_t l = 0; l < lanes; ++l) path[level][l] = words[0][l];
  }
  for (std::int64_t q = 0; q < count; ++q) {
    std::uint32_t leaf[lanes] = {};
    for (int level = 0; level < depth; ++level) {
      for (std::int64_t l = 0; l < lanes; ++l) leaf[l] = 2 * leaf[l] + ((path[level][l] >> q) & 1);
    }
    float* const to = scores + q * lanes;
    for (std::int64_t l = 0; l < lanes; ++l) to[l] += leaves[leaf[l]];
  }
}

// Children come after their parents, so one pass finds the levels.
int depth_of(std::span<const DecisionForest::Node> tree) {
  std::vector<int> level(tree.size(), 0);
  for (std::size_t i = 0; i < tree.size(); ++i) {
    if (tree[i].feature < 0) continue;
    for (const auto child : {std::size_t(tree[i].left), std::size_t(tree[i].left) + 1})
      level[child] = std::max(level[child], level[i] + 1);
  }
  return *std::max_element(level.begin(), level.end());
}

std::span<const DecisionForest::Node> tree_of(const DecisionForest& forest, std::int64_t tree) {
  const auto begin = std::size_t(forest.begins[std::size_t(tree)]);
  return std::span(forest.nodes).subspan(begin, std::size_t(forest.begins[std::size_t(tree + 1)]) - begin);
}

}  // namespace

void append(DecisionForest& all, const DecisionForest& more) {
  assert(all.features == more.features);
  const auto before = std::int64_t(all.nodes.size());
  all.nodes.insert(all.nodes.end(), more.nodes.begin(), more.nodes.end());
  for (std::int64_t t = 0; t < more.trees(); ++t) all.begins.push_back(before + more.begins[std::size_t(t + 1)]);
}

DecisionForest part(const DecisionForest& forest, std::int64_t first, std::int64_t last) {
  const std::int64_t begin = forest.begins[std::size_t(first)], end = forest.begins[std::size_t(last)];
  DecisionForest out;
  out.features = forest.features;
  out.nodes.assign(forest.nodes.begin() + begin, forest.nodes.begin() + end);
  for (std::int64_t t = first; t < last; ++t) out.begins.push_back(forest.begins[std::size_t(t + 1)] - begin);
  return out;
}

namespace {

// The node that the row ends in.
std::size_t leaf_of(const DecisionForest& forest, std::int64_t t, std::span<const float> row) {
  const auto root = std::size_t(forest.begins[std::size_t(t)]);
  const DecisionForest::Node* const tree = forest.nodes.data() + root;
  const DecisionForest::Node* node = tree;
  while (node->feature >= 0) node = tree + node->left + (row[std::size_t(node->feature)] < node->number ? 0 : 1);
  return root + std::size_t(node - tree);
}

}  // namespace

struct ForestScorer::Compiled {
  struct Decision {
    std::int32_t feature = 0;
    float number = 0;
  };
  struct Column {
    std::int32_t feature = 0;
    std::int64_t begin = 0, end = 0;  // of its decisions
  };
  struct Tree {
    int depth = 0;
    std::int64_t decisions = 0, leaves = 0;  // where they begin
  };
  std::int64_t features = 0;
  std::vector<Column> columns;
  std::vector<float> numbers;  // of the distinct decisions, column after column
  std::vector<Tree> trees;
  std::vector<std::int32_t> decisions;  // of the complete trees' inner nodes: numbers of the distinct ones
  std::vector<Decision> nodes;          // the same
  std::int64_t leaves = 0;              // of the complete trees
  std::vector<std::size_t> by_depth;    // trees, the lowest first

  // Walks a tree as if it were complete: a leaf above the last level represents all places below it,
  // where decisions do not matter. `at_leaf(place among the last level, node)`, `at_inner(place among the
  // inner nodes, node)`.
  template <class AtLeaf, class AtInner>
  static void walk(std::span<const DecisionForest::Node> tree, std::size_t node, int depth, int level, std::int64_t at,
                   const AtLeaf& at_leaf, const AtInner& at_inner) {
    if (level == depth) return at_leaf(at, tree[node]);
    const bool leaf = tree[node].feature < 0;
    if (!leaf) at_inner((std::int64_t(1) << level) - 1 + at, tree[node]);
    const auto left = std::size_t(tree[node].left);
    walk(tree, leaf ? node : left, depth, level + 1, 2 * at, at_leaf, at_inner);
    walk(tree, leaf ? node : left + 1, depth, level + 1, 2 * at + 1, at_leaf, at_inner);
  }
  std::vector<float> leaves_of(const DecisionForest& forest) const {
    std::vector<float> out(std::size_t(leaves), 0.0f);
    for (std::size_t t = 0; t < trees.size(); ++t) {
      walk(
          tree_of(forest, std::int64_t(t)), 0, trees[t].depth, 0, 0,
          [&](std::int64_t place, const DecisionForest::Node& leaf) {
            out[std::size_t(trees[t].leaves + place)] = leaf.number;
          },
          [](auto...) {});
    }
    return out;
  }

  // For one row: down several trees in parallel, each an independent chain of loads.
  float score_row(std::span<const float> row, const std::vector<float>& numbers_of_leaves,
                  std::span<float> reached) const {
    constexpr std::size_t at_once = 8;
    for (std::size_t first = 0; first < by_depth.size(); first += at_once) {
      const Decision* from[at_once];
      std::size_t at[at_once] = {};
      for (std::size_t t = 0; t < at_once; ++t)  // the last one fills the rest
        from[t] = nodes.data() + trees[by_depth[std::min(first + t, by_depth.size() - 1)]].decisions;
      const auto step = [&](std::size_t t) {
        const Decision& decision = from[t][at[t]];
        at[t] = 2 * at[t] + 1 + (row[std::size_t(decision.feature)] < decision.number ? 0 : 1);
      };
      const int together = trees[by_depth[first]].depth;
      for (int level = 0; level < together; ++level) {
#pragma GCC unroll 8
        for (std::size_t t = 0; t < at_once; ++t) step(t);
      }
      for (std::size_t t = 0; t < std::min(at_once, by_depth.size() - first); ++t) {
        const Tree& tree = trees[by_depth[first + t]];
        for (int level = together; level < tree.depth; ++level) step(t);
        reached[by_depth[first + t]] =
            numbers_of_leaves[std::size_t(tree.leaves) + at[t] + 1 - (std::size_t(1) << tree.depth)];
      }
    }
    float sum = 0;
    for (const float leaf : reached) sum += leaf;
    return sum;
  }
};

ForestScorer::ForestScorer(const DecisionForest& forest) {
  auto compiled = std::make_shared<Compiled>();
  compiled->features = forest.features;
  std::vector<std::vector<float>> numbers_of(std::size_t(forest.features));
  std::vector<std::int64_t> begin_of(numbers_of.size());
  for (const DecisionForest::Node& node : forest.nodes) {
    if (node.feature >= 0) numbers_of[std::size_t(node.feature)].push_back(node.number);
  }
  for (std::size_t f = 0; f < numbers_of.size(); ++f) {
    std::vector<float>& numbers = numbers_of[f];
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    begin_of[f] = std::int64_t(compiled->numbers.size());
    compiled->numbers.insert(compiled->numbers.end(), numbers.begin(), numbers.end());
    if (!numbers.empty())
      compiled->columns.push_back({std::int32_t(f), begin_of[f], std::int64_t(compiled->numbers.size())});
  }
  const auto number_of = [&](const DecisionForest::Node& node) {
    const auto f = std::size_t(node.feature);
    const auto at = std::lower_bound(numbers_of[f].begin(), numbers_of[f].end(), node.number);
    return std::int32_t(begin_of[f] + (at - numbers_of[f].begin()));
  };
  for (std::int64_t t = 0; t < forest.trees(); ++t) {
    const auto tree = tree_of(forest, t);
    const Compiled::Tree made{depth_of(tree), std::int64_t(compiled->decisions.size()), compiled->leaves};
    assert(made.depth <= DecisionForest::deepest);
    compiled->decisions.resize(compiled->decisions.size() + (std::size_t(1) << made.depth) - 1);
    compiled->nodes.resize(compiled->decisions.size());
    compiled->leaves += std::int64_t(1) << made.depth;
    Compiled::walk(
        tree, 0, made.depth, 0, 0, [](auto...) {},
        [&](std::int64_t place, const DecisionForest::Node& node) {
          const auto at = std::size_t(made.decisions + place);
          compiled->decisions[at] = number_of(node);
          compiled->nodes[at] = {node.feature, node.number};
        });
    compiled->trees.push_back(made);
    compiled->by_depth.push_back(std::size_t(t));
  }
  std::stable_sort(compiled->by_depth.begin(), compiled->by_depth.end(),
                   [&](std::size_t a, std::size_t b) { return compiled->trees[a].depth < compiled->trees[b].depth; });
  leaves_ = compiled->leaves_of(forest);
  compiled_ = std::move(compiled);
}

ForestScorer ForestScorer::with_leaves_of(const DecisionForest& forest) const {
  ForestScorer out;
  out.compiled_ = compiled_;
  out.leaves_ = compiled_->leaves_of(forest);
  return out;
}

void ForestScorer::score(const base::Matrix& rows, std::span<float> scores) const {
  const Compiled& c = *compiled_;
  assert(rows.columns == c.features && std::int64_t(scores.size()) == rows.rows);
  std::vector<Words> bits;
  std::vector<float> column, sums;
  for (std::int64_t begin = 0; begin < rows.rows; begin += block) {
    const std::int64_t here = std::min(block, rows.rows - begin);
    if (here <= few_rows) {
      std::vector<float> reached(c.trees.size());
      for (std::int64_t r = begin; r < rows.rows; ++r)
        scores[std::size_t(r)] = c.score_row(rows.row(r), leaves_, reached);
      return;
    }
    bits.resize(c.numbers.size());
    column.resize(std::size_t(block));
    sums.resize(std::size_t(block));
    const std::int64_t count = (here + lanes - 1) / lanes;
    for (const Compiled::Column& each : c.columns) {
      const float* from = rows.row(begin).data() + each.feature;
      for (std::int64_t r = 0; r < here; ++r) column[std::size_t(r)] = from[r * rows.columns];
      decide(column.data(), c.numbers.data() + each.begin, each.end - each.begin, count, bits.data() + each.begin);
    }
    std::fill(sums.begin(), sums.end(), 0.0f);
    for (const Compiled::Tree& tree : c.trees) {
      add_tree(bits.data(), c.decisions.data() + tree.decisions, leaves_.data() + tree.leaves, tree.depth, count,
               sums.data());
    }
    std::copy(sums.begin(), sums.begin() + here, scores.begin() + begin);
  }
}

namespace {

constexpr std::int64_t together = 64;  // leaves that are compared at once
// As much as the second-level cache keeps while all rows go through it: trees with their nodes, and rows of leaves.
constexpr std::int64_t trees_at_once = 64, rows_at_once = 16;

// The sum of the weights at those of the first `count` places (a multiple of `together`) that are equal.
GRAFT_BEST_INSTRUCTIONS
std::int64_t equal_weight(const std::uint8_t* a, const std::uint8_t* b, const std::uint8_t* weights,
                          std::int64_t count) {
  typedef std::uint8_t Bytes __attribute__((vector_size(together), aligned(1), may_alias));
  typedef std::uint16_t Pairs __attribute__((vector_size(together)));
  std::int64_t sum = 0;
  for (std::int64_t begin = 0; begin < count;) {
    const std::int64_t end = std::min(count, begin + 128 * together);  // two sums of this many weights fit into 16 bits
    Pairs even{}, odd{};
    for (; begin < end; begin += together) {
      const Bytes &left = *reinterpret_cast<const Bytes*>(a + begin),
                  &right = *reinterpret_cast<const Bytes*>(b + begin),
                  &weight = *reinterpret_cast<const Bytes*>(weights + begin);
      const auto equal = Pairs(Bytes(left == right) & weight);
      even += equal & 255;
      odd += equal >> 8;
    }
    even += odd;
    for (std::size_t l = 0; l < std::size_t(together) / 2; ++l) sum += even[l];
  }
  return sum;
}

// The weight of a tree: the root mean square of its leaves' numbers, in 255ths of the largest one, at least 1. Trees
// that boosting added late change little, and rows that only they separate differ little.
std::vector<std::uint8_t> weights_of_trees(const DecisionForest& forest) {
  std::vector<double> sizes;
  for (std::int64_t t = 0; t < forest.trees(); ++t) {
    double squares = 0, leaves = 0;
    for (auto n = std::size_t(forest.begins[std::size_t(t)]); n < std::size_t(forest.begins[std::size_t(t + 1)]); ++n) {
      const DecisionForest::Node& node = forest.nodes[n];
      if (node.feature >= 0) continue;
      squares += double(node.number) * double(node.number);
      leaves += 1;
    }
    sizes.push_back(std::sqrt(squares / leaves));
  }
  const double largest = sizes.empty() ? 0 : *std::max_element(sizes.begin(), sizes.end());
  std::vector<std::uint8_t> weights;
  for (const double size : sizes)
    weights.push_back(largest > 0 ? std::uint8_t(std::max(1L, std::lround(255 * size / largest))) : std::uint8_t(1));
  return weights;
}

// The place of each leaf among the leaves of its tree, by node.
std::vector<std::uint8_t> places_of_leaves(const DecisionForest& forest) {
  std::vector<std::uint8_t> places(forest.nodes.size(), 0);
  for (std::int64_t t = 0; t < forest.trees(); ++t) {
    std::uint8_t next = 0;  // 2^deepest of them at most
    for (auto n = std::size_t(forest.begins[std::size_t(t)]); n < std::size_t(forest.begins[std::size_t(t + 1)]); ++n)
      if (forest.nodes[n].feature < 0) places[n] = next++;
  }
  return places;
}

}  // namespace

LeafTable::LeafTable(const DecisionForest& forest, const base::Matrix& rows)
    : rows_(rows.rows), trees_(forest.trees()), stride_((trees_ + together - 1) / together * together) {
  assert(rows.columns == forest.features);
  const std::vector<std::uint8_t> places = places_of_leaves(forest);
  weights_ = weights_of_trees(forest);
  weight_ = std::accumulate(weights_.begin(), weights_.end(), std::int64_t(0));
  weights_.resize(std::size_t(stride_), 0);
  leaves_.resize(std::size_t(rows_ * stride_), 0);
  for (std::int64_t first = 0; first < trees_; first += trees_at_once) {
    const std::int64_t end = std::min(trees_, first + trees_at_once);
    for (std::int64_t r = 0; r < rows_; ++r) {
      for (std::int64_t t = first; t < end; ++t)
        leaves_[std::size_t(r * stride_ + t)] = places[leaf_of(forest, t, rows.row(r))];
    }
  }
}

base::Matrix LeafTable::shared(const LeafTable& other) const {
  assert(trees_ == other.trees_);
  base::Matrix out(rows_, other.rows_);
  for (std::int64_t first = 0; first < rows_; first += rows_at_once) {
    const std::int64_t end = std::min(rows_, first + rows_at_once);
    for (std::int64_t j = 0; j < other.rows_; ++j) {
      for (std::int64_t i = first; i < end; ++i) {
        const std::int64_t equal =
            equal_weight(leaves_.data() + i * stride_, other.leaves_.data() + j * stride_, weights_.data(), stride_);
        out.at(i, j) = float(equal) / float(weight_);
      }
    }
  }
  return out;
}

DecisionForest LeafTable::relabelled(DecisionForest forest, std::span<const float> scales,
                                     std::span<const float> values) const {
  assert(forest.trees() == trees_ && std::int64_t(scales.size()) == trees_ && std::int64_t(values.size()) == rows_);
  constexpr std::size_t most = std::size_t(1) << DecisionForest::deepest;
  std::vector<float> sums(std::size_t(trees_) * most, 0.0f);
  for (std::int64_t first = 0; first < trees_; first += trees_at_once) {
    const std::int64_t end = std::min(trees_, first + trees_at_once);
    for (std::int64_t r = 0; r < rows_; ++r) {
      for (std::int64_t t = first; t < end; ++t)
        sums[std::size_t(t) * most + leaves_[std::size_t(r * stride_ + t)]] += values[std::size_t(r)];
    }
  }
  for (std::int64_t t = 0; t < trees_; ++t) {
    const float share = float(weights_[std::size_t(t)]) / float(weight_);
    std::size_t leaf = std::size_t(t) * most;
    for (auto n = std::size_t(forest.begins[std::size_t(t)]); n < std::size_t(forest.begins[std::size_t(t + 1)]); ++n) {
      DecisionForest::Node& node = forest.nodes[n];
      if (node.feature < 0) node.number = node.number * scales[std::size_t(t)] + share * sums[leaf++];
    }
  }
  return forest;
}

void put(const DecisionForest& forest, base::Arrays& arrays) {
  std::vector<float> sizes, features, numbers, lefts;
  for (std::int64_t t = 0; t < forest.trees(); ++t)
    sizes.push_back(float(forest.begins[std::size_t(t + 1)] - forest.begins[std::size_t(t)]));
  for (const DecisionForest::Node& node : forest.nodes) {
    features.push_back(float(node.feature));
    numbers.push_back(node.number);
    lefts.push_back(float(node.left));
  }
  put_integers(arrays, "forest/features", {forest.features});
  put_values(arrays, "forest/sizes", sizes);
  put_values(arrays, "forest/feature", features);
  put_values(arrays, "forest/number", numbers);
  put_values(arrays, "forest/left", lefts);
}

DecisionForest forest_from(const base::Arrays& arrays) {
  DecisionForest forest;
  forest.features = integer_of(arrays, "forest/features", 1);
  const std::vector<float>& features = values_of(arrays, "forest/feature");
  const auto count = std::int64_t(features.size());
  const std::vector<float>& numbers = values_of(arrays, "forest/number", count);
  const std::vector<float>& lefts = values_of(arrays, "forest/left", count);
  for (const float size : values_of(arrays, "forest/sizes")) {
    if (!whole_number(size, 1, count - forest.begins.back() + 1))
      throw base::UserError(fmt::format("array 'forest/sizes': {} nodes do not make these trees", count));
    forest.begins.push_back(forest.begins.back() + std::int64_t(size));
  }
  if (forest.begins.back() != count)
    throw base::UserError(fmt::format("array 'forest/sizes': {} nodes do not make these trees", count));
  for (std::int64_t t = 0; t < forest.trees(); ++t) {
    const std::int64_t begin = forest.begins[std::size_t(t)], size = forest.begins[std::size_t(t + 1)] - begin;
    std::vector<int> parents(std::size_t(size), 0);
    for (std::int64_t i = 0; i < size; ++i) {
      const auto at = std::size_t(begin + i);
      const bool leaf = features[at] == -1;
      // Children come after their only parent: no walk can loop, and all nodes are in the tree.
      const bool right =
          parents[std::size_t(i)] == (i == 0 ? 0 : 1) && std::isfinite(numbers[at]) &&
          (leaf || (whole_number(features[at], 0, forest.features) && whole_number(lefts[at], i + 1, size - 1)));
      if (right && !leaf) ++parents[std::size_t(lefts[at])], ++parents[std::size_t(lefts[at]) + 1];
      if (!right) throw base::UserError(fmt::format("array 'forest/feature': node {} of tree {} is not a node", i, t));
      forest.nodes.push_back({std::int32_t(features[at]), numbers[at], leaf ? 0 : std::int32_t(lefts[at])});
    }
  }
  for (std::int64_t t = 0; t < forest.trees(); ++t) {
    const auto tree = tree_of(forest, t);
    if (depth_of(tree) > DecisionForest::deepest) {
      throw base::UserError(
          fmt::format("array 'forest/left': tree {} has more than {} levels", t, DecisionForest::deepest));
    }
  }
  return forest;
}

}  // namespace graft::meta
