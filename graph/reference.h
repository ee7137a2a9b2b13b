// The numbers that a network's values should have: node by node, in double precision, by evaluating each node's index
// expression directly (codegen/expression/reference.h). Nothing is fused and nothing is rounded in between.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/monitor.h"
#include "codegen/expression/computation.h"
#include "codegen/expression/elements.h"
#include "codegen/expression/foreign.h"
#include "graph/graph.h"

namespace graft::graph {

// Calls `look` with each result that a node of a folded graph computes for these inputs (by name, row-major), in the
// order of nodes. Nodes of more than `most_work` (as work_of), and those that depend on them, are left out. UserError
// for an input that is missing, unknown or of another size.
using Look = std::function<void(const Node& node, int value, const codegen::Elements& elements)>;
void look_at(const Graph& graph, const std::map<std::string, codegen::Elements>& inputs, std::string_view place,
             double most_work, const Look& look, base::Monitor& monitor);

// The output y of a computation (operators.h) whose operand tensors get these elements, by number of the operand; with
// `foreign` what that gives.
codegen::Elements evaluated(const codegen::Computation& computation,
                            const std::function<codegen::Elements(int operand)>& elements,
                            const codegen::Foreign* foreign = nullptr);
double work_of(const codegen::Computation& computation);     // points of all stages
double work_of(const Graph& graph, std::string_view place);  // of all nodes

}  // namespace graft::graph
