// Nodes in groups, each of which one kernel computes: a stage that reduces with the element-wise work before and behind
// it, chains of stages over the same rows, and element-wise work alone. What belongs together is decided by what a
// space of schedules can take (codegen/schedule/rules.h), from index expressions; no operator is named here.
#pragma once

#include <string_view>
#include <vector>

#include "codegen/expression/computation.h"
#include "codegen/expression/target.h"
#include "graph/graph.h"

namespace graft::graph {

struct Group {
  codegen::Computation computation;  // operands x0, x1, ... (operand_of in operators.h); output y
  std::vector<int> operands;         // values of the graph, by number of the operand; none is a view
  int result = -1;                   // the value that it computes
  std::vector<int> nodes;            // of the graph, in its order
};

struct Groups {
  std::vector<Group> groups;  // in an order in which they can run
  // By value of the graph: the value whose elements it has, in another shape; itself for all that are no views.
  std::vector<int> source;
};

// `graph` is folded. UserError names a node that is not supported.
Groups grouped(const Graph& graph, const codegen::Target& target, std::string_view place);
// Each node by itself.
Groups ungrouped(const Graph& graph, std::string_view place);

}  // namespace graft::graph
