// The results that a network should have: node by node, in double precision, by evaluating each node's index expression
// directly (codegen/expression/reference.h). Nothing is fused and nothing is rounded in between.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/monitor.h"
#include "codegen/expression/computation.h"
#include "codegen/expression/elements.h"
#include "graph/graph.h"

namespace graft::graph {

// By output of a folded graph. `inputs` by name, row-major. UserError for one that is missing, unknown or of another
// size.
std::vector<codegen::Elements> reference(const Graph& graph, const std::map<std::string, codegen::Elements>& inputs,
                                         std::string_view place, base::Monitor& monitor);

// Calls `look` with each result that a node computes for these inputs, in the order of nodes. Nodes of more than
// `most_work` (as work_of), and those that depend on them, are left out. Errors as above.
using Look = std::function<void(const Node& node, int value, const codegen::Elements& elements)>;
void look_at(const Graph& graph, const std::map<std::string, codegen::Elements>& inputs, std::string_view place,
             double most_work, const Look& look, base::Monitor& monitor);

// The output y of a computation (operators.h) whose operand tensors get these elements, by number of the operand.
codegen::Elements evaluated(const codegen::Computation& computation,
                            const std::function<codegen::Elements(int operand)>& elements);
double work_of(const codegen::Computation& computation);     // points of all stages
double work_of(const Graph& graph, std::string_view place);  // of all nodes

}  // namespace graft::graph
