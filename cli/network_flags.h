// What commands that take a network have in common.
#pragma once

#include <string>

#include "graph/onnx.h"

namespace graft::cli {

// Whether an argument means a network: the name of an ONNX file.
bool names_network(const std::string& argument);

inline constexpr const char* shape_help =
    "of an ONNX file: shapes that it leaves open, by the input's name, or extents by a dimension's: "
    "'x=1,3,224,224;batch=1'";
// The shapes in such a text. UserError naming the flag.
graph::Shapes shapes_of(const std::string& text);

}  // namespace graft::cli
