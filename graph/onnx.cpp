#include "graph/onnx.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <fstream>
#include <limits>
#include <span>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "graph/wire.h"

namespace graft::graph {
namespace {

namespace fs = std::filesystem;

// TensorProto.DataType: by number its name, the type of its elements here, the bits of each in raw data.
struct OnnxType {
  std::string_view name;
  std::optional<DType> type;
  int bits = 0;
};
constexpr std::int64_t boolean = 9, half = 10, brain_half = 16;
constexpr std::array<OnnxType, 27> onnx_types = {{
    {"undefined", {}, 0},       {"float", DType::f32, 32},    {"uint8", DType::u8, 8},
    {"int8", DType::i8, 8},     {"uint16", DType::i32, 16},   {"int16", DType::i32, 16},
    {"int32", DType::i32, 32},  {"int64", DType::i64, 64},    {"string", {}, 0},
    {"bool", DType::u8, 8},     {"float16", DType::f32, 16},  {"double", DType::f64, 64},
    {"uint32", DType::i64, 32}, {"uint64", DType::i64, 64},   {"complex64", {}, 64},
    {"complex128", {}, 128},    {"bfloat16", DType::f32, 16}, {"float8e4m3fn", {}, 8},
    {"float8e4m3fnuz", {}, 8},  {"float8e5m2", {}, 8},        {"float8e5m2fnuz", {}, 8},
    {"uint4", DType::u8, 4},    {"int4", DType::i8, 4},       {"float4e2m1", {}, 4},
    {"float8e8m0", {}, 8},      {"uint2", DType::u8, 2},      {"int2", DType::i8, 2},
}};
constexpr std::int64_t uint16 = 4, int16 = 5, uint32 = 12, uint64 = 13, int4 = 22, int2 = 26;

std::string type_name(std::int64_t number) {
  if (number >= 0 && number < std::int64_t(onnx_types.size())) return std::string(onnx_types[std::size_t(number)].name);
  return fmt::format("number {}", number);
}

// One element as raw data stores it, in the type that it becomes.
template <class To>
To converted(std::int64_t number, const char* at) {
  const auto as = [&]<class From>(From value) {
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  switch (number) {
    case half:
      return To(double(as(base::F16())));
    case brain_half:
      return To(double(as(base::BF16())));
    case uint16:
      return To(as(std::uint16_t()));
    case int16:
      return To(as(std::int16_t()));
    case uint32:
      return To(as(std::uint32_t()));
    default:
      return To(as(std::uint8_t()) != 0 ? 1 : 0);  // bool
  }
}

bool has_few_bits(std::int64_t number) {
  return number >= 0 && number < std::int64_t(onnx_types.size()) && onnx_types[std::size_t(number)].type &&
         onnx_types[std::size_t(number)].bits < 8;
}

// Two or four elements in a byte, the first one in the lowest bits.
std::string unpacked(std::int64_t number, std::string_view raw, std::int64_t elements) {
  const int bits = onnx_types[std::size_t(number)].bits, values = 1 << bits;
  const bool is_signed = number == int4 || number == int2;
  std::string bytes;
  bytes.reserve(std::size_t(elements));
  for (std::int64_t e = 0; e < elements; ++e) {
    const int value = std::uint8_t(raw[std::size_t(e * bits / 8)]) >> (e * bits % 8) & (values - 1);
    bytes += char(is_signed && value >= values / 2 ? value - values : value);
  }
  return bytes;
}

// Raw data of an ONNX type as bytes of ours.
std::string as_ours(std::int64_t number, std::string_view raw) {
  const OnnxType& from = onnx_types[std::size_t(number)];
  const int width = from.bits / 8;
  const bool same = width == codegen::bytes_of(*from.type) && number != boolean;
  if (same) return std::string(raw);
  return codegen::with_element_of(*from.type, [&](auto zero) {
    const std::size_t count = raw.size() / std::size_t(width);
    std::string bytes(count * sizeof zero, '\0');
    for (std::size_t e = 0; e < count; ++e) {
      const auto value = converted<decltype(zero)>(number, raw.data() + e * std::size_t(width));
      std::memcpy(bytes.data() + e * sizeof value, &value, sizeof value);
    }
    return bytes;
  });
}

// Elements of the typed fields, little-endian in `width` bytes each, as raw data has them.
template <class T>
std::string raw_of(const std::vector<T>& numbers, int width) {
  std::string raw(numbers.size() * std::size_t(width), '\0');
  for (std::size_t e = 0; e < numbers.size(); ++e)
    std::memcpy(raw.data() + e * std::size_t(width), &numbers[e], std::size_t(width));
  return raw;
}

// Operators whose results are booleans, those whose results have the type of an operand, and those of them whose
// numbers may be beyond the range of a type that has more bits here.
constexpr std::string_view decide[] = {"And",     "Or",          "Xor",   "Not",   "Equal",         "Less",
                                       "Greater", "LessOrEqual", "IsNaN", "IsInf", "GreaterOrEqual"};
constexpr std::string_view move[] = {"Identity", "Reshape",  "Transpose",      "Flatten", "Squeeze",   "Unsqueeze",
                                     "Slice",    "Gather",   "Concat",         "Expand",  "Tile",      "Where",
                                     "Split",    "GatherND", "GatherElements", "Abs",     "Max",       "Min",
                                     "Mod",      "Clip",     "BitwiseOr",      "Pad",     "BitwiseXor"};
constexpr std::string_view grow[] = {"Add",      "Sub",        "Mul",       "Neg",   "Sum",
                                     "BitShift", "BitwiseNot", "ReduceSum", "CumSum"};

template <std::size_t count>
bool is_one_of(std::string_view name, const std::string_view (&names)[count]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// For inputs and outputs (Value::declared).
std::string declared_name(std::int64_t type) {
  return has_few_bits(type) ? "" : type_name(type);
}

struct Dimension {
  std::int64_t extent = -1;  // -1: open
  std::string name;
};

// What the file says of an input.
struct Declared {
  std::string name;
  std::int64_t type = 0;
  bool is_tensor = false, has_shape = false;
  std::vector<Dimension> dimensions;
};

class Reader {
 public:
  Reader(std::string_view place, fs::path folder, const Shapes& shapes, const OnnxLimits& limits)
      : place_(place), folder_(std::move(folder)), shapes_(shapes), limits_(limits) {}

  Graph model(std::string_view bytes) {
    std::string_view graph_bytes;
    bool has_graph = false;
    std::int64_t version = 0, format = 0;
    std::vector<std::string_view> functions;
    Field field;
    for (Fields fields(bytes); next(fields, field);) {
      if (field.number == 1) format = field.as_integer();
      if (field.number == 7) graph_bytes = field.as_bytes(), has_graph = true;
      if (field.number == 8) opset(field.as_bytes(), version);
      if (field.number == 25) functions.push_back(field.as_bytes());
    }
    if (!has_graph || format < 1) fail("is not an ONNX model: it has no graph");
    if (version == 0 && format < 3) version = 1;  // before versions of operators were written down
    if (version == 0) fail("names no version (opset) of ONNX's own operators");
    version_ = known_version(version);
    for (const std::string_view one : functions) add_function(one);
    return graph(graph_bytes, 0);
  }

  std::vector<Shapes> each_shape(std::string_view bytes) {
    std::map<std::string, std::size_t> ranks;  // of inputs
    Field field, part;
    for (Fields fields(bytes); next(fields, field);) {
      if (field.number != 7) continue;
      for (Fields parts(field.as_bytes()); next(parts, part);) {
        if (part.number != 11) continue;
        const Declared input = declared(part.as_bytes());
        ranks[input.name] = input.dimensions.size();
      }
    }
    std::vector<Shapes> all(1);
    for (const auto& [name, numbers] : shapes_) {
      const auto rank = ranks.find(name);
      std::size_t one = rank == ranks.end() ? 1 : rank->second;
      if (one == 0 || numbers.size() % one != 0) one = std::max<std::size_t>(1, numbers.size());  // refused later
      std::vector<Shape> given;
      for (std::size_t at = 0; at < std::max<std::size_t>(1, numbers.size()); at += one) {
        Shape shape(numbers.begin() + std::ptrdiff_t(at),
                    numbers.begin() + std::ptrdiff_t(std::min(at + one, numbers.size())));
        if (std::find(given.begin(), given.end(), shape) == given.end()) given.push_back(std::move(shape));
      }
      if (all.size() * given.size() > most_shapes) fail(fmt::format("more than {} shapes are given", most_shapes));
      std::vector<Shapes> more;
      for (const Shapes& before : all)
        for (const Shape& shape : given) more.emplace_back(before)[name] = shape;
      all = std::move(more);
    }
    return all;
  }

  Known lone_tensor(std::string_view bytes) { return tensor(bytes, "tensor").second; }

 private:
  static constexpr std::int64_t oldest_operators = 1, newest_operators = 28;

  [[noreturn]] void fail(const std::string& message) const { throw base::UserError(place_, message); }

  // Every part that is read costs memory; their number is bounded.
  bool next(Fields& fields, Field& field) {
    if (!fields.next(field)) return false;
    if (++messages_ > limits_.most_messages) fail(fmt::format("has more than {} parts", limits_.most_messages));
    return true;
  }

  void opset(std::string_view bytes, std::int64_t& version) {
    std::string_view domain;
    std::int64_t number = 0;
    Field field;
    for (Fields fields(bytes); next(fields, field);) {
      if (field.number == 1) domain = field.as_bytes();
      if (field.number == 2) number = field.as_integer();
    }
    if (domain.empty() || domain == "ai.onnx") version = number;
  }

  int known_version(std::int64_t version) const {
    if (version < oldest_operators || version > newest_operators)
      fail(fmt::format("its operators are of version (opset) {}; {} to {} are known: convert the model", version,
                       oldest_operators, newest_operators));
    return int(version);
  }

  // An operator that the model defines by others.
  struct Function {
    std::vector<std::string> inputs, outputs;
    std::vector<std::string_view> nodes, defaults;  // defaults: attributes
    std::int64_t version = 0;                       // 0: that of the model
    bool is_open = false;                           // one of its nodes is being read
  };

  using FunctionKey = std::array<std::string, 3>;  // domain, name and overload
  static FunctionKey function_key(std::string_view domain, std::string_view name, std::string_view overload) {
    return {std::string(domain == "ai.onnx" ? "" : domain), std::string(name), std::string(overload)};
  }

  void add_function(std::string_view bytes) {
    Function function;
    std::string_view name, domain, overload;
    Field field;
    for (Fields fields(bytes); next(fields, field);) {
      if (field.number == 1) name = field.as_bytes();
      if (field.number == 4) function.inputs.emplace_back(field.as_bytes());
      if (field.number == 5) function.outputs.emplace_back(field.as_bytes());
      if (field.number == 7) function.nodes.push_back(field.as_bytes());
      if (field.number == 9) opset(field.as_bytes(), function.version);
      if (field.number == 10) domain = field.as_bytes();
      if (field.number == 11) function.defaults.push_back(field.as_bytes());
      if (field.number == 13) overload = field.as_bytes();
    }
    if (!functions_.emplace(function_key(domain, name, overload), std::move(function)).second)
      fail(fmt::format("function {}: is there twice", in_quotes(name)));
  }

  // What a function computes where a node has these attributes.
  std::shared_ptr<const Graph> body_of(Function& function, const std::string& where,
                                       std::map<std::string, Attribute> attributes, int depth) {
    if (function.is_open) fail(fmt::format("{}: a function of the model that uses itself", where));
    if (depth > limits_.deepest)
      fail(fmt::format("{}: functions within functions are deeper than {}", where, limits_.deepest));
    for (const std::string_view one : function.defaults)
      if (auto attribute = this->attribute(one, where, depth)) attributes.insert(std::move(*attribute));
    const std::map<std::string, Attribute>* given = std::exchange(given_, &attributes);
    const int version = std::exchange(version_, function.version == 0 ? version_ : known_version(function.version));
    function.is_open = true;
    const std::map<std::string, std::int64_t> types = std::exchange(types_, {});
    Graph graph;
    graph.version = version_;
    Names names{graph};
    for (const std::string& input : function.inputs) {
      graph.inputs.push_back(names(input));
      graph.values[std::size_t(graph.inputs.back())].origin = Value::Origin::input;
    }
    add_nodes(graph, function.nodes, names, depth);
    for (const std::string& output : function.outputs) graph.outputs.push_back(names(output));
    function.is_open = false;
    types_ = types;
    version_ = version;
    given_ = given;
    return std::make_shared<const Graph>(checked(std::move(graph), place_));
  }

  // Values by name: new ones are added.
  struct Names {
    Graph& graph;
    std::unordered_map<std::string, int> by_name = {};
    int operator()(const std::string& name) {
      const auto [at, is_new] = by_name.emplace(name, int(graph.values.size()));
      if (is_new) graph.values.push_back({.name = name});
      return at->second;
    }
  };

  void add_nodes(Graph& graph, const std::vector<std::string_view>& nodes, Names& value_of, int depth) {
    nodes_ += std::int64_t(nodes.size());
    if (nodes_ > limits_.most_nodes) fail(fmt::format("has more than {} nodes", limits_.most_nodes));
    graph.nodes.reserve(nodes.size());
    for (const std::string_view one : nodes) {
      Node next = node(one, value_of, depth);
      const auto wrapped = wrap(next, value_of);
      graph.nodes.push_back(std::move(next));
      if (wrapped) graph.nodes.push_back(*wrapped);
    }
    // What graphs within use of those around this one.
    for (std::size_t n = 0; depth > 0 && n < graph.nodes.size(); ++n)
      for (const auto& [name, attribute] : graph.nodes[n].attributes)
        if (const auto* within = std::get_if<std::shared_ptr<const Graph>>(&attribute))
          for (const Value& value : (*within)->values)
            if (value.origin == Value::Origin::outer) (void)value_of(value.name);
  }

  // The graph of the model (depth 0), or one that is an attribute, which may use values of the graphs around it.
  Graph graph(std::string_view bytes, int depth) {
    if (depth > limits_.deepest) fail(fmt::format("graphs within graphs are deeper than {}", limits_.deepest));
    Graph graph;
    graph.version = version_;
    Names value_of{graph};
    std::vector<std::string_view> node_bytes;
    std::vector<Declared> inputs;
    std::vector<std::string> outputs;
    std::vector<Declared> computed;
    Field field;
    for (Fields fields(bytes); next(fields, field);) {
      switch (field.number) {
        case 1:
          node_bytes.push_back(field.as_bytes());
          break;
        case 2:
          graph.name = field.as_bytes();
          break;
        case 5: {
          auto [name, array] = tensor(field.as_bytes(), "tensor");
          Value& value = graph.values[std::size_t(value_of(name))];
          if (value.known) fail(fmt::format("tensor {}: is there twice", in_quotes(name)));
          value.origin = Value::Origin::constant;
          value.type = array->type;
          value.shape = array->shape;
          value.known = std::move(array);
          break;
        }
        case 11:
          inputs.push_back(declared(field.as_bytes()));
          break;
        case 12:
          computed.push_back(declared(field.as_bytes()));
          outputs.push_back(computed.back().name);
          break;
        case 13:
          computed.push_back(declared(field.as_bytes()));
          break;
        case 15:
          fail("has sparse tensors, which are not read; store them as plain ones");
      }
    }
    for (const Declared& input : inputs) {
      const int value = value_of(input.name);
      if (graph.values[std::size_t(value)].known) continue;  // a weight that is listed as an input, too
      if (graph.values[std::size_t(value)].origin == Value::Origin::input)
        fail(fmt::format("input {}: is there twice", in_quotes(input.name)));
      graph.values[std::size_t(value)].origin = Value::Origin::input;
      graph.inputs.push_back(value);
    }
    if (depth == 0) give_shapes(graph, inputs);
    add_nodes(graph, node_bytes, value_of, depth);
    for (const Declared& each : computed) note_shape(graph, value_of, each);
    for (const std::string& output : outputs) graph.outputs.push_back(value_of(output));
    for (const std::vector<int>* ends : {&graph.inputs, &graph.outputs})
      for (const int end : *ends)
        if (Value& value = graph.values[std::size_t(end)]; types_.contains(value.name) && depth == 0)
          value.declared = declared_name(types_[value.name]);
    if (graph.outputs.empty()) fail("has a graph without outputs");
    if (depth > 0) {
      std::vector<bool> is_computed(graph.values.size());
      for (const Node& each : graph.nodes)
        for (const int result : each.results)
          if (result >= 0) is_computed[std::size_t(result)] = true;
      for (std::size_t v = 0; v < graph.values.size(); ++v)
        if (graph.values[v].origin == Value::Origin::computed && !is_computed[v])
          graph.values[v].origin = Value::Origin::outer;
    }
    return checked(std::move(graph), place_);
  }

  Node node(std::string_view bytes, Names& value_of, int depth) {
    Node node;
    std::string_view domain, overload;
    std::vector<std::string_view> attributes;
    Field field;
    const auto value = [&] {
      const std::string name(field.as_bytes());
      return name.empty() ? -1 : value_of(name);
    };
    for (Fields fields(bytes); next(fields, field);) {
      if (field.number == 1) node.operands.push_back(value());
      if (field.number == 2) node.results.push_back(value());
      if (field.number == 3) node.name = field.as_bytes();
      if (field.number == 4) node.operation = field.as_bytes();
      if (field.number == 5) attributes.push_back(field.as_bytes());
      if (field.number == 7) domain = field.as_bytes();
      if (field.number == 8) overload = field.as_bytes();
    }
    const auto function = functions_.find(function_key(domain, node.operation, overload));
    if (!domain.empty() && domain != "ai.onnx") node.operation = fmt::format("{}.{}", domain, node.operation);
    const std::string where = fmt::format("node {} ({})", in_quotes(node.name.empty() ? "without a name" : node.name),
                                          in_quotes(node.operation));
    if (node.operation.empty()) fail(fmt::format("{}: names no operator", where));
    for (const std::string_view one : attributes) {
      auto attribute = this->attribute(one, where, depth);
      if (!attribute) continue;
      if (!node.attributes.insert(*attribute).second)
        fail(fmt::format("{}: attribute {} is there twice", where, in_quotes(attribute->first)));
    }
    if (function != functions_.end())
      node.body = body_of(function->second, where, std::exchange(node.attributes, {}), depth + 1);
    follow_types(node, value_of.graph, where);
    return node;
  }

  // The type of an operand of which ours says less, else 0.
  std::int64_t noted_type(const Node& node, std::size_t operand, const Graph& graph) const {
    if (operand >= node.operands.size() || node.operands[operand] < 0) return 0;
    const auto found = types_.find(graph.values[std::size_t(node.operands[operand])].name);
    return found == types_.end() ? 0 : found->second;
  }

  // What brings results back into the range of a type that has more bits here: a Cast of sums and products, which wrap
  // around, or a Clip of what QuantizeLinear gives.
  std::optional<Node> wrap(Node& node, Names& value_of) {
    Graph& graph = value_of.graph;
    const bool is_clipped = node.operation == "QuantizeLinear";
    const std::int64_t type = noted_type(node, is_clipped ? 2 : 0, graph);
    if ((!is_clipped && !is_one_of(node.operation, grow)) || !is_wider_here(type) || has_few_bits(type) != is_clipped ||
        node.results.size() != 1 || node.results[0] < 0)
      return std::nullopt;
    const int result = node.results[0];
    const std::string name = graph.values[std::size_t(result)].name;
    node.results[0] = value_of(name + " before it wraps around");
    Node after{.name = node.name,
               .operation = is_clipped ? "Clip" : "Cast",
               .attributes = {},
               .operands = node.results,
               .results = {result}};
    if (!is_clipped) {
      after.attributes["to"] = type;
      return after;
    }
    const OnnxType& of = onnx_types[std::size_t(type)];
    const std::int64_t values = std::int64_t(1) << of.bits, least = of.type == DType::i8 ? -values / 2 : 0;
    for (const std::int64_t limit : {least, least + values - 1})
      after.operands.push_back(
          add_constant(graph, fmt::format("{} limit {}", name, limit), known(*of.type, {}, std::span(&limit, 1))));
    return after;
  }

  // The types of results of which ours say less; CastLike to one of them becomes a Cast.
  void follow_types(Node& node, const Graph& graph, const std::string& where) {
    const auto type_of = [&](std::size_t operand) { return noted_type(node, operand, graph); };
    if (node.operation == "com.microsoft.GatherBlockQuantized" && has_few_bits(type_of(0)))
      node.attributes["is_unpacked"] = std::int64_t(1);
    const std::int64_t like = node.operation == "CastLike" ? type_of(1) : 0;
    std::int64_t type = like;
    if (like != 0) {
      node.operation = "Cast";
      node.operands.pop_back();
      node.attributes["to"] = type;
    } else if (node.operation == "Cast") {
      if (const auto to = node.attributes.find("to"); to != node.attributes.end())
        if (const auto* number = std::get_if<std::int64_t>(&to->second)) type = *number;
    } else if (is_one_of(node.operation, decide)) {
      type = boolean;
    } else if (is_one_of(node.operation, move) || is_one_of(node.operation, grow)) {
      type = type_of(node.operation == "Where" ? 1 : 0);
    }
    if (node.operation == "Cast" && has_few_bits(type))
      fail(fmt::format("{}: its result has fewer than 8 bits, which is not computed", where));
    if (node.operation == "QuantizeLinear") type = type_of(2);
    for (const int result : node.results)
      if (result >= 0) note_type(graph.values[std::size_t(result)].name, type);
  }

  using Named = std::pair<std::string, Attribute>;

  // Nothing for an attribute of a function that is not given.
  std::optional<Named> attribute(std::string_view bytes, const std::string& node, int depth) {
    std::string name, reference;
    std::int64_t type = 0, integer = 0;
    float number = 0;
    std::string_view text, tensor_bytes, graph_bytes;
    std::vector<std::int64_t> integers;
    std::vector<float> numbers;
    std::vector<std::string> texts;
    int guessed = 0;  // IR 1 had no types
    Field field;
    for (Fields fields(bytes); next(fields, field);) {
      switch (field.number) {
        case 1:
          name = field.as_bytes();
          break;
        case 2:
          number = field.as_float(), guessed = 1;
          break;
        case 3:
          integer = field.as_integer(), guessed = 2;
          break;
        case 4:
          text = field.as_bytes(), guessed = 3;
          break;
        case 5:
          tensor_bytes = field.as_bytes(), guessed = 4;
          break;
        case 6:
          graph_bytes = field.as_bytes(), guessed = 5;
          break;
        case 7:
          field.append_to(numbers), guessed = 6;
          break;
        case 8:
          field.append_to(integers), guessed = 7;
          break;
        case 9:
          texts.emplace_back(field.as_bytes()), guessed = 8;
          break;
        case 20:
          type = field.as_integer();
          break;
        case 21:
          reference = field.as_bytes();
          break;
      }
    }
    const std::string where = fmt::format("{}: attribute {}", node, in_quotes(name));
    if (!reference.empty()) {
      if (!given_) fail(fmt::format("{}: refers to one of a function, and is in none", where));
      const auto found = given_->find(reference);
      return found == given_->end() ? std::nullopt : std::optional(Named(name, found->second));
    }
    switch (type != 0 ? type : guessed) {
      case 1:
        return Named(name, double(number));
      case 2:
        return Named(name, integer);
      case 3:
        return Named(name, std::string(text));
      case 4:
        return Named(name, tensor(tensor_bytes, where).second);
      case 5:
        return Named(name, std::make_shared<const Graph>(graph(graph_bytes, depth + 1)));
      case 6:
        return Named(name, std::vector<double>(numbers.begin(), numbers.end()));
      case 7:
        return Named(name, std::move(integers));
      case 8:
        return Named(name, std::move(texts));
      default:
        fail(fmt::format("{}: is of a kind (number {}) that is not read", where, type));
    }
  }

  std::pair<std::string, Known> tensor(std::string_view bytes, const std::string& what) {
    std::string name;
    Shape shape;
    std::int64_t type = 0, location = 0;
    std::vector<std::int64_t> integers;
    std::vector<float> floats;
    std::vector<double> doubles;
    std::string_view raw;
    bool has_raw = false;
    std::map<std::string, std::string, std::less<>> external;
    Field field;
    for (Fields fields(bytes); next(fields, field);) {
      if (field.number == 1) field.append_to(shape);
      if (field.number == 2) type = field.as_integer();
      if (field.number == 4) field.append_to(floats);
      if (field.number == 5 || field.number == 7 || field.number == 11) field.append_to(integers);
      if (field.number == 8) name = field.as_bytes();
      if (field.number == 9) raw = field.as_bytes(), has_raw = true;
      if (field.number == 10) field.append_to(doubles);
      if (field.number == 13) entry(field.as_bytes(), external);
      if (field.number == 14) location = field.as_integer();
    }
    const std::string where = name.empty() ? what : fmt::format("{} {}", what, in_quotes(name));
    if (!type_of_onnx(type))
      fail(fmt::format("{}: its type is {}, which is not computed with", where, type_name(type)));
    for (const std::int64_t extent : shape)
      if (extent < 0) fail(fmt::format("{}: has the extent {}", where, extent));
    const std::int64_t elements = elements_of(shape);
    if (elements < 0) fail(fmt::format("{}: its shape {} is too large", where, to_text(shape)));
    const OnnxType& from = onnx_types[std::size_t(type)];
    const std::int64_t expected = (elements * from.bits + 7) / 8;

    std::string own;
    if (location == 1) {
      own = external_data(external, expected, where);
      raw = own;
    } else if (!has_raw) {
      if (!doubles.empty())
        own = raw_of(doubles, int(sizeof(double)));
      else if (!floats.empty())
        own = raw_of(floats, int(sizeof(float)));
      else
        own = raw_of(integers, std::max(1, from.bits / 8));
      // Numbers in a field that is not that of their type have another width, or are not there.
      const bool fits = type == 11  ? integers.empty() && floats.empty()
                        : type == 1 ? integers.empty() && doubles.empty()
                                    : floats.empty() && doubles.empty();
      if (!fits) fail(fmt::format("{}: its numbers are not of its type", where));
      raw = own;
    }
    if (std::int64_t(raw.size()) != expected)
      fail(fmt::format("{}: its shape {} of {} needs {} bytes of data, the file has {}", where, to_text(shape),
                       from.name, expected, raw.size()));
    note_type(name, type);
    std::string ours = has_few_bits(type) ? unpacked(type, raw, elements) : as_ours(type, raw);
    return {name, std::make_shared<const Array>(Array{*from.type, std::move(shape), std::move(ours)})};
  }

  void entry(std::string_view bytes, std::map<std::string, std::string, std::less<>>& entries) {
    std::string key, value;
    Field field;
    for (Fields fields(bytes); next(fields, field);) {
      if (field.number == 1) key = field.as_bytes();
      if (field.number == 2) value = field.as_bytes();
    }
    entries[key] = value;
  }

  std::string external_data(const std::map<std::string, std::string, std::less<>>& entries, std::int64_t expected,
                            const std::string& where) {
    const auto text = [&](std::string_view key) {
      const auto found = entries.find(key);
      return found == entries.end() ? std::string() : found->second;
    };
    const auto number = [&](std::string_view key, std::int64_t otherwise) {
      const std::string digits = text(key);
      std::int64_t value = otherwise;
      if (digits.empty()) return value;
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
      if (error != std::errc() || end != digits.data() + digits.size() || value < 0)
        fail(fmt::format("{}: external data: {} is {}", where, key, in_quotes(digits)));
      return value;
    };
    const std::string name = text("location");
    const fs::path relative(name);
    const auto escapes = [](const fs::path& path) {
      return std::any_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".."; });
    };
    if (name.empty() || name.find('\0') != std::string::npos || relative.is_absolute() || escapes(relative))
      fail(fmt::format("{}: external data: {} is not a file in the model's folder", where, in_quotes(name)));
    std::error_code error;
    const fs::path folder = fs::weakly_canonical(folder_.empty() ? fs::path(".") : folder_, error);
    const fs::path path = fs::weakly_canonical(folder / relative, error);
    if (error || escapes(path.lexically_relative(folder)))
      fail(fmt::format("{}: external data: {} is not a file in the model's folder", where, in_quotes(name)));
    if (!fs::is_regular_file(path, error))
      fail(fmt::format("{}: external data: the model's folder has no file {}", where, in_quotes(name)));
    const std::int64_t size = std::int64_t(fs::file_size(path, error));
    const std::int64_t offset = number("offset", 0);
    const std::int64_t length = number("length", error ? 0 : std::max<std::int64_t>(0, size - offset));
    if (error || length != expected || offset > size || length > size - offset)
      fail(fmt::format("{}: external data: {} bytes are needed, {} of {} are named from {} on, and the file has {}",
                       where, expected, length, in_quotes(name), offset, size));
    if (length > limits_.most_bytes)
      fail(fmt::format("{}: external data: {} bytes are more than {}", where, length, limits_.most_bytes));
    std::string bytes(std::size_t(length), '\0');
    std::ifstream stream(path, std::ios::binary);
    stream.seekg(offset);
    stream.read(bytes.data(), length);
    if (!stream) fail(fmt::format("{}: external data: {} cannot be read", where, in_quotes(name)));
    return bytes;
  }

  Declared declared(std::string_view bytes) {
    Declared result;
    Field field;
    std::string_view type;
    for (Fields fields(bytes); next(fields, field);) {
      if (field.number == 1) result.name = field.as_bytes();
      if (field.number == 2) type = field.as_bytes();
    }
    if (result.name.empty()) fail("an input or output has no name");
    std::string_view tensor, shape;
    for (Fields fields(type); next(fields, field);)
      if (field.number == 1) tensor = field.as_bytes(), result.is_tensor = true;
    for (Fields fields(tensor); next(fields, field);) {
      if (field.number == 1) result.type = field.as_integer();
      if (field.number == 2) shape = field.as_bytes(), result.has_shape = true;
    }
    for (Fields fields(shape); next(fields, field);) {
      if (field.number != 1) continue;
      Dimension dimension;
      Field inner;
      for (Fields parts(field.as_bytes()); next(parts, inner);) {
        if (inner.number == 1) dimension.extent = std::max<std::int64_t>(-1, inner.as_integer());
        if (inner.number == 2) dimension.name = inner.as_bytes();
      }
      result.dimensions.push_back(std::move(dimension));
    }
    note_type(result.name, result.type);
    return result;
  }

  void note_type(const std::string& name, std::int64_t type) {
    if (is_boolean(type) || is_wider_here(type) || type == uint64) types_.emplace(name, type);
  }

  // What the file says of a value that nodes compute, if it says all.
  void note_shape(Graph& graph, const Names& value_of, const Declared& declared) const {
    const auto known = value_of.by_name.find(declared.name);
    if (known == value_of.by_name.end() || !declared.has_shape) return;
    Value& value = graph.values[std::size_t(known->second)];
    Shape shape;
    for (const Dimension& dimension : declared.dimensions) {
      const auto given = shapes_.find(dimension.name);
      const bool is_given = dimension.extent < 0 && given != shapes_.end() && given->second.size() == 1;
      shape.push_back(is_given ? given->second.front() : dimension.extent);
      if (shape.back() < 0) return;
    }
    if (value.origin != Value::Origin::computed || elements_of(shape) < 0) return;
    value.type = type_of_onnx(declared.type);
    value.shape = std::move(shape);
  }

  // Shapes and types of the model's inputs, by the file and by what is given.
  void give_shapes(Graph& graph, const std::vector<Declared>& inputs) const {
    std::vector<std::string> names, open;
    for (const Declared& input : inputs) {
      const auto at = std::find_if(graph.inputs.begin(), graph.inputs.end(),
                                   [&](int value) { return graph.values[std::size_t(value)].name == input.name; });
      if (at == graph.inputs.end()) continue;
      Value& value = graph.values[std::size_t(*at)];
      const std::string where = fmt::format("input {}", in_quotes(input.name));
      if (!input.is_tensor) fail(fmt::format("{}: is not a tensor", where));
      value.type = type_of_onnx(input.type);
      if (!value.type)
        fail(fmt::format("{}: its type is {}, which is not computed with", where, type_name(input.type)));
      std::vector<Dimension> dimensions = input.dimensions;
      names.push_back(input.name);
      for (const Dimension& dimension : dimensions)
        if (!dimension.name.empty()) names.push_back(dimension.name);
      if (const auto given = shapes_.find(input.name); given != shapes_.end()) {
        if (!input.has_shape) dimensions.resize(given->second.size());
        if (given->second.size() != dimensions.size())
          fail(fmt::format("{}: has {} dimensions; the shape {} is given", where, dimensions.size(),
                           to_text(given->second)));
        for (std::size_t d = 0; d < dimensions.size(); ++d) {
          // Some exporters write 0 for an extent that is open.
          if (dimensions[d].extent > 0 && dimensions[d].extent != given->second[d])
            fail(fmt::format("{}: its dimension {} is {}; {} is given", where, d, dimensions[d].extent,
                             given->second[d]));
          dimensions[d].extent = given->second[d];
        }
      } else {
        for (Dimension& dimension : dimensions)
          if (const auto extent = shapes_.find(dimension.name);
              dimension.extent < 0 && !dimension.name.empty() && extent != shapes_.end()) {
            if (extent->second.size() != 1)
              fail(fmt::format("dimension {}: takes one extent; {} is given", in_quotes(dimension.name),
                               to_text(extent->second)));
            dimension.extent = extent->second.front();
          }
      }
      std::vector<std::string> texts;
      value.shape.emplace();
      bool is_open = !input.has_shape && !shapes_.contains(input.name);
      for (const Dimension& dimension : dimensions) {
        is_open = is_open || dimension.extent < 0;
        value.shape->push_back(dimension.extent);
        texts.push_back(dimension.extent >= 0    ? std::to_string(dimension.extent)
                        : dimension.name.empty() ? "?"
                                                 : dimension.name);
      }
      if (is_open)
        open.push_back(fmt::format("{} [{}]", in_quotes(input.name), input.has_shape ? base::join(texts, ",") : "..."));
      else if (elements_of(*value.shape) < 0)
        fail(fmt::format("{}: its shape {} has too many elements", where, to_text(*value.shape)));
    }
    for (const auto& [name, shape] : shapes_)
      if (std::find(names.begin(), names.end(), name) == names.end())
        fail(fmt::format("a shape is given for '{}', which is neither an input nor a dimension of one{}", name,
                         base::did_you_mean(name, names)));
    if (!open.empty())
      fail(fmt::format(
          "the file leaves the shape of {} open; give the whole shape by the input's name, or the extent by "
          "the name of a dimension",
          fmt::join(open, ", ")));
  }

  const std::string place_;
  const fs::path folder_;
  const Shapes& shapes_;
  const OnnxLimits& limits_;
  int version_ = 0;
  std::int64_t nodes_ = 0, messages_ = 0;
  std::map<FunctionKey, Function> functions_;
  const std::map<std::string, Attribute>* given_ = nullptr;  // attributes of the function that is being read
  std::map<std::string, std::int64_t> types_;                // ONNX's, by value, where ours say less
};

// What `read` gives; broken bytes are the user's file.
template <class Read>
auto guarded(std::string_view place, const Read& read) {
  try {
    return read();
  } catch (const Broken& broken) {
    throw base::UserError(place, fmt::format("is not an ONNX file, or cut off: {}", broken.what));
  }
}

}  // namespace

std::optional<DType> type_of_onnx(std::int64_t number) {
  if (number < 0 || number >= std::int64_t(onnx_types.size())) return std::nullopt;
  return onnx_types[std::size_t(number)].type;
}

bool is_boolean(std::int64_t number) {
  return number == boolean;
}

bool is_wider_here(std::int64_t number) {
  return number == uint16 || number == int16 || number == uint32 || has_few_bits(number);
}

Known parse_onnx_tensor(std::string_view bytes, std::string_view place) {
  const Shapes no_shapes;
  const OnnxLimits limits;
  return guarded(place, [&] { return Reader(place, {}, no_shapes, limits).lone_tensor(bytes); });
}

Graph parse_onnx(std::string_view bytes, std::string_view place, const fs::path& folder, const Shapes& shapes,
                 const OnnxLimits& limits) {
  return guarded(place, [&] { return Reader(place, folder, shapes, limits).model(bytes); });
}

std::vector<Shapes> each_shape(const fs::path& path, const Shapes& shapes, const OnnxLimits& limits) {
  const std::string place = path.string(), bytes = base::read_file(path, limits.most_bytes);
  return guarded(place, [&] { return Reader(place, {}, shapes, limits).each_shape(bytes); });
}

Graph read_onnx(const fs::path& path, const Shapes& shapes, const OnnxLimits& limits) {
  return parse_onnx(base::read_file(path, limits.most_bytes), path.string(), path.parent_path(), shapes, limits);
}

}  // namespace graft::graph
