// From a graph as it was read to one in which every value has a type and a shape, and nothing is computed that is known
// before a run: constants, and with them the arithmetic of shapes, are computed; an `If` of a known condition becomes
// its branch, and another one a choice between the results of both; a `Loop` or `Scan` becomes its rounds, and
// sequences of known lengths their elements; what only passes its operand on is left out; what scales and shifts
// channels after a convolution moves into its weights, and so do zero points; nodes that no output needs are removed.
// What stays computes the same results.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace graft::graph {

struct FoldLimits {
  // All constants that are made. What would exceed them stays a node, but a constant that a few numbers of the file
  // make is refused.
  std::int64_t most_bytes = std::int64_t(1) << 31;
  double most_work = 0x1p31;            // evaluated points of index expressions
  std::int64_t most_parts = 2'000'000;  // values and nodes, each branch and each round of a loop counted
};

// What one of the steps of folding did.
struct Pass {
  std::string name;
  std::size_t nodes = 0;                       // afterwards
  std::map<std::string, std::int64_t> change;  // of the number of nodes by operator, where it is not 0
};

// `graph` has types and shapes of inputs and constants. UserError "<place>: ..." names a node that ONNX does not allow,
// or in one line all nodes that are not supported, counted by operator and reason. `passes`, if given, gets the steps.
Graph folded(const Graph& graph, std::string_view place, const FoldLimits& limits = {},
             std::vector<Pass>* passes = nullptr);

// Parts of it, each from a folded graph to a folded graph.

// Numbers that scale and shift channels go into the weights and the bias of the convolution before them, if nothing
// else reads its result; a batch normalisation that has none becomes a product and a sum.
Graph with_scales_in_weights(Graph graph);
// Zero points of constant weights are subtracted from them, where the differences are integers of 8 bits.
Graph with_zero_points_in_weights(Graph graph);
// Convolutions of bytes with constant weights whose channels are not a multiple of four, as those of an image: windows
// get zeros up to a multiple of four along the last dimension, so that dot products of four bytes can sum along it.
Graph with_windows_in_groups(Graph graph);
// For a graph as it was read: DequantizeLinear, an operator and QuantizeLinear (and a Relu between them that the range
// of the result makes one with it) become the operator of integers that onnxruntime computes in their place.
Graph with_integer_operators(Graph graph);
// Nodes that compute the same of the same values, as layers do of masks and places, are one: the others lose their
// readers.
Graph with_equal_nodes_once(Graph graph);
Graph without_unused(const Graph& graph);

}  // namespace graft::graph
