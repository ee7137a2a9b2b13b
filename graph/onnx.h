// ONNX files: the only place that knows how they are written. They are read by our own reader of the wire format
// (wire.h): ten messages are needed, nothing is allocated by a claim of the file, and no library's release decides
// which versions of the format can be read. Operators of versions 1 to 28. Functions of the model are graphs of the
// nodes that use them (Node::body).
//
// A file is hostile until read: every fault is one line, UserError "<file>: <node or tensor>: ...".
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace graft::graph {

// Extents that the file leaves open, or says to be 0 (as some exporters do for open ones) or less: the whole shape of
// an input by its name, or the extent of a named dimension, as a shape of one: {"x", {1,3,224,224}}, {"batch", {1}}.
using Shapes = std::map<std::string, Shape>;

// What is given may be several shapes: a named dimension has several extents, {"batch", {1,2,4}}, an input several
// shapes, one after another, {"x", {1,3,224,224,4,3,224,224}}. read_onnx takes one of them; each_shape (below) says
// which they are.
constexpr std::size_t most_shapes = 64;

struct OnnxLimits {
  std::int64_t most_bytes = std::int64_t(1) << 31;  // of the file, and of each file of external data
  std::int64_t most_nodes = 200'000;                // in all graphs
  std::int64_t most_messages = 4'000'000;           // parts of the file, of any kind: what they cost in memory
  int deepest = 16;                                 // graphs within graphs, functions within functions
};

// A checked graph (graph.h) whose inputs have shapes and types; the file's names are kept. Numbers of 16 bits become
// f32, booleans u8 of 0 and 1, i16 and u16 i32, u32 and u64 i64, integers of 2 and 4 bits i8 and u8. UserError for a
// file that is not such a graph, and if shapes of inputs stay open: it lists them.
Graph read_onnx(const std::filesystem::path& path, const Shapes& shapes = {}, const OnnxLimits& limits = {});

// The same of bytes; `place` begins messages, `folder` has the external data.
Graph parse_onnx(std::string_view bytes, std::string_view place, const std::filesystem::path& folder,
                 const Shapes& shapes = {}, const OnnxLimits& limits = {});

// All combinations of the shapes that are given, the last name's the fastest; at least one. UserError for more than
// most_shapes, and for a file that is not a model.
std::vector<Shapes> each_shape(const std::filesystem::path& path, const Shapes& shapes, const OnnxLimits& limits = {});

// A tensor in a file of its own, as ONNX's tests have them. UserError as above.
Known parse_onnx_tensor(std::string_view bytes, std::string_view place);

// The type that elements of ONNX's type number become; nothing for one that is not computed with (strings, complex
// numbers, floating point of eight or four bits).
std::optional<DType> type_of_onnx(std::int64_t number);
bool is_boolean(std::int64_t number);
bool is_wider_here(std::int64_t number);  // integers that become a type of more bits

}  // namespace graft::graph
