// DequantizeLinear of constants of eight bits or less by one loop over their bytes: a language model has hundreds of
// millions of them, for each of which evaluating an index expression would take minutes.
#pragma once

#include "graph/operators.h"

namespace graft::graph {

// Whether the node is such a one.
bool is_of_known_bytes(const Node& node, const Operands& operands);
// Its result. Shapes were checked (results_of).
Known dequantised(const Node& node, const Operands& operands);

}  // namespace graft::graph
