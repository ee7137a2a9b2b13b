// Small ONNX files, written byte by byte: what the reader is given.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/monitor.h"
#include "graph/fold.h"
#include "graph/onnx.h"
#include "tests/graph/support/reference.h"

namespace graft::graph::file {

inline std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += char((value & 0x7f) | 0x80);
  return bytes + char(value);
}
inline std::string integer(int field, std::int64_t value) {
  return varint(std::uint64_t(field) << 3) + varint(std::uint64_t(value));
}
inline std::string bytes(int field, std::string_view content) {
  return varint(std::uint64_t(field) << 3 | 2) + varint(content.size()) + std::string(content);
}
template <class T>
std::string raw(const std::vector<T>& numbers) {
  std::string all(numbers.size() * sizeof(T), '\0');
  if (!numbers.empty()) std::memcpy(all.data(), numbers.data(), all.size());
  return all;
}
inline std::string number(int field, float value) {
  return varint(std::uint64_t(field) << 3 | 5) + raw(std::vector<float>{value});
}

constexpr int f32 = 1, u8 = 2, i8 = 3, i32 = 6, i64 = 7, boolean = 9, f16 = 10, f64 = 11, u4 = 21, i4 = 22;

inline std::string tensor(std::string_view name, const Shape& shape, int type, std::string_view content) {
  std::string all;
  for (const std::int64_t extent : shape) all += integer(1, extent);
  return all + integer(2, type) + bytes(8, name) + bytes(9, content);
}

inline std::string attribute(std::string_view name, std::int64_t value) {
  return bytes(1, name) + integer(3, value) + integer(20, 2);
}
inline std::string attribute(std::string_view name, int value) {
  return attribute(name, std::int64_t(value));
}
inline std::string attribute(std::string_view name, double value) {
  return bytes(1, name) + number(2, float(value)) + integer(20, 1);
}
inline std::string attribute(std::string_view name, const char* text) {
  return bytes(1, name) + bytes(4, text) + integer(20, 3);
}
inline std::string attribute(std::string_view name, const std::vector<std::int64_t>& values) {
  std::string all = bytes(1, name);
  for (const std::int64_t value : values) all += integer(8, value);
  return all + integer(20, 7);
}
inline std::string attribute(std::string_view name, const std::vector<double>& values) {
  std::string all = bytes(1, name);
  for (const double value : values) all += number(7, float(value));
  return all + integer(20, 6);
}
inline std::string attribute(std::string_view name, const std::vector<std::string>& values) {
  std::string all = bytes(1, name);
  for (const std::string& value : values) all += bytes(9, value);
  return all + integer(20, 8);
}
inline std::string tensor_attribute(std::string_view name, std::string_view content) {
  return bytes(1, name) + bytes(5, content) + integer(20, 4);
}
inline std::string graph_attribute(std::string_view name, std::string_view content) {
  return bytes(1, name) + bytes(6, content) + integer(20, 5);
}

// An operator of another domain than ONNX's own: "domain.Name".
inline std::string node_bytes(std::string_view operation, const std::vector<std::string>& operands,
                              const std::vector<std::string>& results, const std::vector<std::string>& attributes = {},
                              std::string_view name = "") {
  std::string all;
  for (const std::string& operand : operands) all += bytes(1, operand);
  for (const std::string& result : results) all += bytes(2, result);
  if (!name.empty()) all += bytes(3, name);
  const std::size_t dot = operation.rfind('.');
  all += bytes(4, dot == std::string_view::npos ? operation : operation.substr(dot + 1));
  for (const std::string& each : attributes) all += bytes(5, each);
  return dot == std::string_view::npos ? all : all + bytes(7, operation.substr(0, dot));
}

