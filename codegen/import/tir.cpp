#include "codegen/import/tir.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/document.h"

namespace graft::codegen {
namespace {

using base::Document;
using base::Reason;
using base::Result;

constexpr std::size_t most_bytes = std::size_t(1) << 24, most_nodes = 100'000, most_loops = 64, most_index_nodes = 1000,
                      most_items = 4096, longest_name = 120;
constexpr int deepest_expression = 200, most_visits = 100'000;
// For extents and coefficients: sums of products of two of them, one for each loop, fit into 64 bits.
constexpr std::int64_t largest_number = std::int64_t(1) << 28;

// Why a graph is not read; never leaves this file.
struct Unread {
  std::string why;
};

std::string decoded(std::string_view base64) {
  std::string bytes;
  bytes.reserve(base64.size() / 4 * 3);
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : base64) {
    std::uint32_t digit = 0;
    if (c >= 'A' && c <= 'Z') {
      digit = std::uint32_t(c - 'A');
    } else if (c >= 'a' && c <= 'z') {
      digit = std::uint32_t(c - 'a') + 26;
    } else if (c >= '0' && c <= '9') {
      digit = std::uint32_t(c - '0') + 52;
    } else if (c == '+' || c == '/') {
      digit = c == '+' ? 62 : 63;
    } else if (c == '=') {
      break;
    } else {
      throw Unread{"a module that is not base64"};
    }
    bits = bits << 6 | digit;
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes.push_back(char(bits >> count & 0xff));
    }
  }
  return bytes;
}

// Nodes by number. Fields name other nodes; texts and numbers are nodes of their own, or stand in place, as the release
// has it.
class Graph {
 public:
  explicit Graph(std::string_view json) {
    try {
      document_ = base::parse_json(json, "module");
      const Document& nodes = document_.at("nodes");
      if (nodes.as_list().size() > most_nodes) throw Unread{"a module of more nodes than any real one has"};
      const Document* root = document_.find("root_index");
      has_keys_ = root == nullptr;
      root_ = int(check(root != nullptr ? root->as_integer() : document_.at("root").as_integer()));
    } catch (const base::UserError&) {
      throw Unread{"a module that is not a graph of nodes"};
    }
  }

  int root() const { return root_; }

  // "BufferLoad" for "tir.BufferLoad"; what later releases renamed has its old name.
  std::string kind(int node) const {
    const Document* type = at(node).find(has_keys_ ? "type_key" : "type");
    if (type == nullptr) return "";
    std::string name = type->as_string();
    name.erase(0, name.rfind('.') == std::string::npos ? 0 : name.rfind('.') + 1);
    if (name == "TensorLoad") return "BufferLoad";
    if (name == "SBlock") return "Block";
    if (name == "SBlockRealize") return "BlockRealize";
    return name;
  }

  bool has(int node, std::string_view field) const {
    const Document* fields = fields_of(node);
    return fields != nullptr && fields->is_map() && fields->find(field) != nullptr;
  }

  // The node that a field names.
  int to(int node, std::string_view field) const { return node_in(field_of(node, field)); }
  // The first of two names that the node has.
  int to(int node, std::string_view field, std::string_view later) const {
    return to(node, has(node, field) ? field : later);
  }

  std::vector<int> list(int node) const {
    std::vector<int> items;
    const Document* data = at(node).find("data");
    if (data == nullptr) return items;  // of old releases: empty
    if (data->as_list().size() > most_items) throw Unread{"a list that is longer than any real one"};
    for (const Document& item : data->as_list()) items.push_back(node_in(item));
    return items;
  }
  std::vector<int> list(int node, std::string_view field) const { return list(to(node, field)); }

