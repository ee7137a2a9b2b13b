// Programs for GPUs: which nests are work-groups and work-items, and where the items of a group must wait for each
// other. Analysis of the loop program alone; nothing here depends on a language or a driver.
//
// A nest of a body that begins with block loops, each the only child of the one before, is a launch whose iterations
// are work-groups. Within it, a nest that begins with thread loops is run by the group's work-items, whose number is
// that of the nests that keep values in registers; another nest with more iterations is shared out among them, and of one
// with fewer an iteration may be repeated by several items where that makes no difference. Serial
// loops around such nests are run by all items alike; what no thread loop is around is done by the first item. A nest
// that begins with parallel loops is a launch of items without groups; all nests between are a launch of one group.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <vector>

#include "base/error.h"
#include "codegen/expression/target.h"
#include "codegen/program/program.h"

namespace graft::codegen {

inline constexpr int group_dimensions = 3;  // x, y, z

// A nest that work-items run.
struct ItemNest {
  int begin = 0, end = 0;    // nodes, thread loops included
  int inside = 0;            // the first node inside of the thread loops
  std::vector<int> threads;  // loops, outermost first; empty: the first item alone
  std::vector<int> around;   // loops
  // Iterations by dimension; loops of the same kind are digits of one number, the innermost one the lowest.
  std::array<std::int64_t, group_dimensions> iterations{1, 1, 1};
};

struct Launch {
  int begin = 0, end = 0;  // nodes
  int inside = 0;          // the first node inside of the band
  std::vector<int> band;   // loops, outermost first
  bool has_groups = true;  // false: of parallel loops
  std::array<std::int64_t, group_dimensions> groups{1, 1, 1}, items{1, 1, 1};
  std::vector<ItemNest> nests;  // in order; of parallel loops: none
  std::set<int> barriers;       // the nests' first nodes before which the group's items wait for each other
  std::set<int> shared;         // buffers in group memory that it touches
};

int dimension_of(LoopKind kind);  // 0, 1, 2 of block and thread loops; -1 of others

// The launches of prepare or run. A Reason where iterations that run at the same time may meet in an element, where
// values in registers pass between items, and where a group is larger than the target's, or its memory is.
base::Result<std::vector<Launch>> launches(const LoopProgram& program, const Body& body, const Target& target);

// The same computation with what groups need: a temporary that one launch of groups alone touches is in registers if
// every item keeps to its own part of it, each index a constant once loops are unrolled, else in group memory; and
// nests that fill such memory, without thread loops, have their outermost serial loops shared out among the items.
LoopProgram with_groups(LoopProgram program);

}  // namespace graft::codegen