class GraphFile {
 public:
  // Dimensions as texts: a number, a name, or "" for one that is open.
  GraphFile& open_input(std::string_view name, const std::vector<std::string>& dimensions, int type = f32) {
    std::string shape;
    for (const std::string& dimension : dimensions) {
      const bool is_number = !dimension.empty() && dimension.find_first_not_of("-0123456789") == std::string::npos;
      shape += bytes(1, dimension.empty() ? "" : is_number ? integer(1, std::stoll(dimension)) : bytes(2, dimension));
    }
    content_ += bytes(11, bytes(1, name) + bytes(2, bytes(1, integer(1, type) + bytes(2, shape))));
    return *this;
  }
  GraphFile& input(std::string_view name, const Shape& shape, int type = f32) {
    std::vector<std::string> dimensions;
    for (const std::int64_t extent : shape) dimensions.push_back(std::to_string(extent));
    return open_input(name, dimensions, type);
  }
  // What a node computes.
  GraphFile& value(std::string_view name, const Shape& shape, int type = f32) {
    std::string extents;
    for (const std::int64_t extent : shape) extents += bytes(1, integer(1, extent));
    content_ += bytes(13, bytes(1, name) + bytes(2, bytes(1, integer(1, type) + bytes(2, extents))));
    return *this;
  }
  GraphFile& output(std::string_view name) {
    content_ += bytes(12, bytes(1, name));
    return *this;
  }
  GraphFile& weight(std::string_view name, const Shape& shape, const std::vector<float>& numbers) {
    return weight_of(tensor(name, shape, f32, raw(numbers)));
  }
  GraphFile& integers(std::string_view name, const Shape& shape, const std::vector<std::int64_t>& numbers) {
    return weight_of(tensor(name, shape, i64, raw(numbers)));
  }
  GraphFile& weight_of(std::string_view tensor_bytes) {
    content_ += bytes(5, tensor_bytes);
    return *this;
  }
  GraphFile& node(std::string_view operation, const std::vector<std::string>& operands,
                  const std::vector<std::string>& results, const std::vector<std::string>& attributes = {},
                  std::string_view name = "") {
    content_ += bytes(1, node_bytes(operation, operands, results, attributes, name));
    return *this;
  }
  const std::string& content() const { return content_; }
  std::string model(int version = 17, int format = 8) const {
    return integer(1, format) + bytes(7, content_) + bytes(8, integer(2, version));
  }

 private:
  std::string content_;
};

// A graph as a file of this version. Bytes are booleans where an operator wants them.
inline std::string model_of(const Graph& graph, int format = 8) {
  const auto name = [&](int value) { return value < 0 ? std::string() : graph.values[std::size_t(value)].name; };
  std::vector<bool> is_boolean(graph.values.size());
  for (const Node& node : graph.nodes) {
    const std::string& operation = node.operation;
    const bool takes_booleans = operation == "Not" || operation == "And" || operation == "Or" || operation == "Xor";
    for (std::size_t o = 0; o < node.operands.size(); ++o)
      if (node.operands[o] >= 0 && (takes_booleans || (operation == "Where" && o == 0)))
        is_boolean[std::size_t(node.operands[o])] = true;
  }
  const auto type_of = [&](DType type, bool boolean_bytes) {
    switch (type) {
      case DType::f64:
        return f64;
      case DType::i64:
        return i64;
      case DType::i32:
        return i32;
      case DType::i8:
        return i8;
      case DType::u8:
        return boolean_bytes ? boolean : u8;
      default:
        return f32;
    }
  };
  const auto attribute_of = [&](const std::string& key, const Attribute& value) {
    if (const auto* number = std::get_if<std::int64_t>(&value)) return attribute(key, *number);
    if (const auto* number = std::get_if<double>(&value)) return attribute(key, *number);
    if (const auto* text = std::get_if<std::string>(&value)) return attribute(key, text->c_str());
    if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) return attribute(key, *list);
    if (const auto* list = std::get_if<std::vector<double>>(&value)) return attribute(key, *list);
    if (const auto* list = std::get_if<std::vector<std::string>>(&value)) return attribute(key, *list);
    if (const auto* array = std::get_if<Known>(&value))
      return tensor_attribute(key, tensor("", (*array)->shape, type_of((*array)->type, false), (*array)->bytes));
    throw std::logic_error("attribute " + key + " of a kind that is not written");
  };
  GraphFile file;
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    if (value.known)
      file.weight_of(tensor(value.name, *value.shape, type_of(*value.type, is_boolean[v]), value.known->bytes));
  }
  for (const int input : graph.inputs) {
    const Value& value = graph.values[std::size_t(input)];
    file.input(value.name, *value.shape, type_of(*value.type, is_boolean[std::size_t(input)]));
  }
  for (const Node& node : graph.nodes) {
    std::vector<std::string> operands, results, attributes;
    for (const int operand : node.operands) operands.push_back(name(operand));
    for (const int result : node.results) results.push_back(name(result));
    for (const auto& [key, value] : node.attributes) attributes.push_back(attribute_of(key, value));
    file.node(node.operation, operands, results, attributes, node.name);
  }
  for (const int output : graph.outputs) file.output(name(output));
  return file.model(graph.version, format);
}

inline Graph read(const GraphFile& file, int version = 17, const Shapes& shapes = {}) {
  return parse_onnx(file.model(version), "m.onnx", ".", shapes);
}

// The outputs, folded and evaluated.
inline std::vector<codegen::Elements> results(const GraphFile& file,
                                              const std::map<std::string, codegen::Elements>& inputs, int version = 17,
                                              const Shapes& shapes = {}) {
  base::Monitor nobody;
  return reference(folded(read(file, version, shapes), "m.onnx"), inputs, "m.onnx", nobody);
}

}  // namespace graft::graph::file