  // The value of a map of texts; -1 if it is not there.
  int named(int map, std::string_view key) const {
    const std::vector<int> items = list(map);
    if (const Document* keys = at(map).find("keys")) {
      for (std::size_t i = 0; i < keys->as_list().size() && i < items.size(); ++i)
        if (keys->as_list()[i].as_string() == key) return items[i];
      return -1;
    }
    for (std::size_t i = 0; i + 1 < items.size(); i += 2)
      if (kind(items[i]) == "String" && text_of(items[i]) == key) return items[i + 1];
    return -1;
  }

  // A field that is a text, or names one.
  std::string text(int node, std::string_view field) const {
    const Document& value = field_of(node, field);
    return value.is_string() && !has_keys_ ? value.as_string() : text_of(node_in(value));
  }
  // The same for fields that are never nodes of old releases.
  std::string type(int node) const {
    if (has(node, "dtype")) {
      const Document& value = field_of(node, "dtype");
      return value.is_string() ? value.as_string() : text_of(node_in(value));
    }
    return text_of(to(node, "ty"));
  }
  // An operator's name, "if_then_else" for "tir.if_then_else".
  std::string operation(int call) const {
    const int op = to(call, "op");
    if (kind(op) != "Op") throw Unread{"a call of " + kind(op)};
    const std::string name = text_of(op);
    return name.substr(name.rfind('.') == std::string::npos ? 0 : name.rfind('.') + 1);
  }

  // A field that is the number itself, not a node: kinds of loops and axes.
  std::int64_t plain(int node, std::string_view field) const { return integer_in(field_of(node, field)); }

  std::int64_t integer(int node) const {
    if (kind(node) == "int") return integer_in(at(node).at("data"));
    if (kind(node) != "IntImm") throw Unread{"an extent that is not a number"};
    const Document& value = field_of(node, "value");
    if (has_keys_ || has(node, "dtype")) return integer_in(value);
    const int number = node_in(value);
    if (kind(number) != "int") throw Unread{"an extent that is not a number"};
    return integer_in(at(number).at("data"));
  }
  double number(int node) const {
    if (kind(node) == "IntImm") return double(integer(node));
    const Document& value = field_of(node, "value");
    if (value.is_number()) return value.as_number();
    const std::string& word = value.as_string();
    double number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size()) throw Unread{"a number that is not one"};
    return number;
  }

 private:
  std::int64_t check(std::int64_t node) const {
    if (node < 0 || node >= std::int64_t(document_.at("nodes").as_list().size()))
      throw Unread{"a node that is missing"};
    return node;
  }
  const Document& at(int node) const { return document_.at("nodes").as_list()[std::size_t(node)]; }
  const Document* fields_of(int node) const { return at(node).find(has_keys_ ? "attrs" : "data"); }
  const Document& field_of(int node, std::string_view field) const {
    if (!has(node, field)) throw Unread{fmt::format("{} without '{}'", kind(node), field)};
    return fields_of(node)->at(field);
  }
  int node_in(const Document& value) const { return int(check(integer_in(value))); }
  static std::int64_t integer_in(const Document& value) {
    if (!value.is_string()) return value.as_integer();
    const std::string& word = value.as_string();
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size()) throw Unread{"a number that is not one"};
    return number;
  }
  std::string text_of(int node) const {
    for (const std::string_view field : {"repr_str", "data"}) {
      if (const Document* text = at(node).find(field); text != nullptr && text->is_string()) return text->as_string();
    }
    if (has(node, "dtype")) return field_of(node, "dtype").as_string();
    throw Unread{"a text that is not one"};
  }

  Document document_;
  bool has_keys_ = false;
  int root_ = 0;
};

