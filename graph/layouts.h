// How the values between kernels are stored: as ONNX says, or with channels in blocks of a vector's lanes, side by
// side. A kernel whose operands are in blocks is another workload, faster or slower; a value that one kernel stores
// otherwise than another one reads it costs a copy.
#pragma once

#include "codegen/expression/target.h"
#include "graph/alternatives.h"

namespace graft::graph {

// Calls get their other forms as alternatives: for values of three to eight dimensions of networks with convolutions
// and at most 4,096 calls, for targets with vectors.
void add_layouts(OpenPlan& open, const codegen::Target& target);

}  // namespace graft::graph
