// Random small networks, for comparisons: of passes with what they were given, of kernels with the reference. Each is
// valid as a file is that was read (onnx.h): it folds, every operator in it is supported, and its numbers stay small:
// no function is called near a place where it grows without bound, so that results of single precision can be compared.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "codegen/expression/elements.h"
#include "graph/graph.h"

namespace graft::graph {

struct RandomSizes {
  int nodes = 8;                      // at least; a step may add several
  std::int64_t most_extent = 7;       // of inputs
  std::int64_t most_elements = 1500;  // of any value
  // Comparisons, rounding and places of maxima, whose results jump: for results in double precision only.
  bool jumps = false;
  int version = 17;  // of operators, 12 to 21
};

// Several inputs, constants, views, values with several readers, several outputs. The same for the same seed anywhere.
Graph random_graph(std::uint64_t seed, const RandomSizes& sizes = {});

// By input: in [-1, 1); whole numbers are 0 or 1.
std::map<std::string, codegen::Elements> random_inputs(const Graph& graph, std::uint64_t seed);

// The operators that graphs may have.
std::vector<std::string> operators_of_random_graphs(bool jumps);

}  // namespace graft::graph
