// The outputs of a graph from ONNX's definitions, by plain loops over doubles: an oracle for index expressions, folding
// and all that is made of them. It shares nothing with graph/ but the graph, and knows the operators of random graphs
// (random_graph.h).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "codegen/expression/elements.h"
#include "graph/graph.h"

namespace graft::graph {

struct Naive {
  Shape shape;
  std::vector<double> numbers;
};

std::vector<Naive> naive(const Graph& graph, const std::map<std::string, codegen::Elements>& inputs);

}  // namespace graft::graph
