// Private to this room: operands and results of kernels in types of storage alone (f16, bf16), sums in f32.
#pragma once

#include <vector>

#include "graph/merge.h"

namespace graft::graph {

// Constants (tensors) of single precision that lose least and gain most by it: factors of sums of products whose other
// factor is stored so.
std::vector<int> factors_to_store(const codegen::Computation& computation, codegen::DType storage);

// Temporaries that only copy what is stored so, such as an image with its padding, are stored so, too.
void store_copies(codegen::Computation& computation, codegen::DType storage);

// Gives an operand or the output that type. What an output sums stays in f32, and is converted by a stage of its own.
void store_as(Part& part, int tensor, codegen::DType storage);

}  // namespace graft::graph
