// Private to this folder: the text of a library's files for C, pkg-config and CMake.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "codegen/machine/library.h"

namespace graft::codegen {

std::vector<Parameter> parameters(const LibraryVariant& variant);  // that the caller passes
bool prepares(const LibraryFunction& function);                    // any of its variants
bool is_parallel(const LibraryFunction& function);                 // any of its variants has parallel loops
std::int64_t workspace_bytes(const LibraryFunction& function);     // of the variant that needs the most

// The functions of one operator, by its extents in the order of the workload's text.
struct OperatorShapes {
  std::string name;                  // "conv2d", or "conv2d_f64": all but f32 say their type
  std::vector<std::string> extents;  // "n", "c", ...
  std::vector<std::pair<const LibraryFunction*, std::vector<std::int64_t>>> functions;
};
// In order of first occurrence; index expressions, which do not name extents, are in no family.
std::vector<OperatorShapes> operator_shapes(const Library& library);

// What the header declares at file scope, macros aside; a name may occur twice.
std::vector<std::string> defined_names(const Library& library);

std::string header_text(const Library& library);  // NAME.h
std::string parallel_header_text();               // graft_parallel.h
std::string pkg_config_text(const Library& library);
std::string cmake_config_text(const Library& library);

}  // namespace graft::codegen
