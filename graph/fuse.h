// Nodes in groups, each of which one kernel computes: a stage that reduces with the element-wise work before and behind
// it, chains of stages over the same rows, and element-wise work alone. What belongs together is decided by what a
// space of schedules can take (codegen/schedule/rules.h), from index expressions; no operator is named here.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "codegen/expression/computation.h"
#include "codegen/expression/foreign.h"
#include "codegen/expression/target.h"
#include "graph/graph.h"

namespace graft::graph {

struct Group {
  codegen::Computation computation;  // operands x0, x1, ... (operand_of in operators.h); output y
  std::vector<int> operands;         // values, by number of the operand
  int result = -1;                   // the value that it computes
  std::vector<int> nodes;            // of the graph, in its order
  std::shared_ptr<const codegen::Foreign> foreign = nullptr;  // what computes it, in place of the computation
};

struct Groups {
  std::vector<Group> groups;
  // Groups by number, in an order in which they can run. Where groups may be one (codegen::is_fused_by_choice), a place
  // has two lists, which compute the same: the groups apart, then as one.
  std::vector<std::vector<std::vector<int>>> places;
  // The graph's values, followed by values within nodes that become several groups, such as the steps of a recurrent
  // layer.
  std::vector<Value> values;
  // By value: where its elements are. A view has those of another value, in another shape, or a part of them.
  struct Source {
    int value = -1;           // of what is not a view, itself
    std::int64_t offset = 0;  // bytes from its first element, a multiple of 64
  };
  std::vector<Source> source;
};

// `graph` is folded. `storage`: how numbers of single precision are stored between groups, and the constants that are
// factors of their sums of products; the graph's inputs and outputs stay as they are. UserError names a node that is
// not supported.
Groups grouped(const Graph& graph, const codegen::Target& target, std::string_view place,
               codegen::DType storage = codegen::DType::f32);

}  // namespace graft::graph
