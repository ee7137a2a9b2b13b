// Functions of a user as kernels of a network: for operations that graft does not know, or to compute one in another
// way.
//
//   void NAME(void* const* buffers, const int64_t* n);
//
// `buffers`: the node's operands, in order, then its result, all row-major and aligned to 64 bytes, of the types that
// graft computes with (booleans are bytes, 16-bit floating point is f32). `n`: how many buffers there are, and of each
// the number of dimensions and the extents. The code is freestanding: it may call nothing that is not in its file.
#pragma once

#include <string>
#include <vector>

#include "base/document.h"
#include "codegen/expression/foreign.h"
#include "graph/graph.h"

namespace graft::study {

// Texts as "Softer=softer:softer.c": the operation (of another domain than ONNX's own "domain.Name"), the function, and
// a file of C, which clang compiles, or of LLVM's text (.ll). UserError for another form, an operation that is named
// twice, a file that cannot be compiled, has no such function, or calls others; Failure where there is no clang.
graph::Functions read_functions(const std::vector<std::string>& texts);

// For people: whose function it is.
std::string origin_of(const codegen::Foreign& foreign);

// {"function":...,"numbers":[...]}, and of a user's function "code" and "types".
base::Document to_document(const codegen::Foreign& foreign);
codegen::Foreign foreign_from(const base::Document& document);

}  // namespace graft::study