// Integers over variables, as the nodes of a map of indices; `variables`: the position of each node that is one.
int add_index(const Graph& graph, int node, const std::map<int, int>& variables, IndexMap& map, int depth = 0) {
  using Kind = IndexMap::Kind;
  static const std::map<std::string, Kind, std::less<>> operations = {
      {"Add", Kind::sum},      {"Sub", Kind::difference},     {"Mul", Kind::product},  {"FloorDiv", Kind::quotient},
      {"Div", Kind::quotient}, {"FloorMod", Kind::remainder}, {"Mod", Kind::remainder}};
  if (depth > deepest_expression || map.nodes.size() > most_index_nodes) throw Unread{"an index that is too long"};
  const std::string kind = graph.kind(node);
  IndexMap::Node added;
  if (const auto variable = variables.find(node); variable != variables.end()) {
    added = {Kind::index, variable->second};
  } else if (kind == "IntImm") {
    added = {Kind::number, graph.integer(node)};
    if (added.number > largest_number || added.number < -largest_number) throw Unread{"an index out of range"};
  } else if (const auto operation = operations.find(kind); operation != operations.end()) {
    added.kind = operation->second;
    added.a = add_index(graph, graph.to(node, "a"), variables, map, depth + 1);
    added.b = add_index(graph, graph.to(node, "b"), variables, map, depth + 1);
  } else {
    throw Unread{"an index with " + kind};
  }
  map.nodes.push_back(added);
  return int(map.nodes.size()) - 1;
}

class Reader {
 public:
  explicit Reader(const Graph& graph) : graph_(graph) {}

  TirFunction read() {
    read_parameters();
    statement(body_, {});
    if (function_.blocks.empty()) throw Unread{"a function without blocks"};
    std::set<int> written;
    for (const Stage& stage : computation().stages) written.insert(stage.tensor);
    for (const int tensor : parameters_) {
      Tensor& parameter = computation().tensors[std::size_t(tensor)];
      if (written.contains(tensor)) parameter.role = Role::output;
    }
    drop_dimensions();
    try {
      function_.computation = checked(std::move(function_.computation), "module");
    } catch (const base::UserError&) {
      throw Unread{"a function beyond index expressions"};
    }
    return std::move(function_);
  }

 private:
  Computation& computation() { return function_.computation; }

  // Parts of a graph may be shared: as a tree it may be of any size.
  void visit() const {
    if (++visits_ > most_visits) throw Unread{"a function that is too long"};
  }

  // Letters, digits and '_'; each once, and none of the language's own.
  std::string name_for(std::string_view text) {
    std::string name;
    for (const char c : text) name += std::isalnum((unsigned char)(c)) != 0 ? c : '_';
    if (name.empty() || std::isalpha((unsigned char)(name[0])) == 0) name = "t" + name;
    name.resize(std::min<std::size_t>(name.size(), 60));
    return name;
  }
  std::string free_name(std::string_view text, const std::set<std::string>& taken) {
    static const std::set<std::string, std::less<>> words = {"input",     "constant", "literal", "output",
                                                             "where",     "pad",      "exact",   "inf",
#define X(name, operands, sign, counted, types) #name,
                                                             GRAFT_OPS(X)
#undef X
    };
    std::string name = name_for(text);
    while (words.contains(name) || taken.contains(name) || tensor_names_.contains(name)) {
      name += '_';
      if (name.size() > longest_name) throw Unread{"names that repeat"};
    }
    return name;
  }

  // The tensor's number. In later releases a buffer is a variable with a buffer's type.
  int tensor_of(int buffer) {
    if (const auto known = tensors_.find(buffer); known != tensors_.end()) return known->second;
    const bool is_variable = graph_.kind(buffer) != "Buffer";
    const int described = is_variable ? graph_.to(buffer, "ty") : buffer;
    Tensor tensor;
    tensor.name = free_name(graph_.text(buffer, "name"), {});
    tensor_names_.insert(tensor.name);
    const std::string type = graph_.type(described);
    static const std::map<std::string, DType, std::less<>> types = {
        {"float32", DType::f32}, {"float64", DType::f64}, {"float16", DType::f16}, {"bfloat16", DType::bf16},
        {"int8", DType::i8},     {"uint8", DType::u8},    {"int32", DType::i32},   {"int64", DType::i64}};
    const auto found = types.find(type);
    if (found == types.end()) throw Unread{"a buffer of another type"};
    tensor.dtype = found->second;
    const std::vector<int> shape = graph_.list(described, "shape");
    if (shape.size() > most_loops) throw Unread{"a buffer of more dimensions than any real one has"};
    for (const int extent : shape) tensor.shape.push_back(extent_of(extent));
    computation().tensors.push_back(tensor);
    return tensors_[buffer] = int(computation().tensors.size()) - 1;
  }

