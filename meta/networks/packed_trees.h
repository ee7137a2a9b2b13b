// A batch of trees packed for level-wise work: nodes of one height are adjacent, so that a network handles them in one
// matrix product, and equal subtrees are stored once. Private to networks/.
#pragma once

#include <cstdint>
#include <vector>

#include "meta/network.h"

namespace graft::meta {

struct PackedTrees {
  std::vector<std::int64_t> levels;        // nodes of height h are [levels[h], levels[h + 1]); height 0 is the leaves
  std::vector<std::int64_t> rows;          // for each node, one row of the inputs equal to it
  std::vector<std::int64_t> child_begins;  // node i has the children [child_begins[i], child_begins[i + 1])
  std::vector<std::int32_t> children;      // by node, below their parent
  std::vector<std::int32_t> node_of_row;   // the inputs' rows as nodes
  std::int64_t nodes() const { return std::int64_t(rows.size()); }
  std::int64_t leaves() const { return levels.size() < 2 ? 0 : levels[1]; }
};

// share_equal: nodes with equal features and equal children (in order) become one, within and across programs.
template <class T>
PackedTrees pack(const Inputs<T>& programs, std::int64_t columns, bool share_equal);

}  // namespace graft::meta
