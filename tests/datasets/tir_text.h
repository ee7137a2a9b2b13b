// Writes functions of TIR as databases of MetaSchedule have them: node graphs in JSON, in base64, of any release.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace graft::datasets::formats {

// with_type_keys: up to 0.20; with_buffer_map: until buffers became variables; with_types: after that.
enum class Release { with_type_keys, with_buffer_map, with_types };

class TirText {
 public:
  explicit TirText(Release release) : release_(release) { add("", ""); }

  // What a node says: other nodes, numbers and texts, by field.
  struct Field {
    std::string name;
    int node = -1;
    std::string plain = {};  // as JSON has it
  };

  int list(const std::vector<int>& items, const std::vector<std::string>& keys = {}) {
    const bool is_map = !keys.empty();
    std::vector<int> data = items;
    if (is_map && !is_old()) {
      data.clear();
      for (std::size_t i = 0; i < items.size(); ++i) {
        data.push_back(text(keys[i]));
        data.push_back(items[i]);
      }
    }
    std::string more = fmt::format(R"(, "data": [{}])", fmt::join(data, ", "));
    if (is_map && is_old()) more += fmt::format(R"(, "keys": ["{}"])", fmt::join(keys, R"(", ")"));
    return add(is_old() ? "Array" : "ffi.Array", more);
  }
  int text(std::string_view words) {
    return is_old() ? add("runtime.String", fmt::format(R"(, "repr_str": "{}")", words))
                    : add("ffi.String", fmt::format(R"(, "data": "{}")", words));
  }
  int integer(std::int64_t number) {
    if (release_ != Release::with_types)
      return node(name("IntImm", "ir.IntImm"),
                  {{"dtype", -1, quoted("int32")}, {"value", -1, fmt::format("{}", number)}});
    const int value = add("int", fmt::format(R"(, "data": {})", number));
    return node("ir.IntImm", {{"ty", type("int32")}, {"value", value}});
  }
  int real(double number) {
    std::vector<Field> fields = {{"value", -1, is_old() ? fmt::format("{}", number) : fmt::format("{:.1f}", number)}};
    fields.push_back(typed("float32"));
    return node(name("FloatImm", "ir.FloatImm"), std::move(fields));
  }
  int variable(std::string_view words) {
    return node(name("tir.Var", "tirx.Var"), {typed("int32"), {"name", text(words)}});
  }
  int buffer(std::string_view words, const std::vector<std::int64_t>& shape, std::string_view dtype = "float32") {
    std::vector<int> extents;
    for (const std::int64_t extent : shape) extents.push_back(integer(extent));
    const int shape_list = list(extents), name_text = text(words);
    if (release_ != Release::with_types)
      return node(name("tir.Buffer", "tirx.Buffer"),
                  {{"dtype", -1, quoted(dtype)}, {"shape", shape_list}, {"name", name_text}});
    const int described = node("tirx.BufferType", {{"dtype", type(dtype)}, {"shape", shape_list}});
    return node("ir.Var", {{"ty", described}, {"name", name_text}});
  }
  int binary(std::string_view kind, int a, int b) {
    return node(fmt::format("{}.{}",
                            release_ == Release::with_types ? "prim"
                            : is_old()                      ? "tir"
                                                            : "tirx",
                            kind),
                {{"a", a}, {"b", b}});
  }
  int load(int buffer, const std::vector<int>& indices) {
    return release_ == Release::with_types
               ? node("ir.TensorLoad", {{"source", buffer}, {"indices", list(indices)}})
               : node(name("tir.BufferLoad", "tirx.BufferLoad"), {{"buffer", buffer}, {"indices", list(indices)}});
  }
  int store(int buffer, const std::vector<int>& indices, int value) {
    return node(name("tir.BufferStore", "tirx.BufferStore"),
                {{"buffer", buffer}, {"indices", list(indices)}, {"value", value}});
  }
  int call(std::string_view operation, const std::vector<int>& arguments) {
    const int op = is_old() ? add("Op", fmt::format(R"(, "repr_str": "tir.{}")", operation))
                            : add("ir.Op", fmt::format(R"(, "data": "tirx.{}")", operation));
    return node(name("tir.Call", "tirx.Call"), {{"op", op}, {"args", list(arguments)}});
  }