  std::int64_t extent_of(int node) const {
    const std::int64_t extent = graph_.integer(node);
    if (extent < 1 || extent > largest_number) throw Unread{"an extent out of range"};
    return extent;
  }

  void read_parameters() {
    int function = graph_.root();
    if (graph_.kind(function) == "IRModule") {
      const std::vector<int> functions = graph_.list(function, "functions");
      if (functions.size() != 2) throw Unread{"a module of several functions"};
      function = functions[1];
    }
    if (graph_.kind(function) != "PrimFunc") throw Unread{"a module without a function of TIR"};
    std::map<int, int> buffers;
    if (graph_.has(function, "buffer_map")) {
      const std::vector<int> pairs = graph_.list(function, "buffer_map");
      for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) buffers[pairs[i]] = pairs[i + 1];
    }
    for (const int parameter : graph_.list(function, "params")) {
      const auto mapped = buffers.find(parameter);
      if (mapped == buffers.end() && graph_.kind(graph_.to(parameter, "ty", "type_annotation")) != "BufferType")
        throw Unread{"a parameter that is not a buffer"};
      parameters_.push_back(tensor_of(mapped != buffers.end() ? mapped->second : parameter));
      computation().tensors.back().role = Role::input;
    }
    if (parameters_.size() != computation().tensors.size()) throw Unread{"a parameter that is there twice"};
    const int attributes = graph_.to(function, "attrs");
    if (graph_.has(attributes, "__dict__")) {
      const int free = graph_.named(graph_.to(attributes, "__dict__"), "layout_free_buffers");
      if (free >= 0) {
        for (const int item : graph_.list(free)) {
          const std::int64_t position = graph_.integer(item);
          if (position < 0 || position >= std::int64_t(parameters_.size())) throw Unread{"a parameter that is missing"};
          computation().tensors[std::size_t(parameters_[std::size_t(position)])].role = Role::constant;
        }
      }
    }
    body_ = graph_.to(function, "body");
    if (graph_.kind(body_) == "BlockRealize") {  // the root
      const int block = graph_.to(body_, "block");
      if (graph_.list(block, "iter_vars").empty()) body_ = graph_.to(block, "body");
    }
  }

  struct Loop {
    int variable = 0;
    std::int64_t extent = 1;
  };

  void statement(int node, std::vector<Loop> loops, int depth = 0) {
    visit();
    if (depth > deepest_expression) throw Unread{"a statement that is nested too deep"};
    const std::string kind = graph_.kind(node);
    if (kind == "SeqStmt") {
      for (const int each : graph_.list(node, "seq")) statement(each, loops, depth + 1);
    } else if (kind == "For") {
      if (graph_.plain(node, "kind") != 0) throw Unread{"a loop that is scheduled"};
      const int least = graph_.to(node, "min");
      if (graph_.integer(least) != 0 || loops.size() == most_loops) throw Unread{"a loop that does not begin at 0"};
      loops.push_back({graph_.to(node, "loop_var"), extent_of(graph_.to(node, "extent"))});
      statement(graph_.to(node, "body"), std::move(loops), depth + 1);
    } else if (kind == "BlockRealize") {
      block(node, loops);
    } else {
      throw Unread{"a statement " + kind};
    }
  }

  void block(int realize, const std::vector<Loop>& loops) {
    const int block = graph_.to(realize, "block");
    const int predicate = graph_.to(realize, "predicate");
    if (graph_.kind(predicate) != "IntImm" || graph_.integer(predicate) != 1) throw Unread{"a block with a condition"};
    Stage stage;
    TirBlock added;
    added.name = graph_.text(block, "name_hint");
    added.loops.assign(loops.size(), -1);
    const std::size_t spatial = add_axes(realize, loops, stage, added);
    ranges_.clear();
    for (const Axis& axis : stage.axes) ranges_.push_back({0, axis.extent - 1});

    const int store = graph_.to(block, "body");
    if (graph_.kind(store) != "BufferStore") throw Unread{"a block of several statements"};
    stage.tensor = tensor_of(graph_.to(store, "buffer"));
    const std::vector<Affine> target = indices(graph_.list(store, "indices"));
    bool is_plain = target.size() == spatial;
    for (std::size_t d = 0; is_plain && d < target.size(); ++d) is_plain = target[d] == Affine::variable(int(d));
    if (!is_plain) throw Unread{"a block that does not store at its axes"};

    int value = graph_.to(store, "value");
    if (spatial < stage.axes.size()) {
      value = summand_of(value, target, stage);
      check_start(graph_.to(block, "init"), stage, target);
    }
    stage.value = expression(value, 0);
    for (const Access& load : stage.value.loads)
      if (load.tensor == stage.tensor) throw Unread{"a block that reads what it stores"};
    added.stage = int(computation().stages.size());
    computation().stages.push_back(std::move(stage));
    function_.blocks.push_back(std::move(added));
  }

  // Axes in the order of the block, spatial ones first; their number.
  std::size_t add_axes(int realize, const std::vector<Loop>& loops, Stage& stage, TirBlock& added) {
    const std::vector<int> iterators = graph_.list(graph_.to(realize, "block"), "iter_vars"),
                           values = graph_.list(realize, "iter_values");
    if (iterators.size() != values.size() || iterators.size() != loops.size())
      throw Unread{"a block whose axes are not its loops"};
    std::set<std::string> axis_names;
    variables_.clear();
    std::size_t spatial = 0;
    for (const bool reduced : {false, true}) {
      for (std::size_t i = 0; i < iterators.size(); ++i) {
        const std::int64_t type = graph_.plain(iterators[i], "iter_type");
        if (type != 0 && type != 2) throw Unread{"an axis that is neither parallel nor reduced"};
        if ((type == 2) != reduced) continue;
        const int variable = graph_.to(iterators[i], "var"), domain = graph_.to(iterators[i], "dom");
        const std::int64_t extent = extent_of(graph_.to(domain, "extent"));
        const auto loop =
            std::find_if(loops.begin(), loops.end(), [&](const Loop& l) { return l.variable == values[i]; });
        const std::int64_t least = graph_.integer(graph_.to(domain, "min"));
        const bool is_whole = loop != loops.end() && loop->extent == extent && least == 0;
        if (!is_whole || added.loops[std::size_t(loop - loops.begin())] >= 0)
          throw Unread{"a block whose axes are not its loops"};
        added.loops[std::size_t(loop - loops.begin())] = int(stage.axes.size());
        std::string name = graph_.text(variable, "name");
        if (name.starts_with("v_") && name.size() > 2) name.erase(0, 2);
        variables_[variable] = int(stage.axes.size());
        stage.axes.push_back({free_name(name, axis_names), extent});
        axis_names.insert(stage.axes.back().name);
        if (!reduced) ++spatial;
      }
    }
    return spatial;
  }

  // What a reduction combines with what is stored at `target`.
  int summand_of(int value, const std::vector<Affine>& target, Stage& stage) {
    static const std::map<std::string, Combine, std::less<>> combines = {
        {"Add", Combine::sum}, {"Max", Combine::max}, {"Min", Combine::min}};
    const auto combine = combines.find(graph_.kind(value));
    if (combine == combines.end()) throw Unread{"a reduction other than a sum, a largest or a least"};
    const int own = graph_.to(value, "a");
    if (graph_.kind(own) != "BufferLoad" || tensor_of(graph_.to(own, "buffer", "source")) != stage.tensor ||
        indices(graph_.list(own, "indices")) != target)
      throw Unread{"a reduction of something else"};
    stage.combine = combine->second;
    return graph_.to(value, "b");
  }

  // The start value of a reduction; TIR has the least finite number where ours is infinite.
  void check_start(int init, const Stage& stage, const std::vector<Affine>& target) {
    if (graph_.kind(init) != "BufferStore") throw Unread{"a reduction without a start"};
    if (tensor_of(graph_.to(init, "buffer")) != stage.tensor || indices(graph_.list(init, "indices")) != target)
      throw Unread{"a start of something else"};
    int value = graph_.to(init, "value");
    if (graph_.kind(value) != "FloatImm" && graph_.kind(value) != "IntImm")
      throw Unread{"a start that is not a number"};
    const DType type = function_.computation.tensors[std::size_t(stage.tensor)].dtype;
    const double start = graph_.number(value), wanted = kept(identity_of(stage.combine), type);
    constexpr double most = std::numeric_limits<float>::max();
    if (start != wanted && !(stage.combine == Combine::max && start <= -most) &&
        !(stage.combine == Combine::min && start >= most))
      throw Unread{"a reduction that starts elsewhere"};
  }

  Affine index(int node) const {
    visit();
    IndexMap map;
    map.dimensions = ranges_.size();
    map.results.push_back(add_index(graph_, node, variables_, map));
    std::vector<Affine> axes;
    for (int axis = 0; axis < int(ranges_.size()); ++axis) axes.push_back(Affine::variable(axis));
    const Mapped form = mapped(map, axes, ranges_);
    if (!form.is_affine) throw Unread{"an index that is not affine"};
    return form.results.front();
  }
  std::vector<Affine> indices(const std::vector<int>& nodes) const {
    std::vector<Affine> forms;
    for (const int node : nodes) forms.push_back(index(node));
    return forms;
  }

  Access access(int load) {
    Access access;
    access.tensor = tensor_of(graph_.to(load, "buffer", "source"));
    access.index = indices(graph_.list(load, "indices"));
    if (access.index.size() != computation().tensors[std::size_t(access.tensor)].shape.size())
      throw Unread{"a load of another rank"};
    return access;
  }

  // The forms that a condition wants to be at least 0.
  void conditions(int node, std::vector<Affine>& wanted, int depth) const {
    visit();
    if (depth > deepest_expression) throw Unread{"a condition that is nested too deep"};
    const std::string kind = graph_.kind(node);
    const bool is_call = kind == "Call";
    if (kind == "And" || (is_call && graph_.operation(node) == "likely")) {
      const std::vector<int> parts =
          is_call ? graph_.list(node, "args") : std::vector<int>{graph_.to(node, "a"), graph_.to(node, "b")};
      for (const int part : parts) conditions(part, wanted, depth + 1);
    } else if (kind == "LE" || kind == "LT") {
      wanted.push_back(index(graph_.to(node, "b")) + index(graph_.to(node, "a")) * -1 + Affine(kind == "LT" ? -1 : 0));
    } else if (kind == "GE" || kind == "GT") {
      wanted.push_back(index(graph_.to(node, "a")) + index(graph_.to(node, "b")) * -1 + Affine(kind == "GT" ? -1 : 0));
    } else {
      throw Unread{"a condition with " + kind};
    }
  }

  // if_then_else(is inside, X[..], number): a padded load, if the condition is about the tensor's borders.
  Value padded(const std::vector<int>& arguments) {
    if (arguments.size() != 3 || graph_.kind(arguments[1]) != "BufferLoad") throw Unread{"a condition around no load"};
    const std::string outside = graph_.kind(arguments[2]);
    if (outside != "FloatImm" && outside != "IntImm") throw Unread{"a padding that is not a number"};
    Access load = access(arguments[1]);
    std::vector<Affine> wanted;
    conditions(arguments[0], wanted, 0);
    const std::vector<std::int64_t>& shape = computation().tensors[std::size_t(load.tensor)].shape;
    std::vector<bool> is_met(wanted.size(), false);
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const Affine& form = load.index[d];
      const Interval range = codegen::range(form, ranges_);
      const Affine below = form, above = form * -1 + Affine(shape[d] - 1);
      const auto meet = [&](const Affine& bound) {
        bool found = false;
        for (std::size_t i = 0; i < wanted.size(); ++i) {
          if (!(wanted[i] == bound)) continue;
          found = is_met[i] = true;
        }
        return found;
      };
      const bool is_below = meet(below), is_above = meet(above);
      if ((range.low < 0 && !is_below) || (range.high >= shape[d] && !is_above))
        throw Unread{"a condition that is not a padding"};
      if (range.low < -largest_number || range.high > largest_number) throw Unread{"an index out of range"};
    }
    if (std::find(is_met.begin(), is_met.end(), false) != is_met.end())
      throw Unread{"a condition that is not a padding"};
    load.padded = true;
    load.outside = graph_.number(arguments[2]);
    return Value::load(std::move(load));
  }

  Value expression(int node, int depth) {
    visit();
    if (depth > deepest_expression) throw Unread{"an expression that is nested too deep"};
    const std::string kind = graph_.kind(node);
    if (kind == "FloatImm" || kind == "IntImm") return Value::constant(graph_.number(node));
    if (kind == "BufferLoad") return Value::load(access(node));
    static const std::map<std::string, Op, std::less<>> operations = {
        {"Add", Op::add}, {"Sub", Op::sub}, {"Mul", Op::mul}, {"Div", Op::div}, {"Max", Op::max}, {"Min", Op::min}};
    if (const auto found = operations.find(kind); found != operations.end())
      return Value::apply(found->second, expression(graph_.to(node, "a"), depth + 1),
                          expression(graph_.to(node, "b"), depth + 1));
    if (kind != "Call") throw Unread{"an expression with " + kind};
    const std::string name = graph_.operation(node);
    const std::vector<int> arguments = graph_.list(node, "args");
    if (name == "if_then_else") return padded(arguments);
    static const std::map<std::string, Op, std::less<>> functions = {
        {"exp", Op::exp},   {"sqrt", Op::sqrt},       {"rsqrt", Op::rsqrt}, {"log", Op::log}, {"pow", Op::pow},
        {"tanh", Op::tanh}, {"sigmoid", Op::sigmoid}, {"erf", Op::erf},     {"fabs", Op::abs}};
    const auto found = functions.find(name);
    if (found == functions.end() || arguments.size() != std::size_t(operands_of(found->second)))
      throw Unread{"a call of " + name};
    if (arguments.size() == 1) return Value::apply(found->second, expression(arguments[0], depth + 1));
    return Value::apply(found->second, expression(arguments[0], depth + 1), expression(arguments[1], depth + 1));
  }

  void drop_dimensions() {
    for (const int tensor : parameters_) {
      Tensor& parameter = computation().tensors[std::size_t(tensor)];
      if (parameter.role == Role::output) continue;
      for (std::size_t d = parameter.shape.size(); d-- > 0 && parameter.shape.size() > 1;) {
        if (parameter.shape[d] != 1) continue;
        bool is_moved = false;
        const auto each_load = [&](auto visit) {
          for (Stage& stage : computation().stages)
            for (Access& load : stage.value.loads)
              if (load.tensor == tensor) visit(load);
        };
        each_load([&](Access& load) { is_moved = is_moved || !(load.index[d] == Affine(0)); });
        if (is_moved) continue;
        parameter.shape.erase(parameter.shape.begin() + std::ptrdiff_t(d));
        each_load([&](Access& load) { load.index.erase(load.index.begin() + std::ptrdiff_t(d)); });
      }
    }
  }

  const Graph& graph_;
  TirFunction function_;
  int body_ = 0;
  std::vector<int> parameters_;
  std::map<int, int> tensors_;  // by node of the buffer
  std::set<std::string> tensor_names_;
  std::map<int, int> variables_;  // axes of the present block
  std::vector<Interval> ranges_;
  mutable int visits_ = 0;
};

}  // namespace

