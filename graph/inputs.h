// What goes into a network when it is checked, and into its kernels when they are tuned: inputs as a user might give
// them, and numbers that arrive at each value for these. A kernel of a network is tuned on what it gets there: a mask
// of 0 and -3.4e38 is none of the numbers that a kernel alone would be given.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/monitor.h"
#include "codegen/expression/elements.h"
#include "codegen/expression/inputs.h"
#include "graph/alternatives.h"
#include "graph/graph.h"
#include "graph/plan.h"

namespace graft::graph {

// By input of a folded graph, what its numbers are drawn from: -1 to 1; integers that index a dimension, within it. If
// the nodes next to the inputs (those that cost little) give numbers that are not finite, as the logarithm of a
// negative one, inputs before them are 0 and 1, or positive, instead.
std::vector<Draw> draws_of(const Graph& graph, std::string_view place, base::Monitor& monitor);

// Numbers for a network's inputs, by name, from their draws; of integers that index nothing the first of each row is 1,
// as masks have it. The same for the same seed.
std::map<std::string, codegen::Elements> check_inputs(const std::vector<Plan::Tensor>& inputs, std::uint64_t seed);

// A line for each of the inputs whose integers index a dimension just as they are, and of which one is outside of it.
// A program takes the nearest element then (codegen/expression/value.h); onnxruntime refuses such an input.
std::vector<std::string> indices_outside(const std::vector<Plan::Tensor>& inputs,
                                         const std::map<std::string, codegen::Elements>& given);

// By value of a folded graph, some of the numbers that it has for these inputs, the least and the greatest among them.
// None for what depends on nodes that would take too long.
using Samples = std::vector<std::vector<double>>;
Samples samples_of_values(const Graph& graph, const std::map<std::string, codegen::Elements>& inputs,
                          std::string_view place, base::Monitor& monitor);

// What the operands of the calls of all alternatives have, by workload; of equal kernels the first call counts.
std::map<std::string, codegen::Seen> seen_by_kernels(const OpenPlan& open, const Samples& samples);

}  // namespace graft::graph