  struct Axis {
    std::string_view name;
    std::int64_t extent = 1;
    bool reduced = false;
    int variable = -1;  // made by `axes`
  };
  // A nest of loops around a block that stores `value` at its spatial axes, added to what is there if some are reduced.
  void axes(std::vector<Axis>& axes) {
    for (Axis& axis : axes) axis.variable = variable(fmt::format("v_{}", axis.name));
  }
  int nest(std::string_view words, const std::vector<Axis>& axes, int buffer, int value, double start = 0) {
    std::vector<int> iterators, loops, spatial;
    bool reduces = false;
    for (const Axis& axis : axes) {
      const int domain = node(name("Range", "ir.Range"), {{"min", integer(0)}, {"extent", integer(axis.extent)}});
      iterators.push_back(node(name("tir.IterVar", "tirx.IterVar"),
                               {{"dom", domain}, {"var", axis.variable}, {"iter_type", -1, axis.reduced ? "2" : "0"}}));
      loops.push_back(variable(axis.name));
      if (!axis.reduced) spatial.push_back(axis.variable);
      reduces = reduces || axis.reduced;
    }
    int init = 0;
    if (reduces) {
      init = store(buffer, spatial, real(start));
      value = binary("Add", load(buffer, spatial), value);
    }
    const int block = node(release_ == Release::with_types ? "s_tir.SBlock" : name("tir.Block", "tirx.SBlock"),
                           {{"iter_vars", list(iterators)},
                            {"name_hint", text(words)},
                            {"init", init},
                            {"body", store(buffer, spatial, value)}});
    int body = realized(block, loops);
    for (std::size_t l = axes.size(); l-- > 0;)
      body = node(name("tir.For", "tirx.For"), {{"loop_var", loops[l]},
                                                {"min", integer(0)},
                                                {"extent", integer(axes[l].extent)},
                                                {"kind", -1, "0"},
                                                {"body", body}});
    return body;
  }
  int sequence(const std::vector<int>& parts) {
    return node(name("tir.SeqStmt", "tirx.SeqStmt"), {{"seq", list(parts)}});
  }
  // A module of one function. `free`: the positions of parameters that may be stored in any layout.
  int module(const std::vector<int>& parameters, int body, const std::vector<std::int64_t>& free = {}) {
    const int root = node(release_ == Release::with_types ? "s_tir.SBlock" : name("tir.Block", "tirx.SBlock"),
                          {{"iter_vars", list({})}, {"name_hint", text("root")}, {"init", 0}, {"body", body}});
    std::vector<int> positions;
    for (const std::int64_t position : free) positions.push_back(integer(position));
    const int attributes =
        node(name("DictAttrs", "ir.DictAttrs"),
             {{"__dict__", list({text("main"), list(positions)}, {"global_symbol", "layout_free_buffers"})}});
    std::vector<int> own = parameters, pairs;
    if (release_ != Release::with_types) {
      for (int& parameter : own) {
        const int handle = variable("handle");
        pairs.insert(pairs.end(), {handle, parameter});
        parameter = handle;
      }
    }
    std::vector<Field> fields = {{"attrs", attributes}, {"params", list(own)}, {"body", realized(root, {})}};
    if (!pairs.empty()) fields.push_back({"buffer_map", list(pairs)});
    const int function = node(name("tir.PrimFunc", "tirx.PrimFunc"), std::move(fields));
    return node(name("IRModule", "ir.IRModule"), {{"functions", list({text("main"), function})}});
  }
  int index_map(const std::vector<int>& variables, const std::vector<int>& results) {
    return node(name("tir.IndexMap", "tirx.IndexMap"),
                {{"initial_indices", list(variables)}, {"final_indices", list(results)}});
  }

  int node(std::string_view kind, std::vector<Field> fields) {
    std::string all;
    for (const Field& field : fields) {
      const std::string value = field.node >= 0 ? fmt::format("{}", field.node) : field.plain;
      const bool is_quoted = !is_old() || value.starts_with('"');
      all += fmt::format(R"({}"{}": {})", all.empty() ? "" : ", ", field.name, is_quoted ? value : quoted(value));
    }
    return add(kind, fmt::format(R"(, "{}": {{{}}})", is_old() ? "attrs" : "data", all));
  }
  int size() const { return int(nodes_.size()); }

  std::string json(int root) const {
    return fmt::format(R"({{"{}": {}, "nodes": [{}]}})", is_old() ? "root" : "root_index", root,
                       fmt::join(nodes_, ", "));
  }
  // As a line of a database has it.
  std::string packed(int root) const { return base64(std::string(8, '\1') + json(root)); }

  static std::string base64(std::string_view bytes) {
    constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
      std::uint32_t bits = 0;
      for (std::size_t b = 0; b < 3; ++b) bits = bits << 8 | (i + b < bytes.size() ? std::uint8_t(bytes[i + b]) : 0U);
      for (std::size_t d = 0; d < 4; ++d) text += i + d > bytes.size() ? '=' : digits[bits >> (18 - 6 * d) & 63];
    }
    return text;
  }

 private:
  bool is_old() const { return release_ == Release::with_type_keys; }
  std::string name(std::string_view old, std::string_view later) const { return std::string(is_old() ? old : later); }
  static std::string quoted(std::string_view words) { return fmt::format(R"("{}")", words); }
  int add(std::string_view kind, std::string_view more) {
    nodes_.push_back(fmt::format(R"({{"{}": "{}"{}}})", is_old() ? "type_key" : "type", kind, more));
    return int(nodes_.size()) - 1;
  }
  int type(std::string_view words) { return add("ir.PrimType", fmt::format(R"(, "data": {{"dtype": "{}"}})", words)); }
  Field typed(std::string_view words) {
    return release_ == Release::with_types ? Field{"ty", type(words)} : Field{"dtype", -1, quoted(words)};
  }
  int realized(int block, const std::vector<int>& values) {
    return node(
        release_ == Release::with_types ? "s_tir.SBlockRealize" : name("tir.BlockRealize", "tirx.SBlockRealize"),
        {{"iter_values", list(values)}, {"predicate", integer(1)}, {"block", block}});
  }

  Release release_;
  std::vector<std::string> nodes_;
};

}  // namespace graft::datasets::formats