Result<TirFunction> tir_function(std::string_view module) {
  try {
    if (module.size() > most_bytes) throw Unread{"a module of more bytes than are read"};
    // A length, then JSON.
    const std::string bytes = decoded(module);
    const Graph graph(std::string_view(bytes).substr(std::min<std::size_t>(bytes.size(), 8)));
    return Reader(graph).read();
  } catch (const Unread& unread) {
    return Reason{unread.why};
  } catch (const base::UserError&) {  // a field of another type
    return Reason{"a module that is not a graph of nodes"};
  }
}

Result<IndexMap> index_map(std::string_view json) {
  try {
    const Graph graph(json);
    if (graph.kind(graph.root()) != "IndexMap") throw Unread{"something else than a map of indices"};
    IndexMap map;
    std::map<int, int> variables;
    for (const int variable : graph.list(graph.root(), "initial_indices")) variables[variable] = int(map.dimensions++);
    for (const int result : graph.list(graph.root(), "final_indices"))
      map.results.push_back(add_index(graph, result, variables, map));
    return map;
  } catch (const Unread& unread) {
    return Reason{unread.why};
  } catch (const base::UserError&) {
    return Reason{"something else than a map of indices"};
  }
}

Mapped mapped(const IndexMap& map, const std::vector<Affine>& index, const std::vector<Interval>& ranges) {
  using Kind = IndexMap::Kind;
  std::vector<Affine> forms;
  const auto failed = [](Affine rest = {}, std::int64_t divisor = 0) {
    return Mapped{false, {}, std::move(rest), divisor};
  };
  if (index.size() != map.dimensions) return failed();
  for (const IndexMap::Node& node : map.nodes) {
    const Affine a = node.a >= 0 ? forms[std::size_t(node.a)] : Affine();
    const Affine b = node.b >= 0 ? forms[std::size_t(node.b)] : Affine();
    Affine form;
    switch (node.kind) {
      case Kind::number:
        form = node.number;
        break;
      case Kind::index:
        form = index[std::size_t(node.number)];
        break;
      case Kind::sum:
        form = a + b;
        break;
      case Kind::difference:
        form = a + b * -1;
        break;
      case Kind::product:
        if (!a.is_constant() && !b.is_constant()) return failed();
        form = a.is_constant() ? b * a.constant : a * b.constant;
        break;
      case Kind::quotient:
      case Kind::remainder: {
        if (!b.is_constant() || b.constant <= 0) return failed();
        const std::int64_t by = b.constant, rest = ((a.constant % by) + by) % by;
        Affine quotient((a.constant - rest) / by), remainder(rest);
        for (const Term& term : a.terms) {
          const bool divides = term.coefficient % by == 0;
          (divides ? quotient : remainder) +=
              Affine::variable(term.variable, divides ? term.coefficient / by : term.coefficient);
        }
        const Interval range = codegen::range(remainder, ranges);
        if (range.low < 0 || range.high >= by) return failed(remainder, by);
        form = node.kind == Kind::quotient ? quotient : remainder;
        break;
      }
    }
    const auto is_large = [](std::int64_t number) { return number > largest_number || number < -largest_number; };
    bool too_large = is_large(form.constant) || form.terms.size() > most_loops;
    for (const Term& term : form.terms) too_large = too_large || is_large(term.coefficient);
    if (too_large) return failed();
    forms.push_back(std::move(form));
  }
  Mapped result;
  for (const int node : map.results) result.results.push_back(forms[std::size_t(node)]);
  return result;
}

}  // namespace graft::codegen
