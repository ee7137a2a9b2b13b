// Quantised operators as integers: groups of DequantizeLinear, an operator of floating point and QuantizeLinear become
// the operator of integers that they stand for, and zero points of constant weights go into the weights.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/fold.h"

namespace graft::graph {
namespace {

// Values of a graph, and what may be asked of them and their nodes.
class Values {
 public:
  explicit Values(const Graph& graph) : graph_(graph), writer_(graph.values.size(), -1), readers_(graph.values.size()) {
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      for (const int operand : graph.nodes[n].operands)
        if (operand >= 0) readers_[std::size_t(operand)].push_back(int(n));
      for (const int result : graph.nodes[n].results)
        if (result >= 0) writer_[std::size_t(result)] = int(n);
    }
    for (const int output : graph.outputs) readers_[std::size_t(output)].push_back(-1);
  }
  // The node of this operation that computes a value; nullptr if it is another one, or none.
  const Node* writer(int value, std::string_view operation) const {
    if (value < 0 || writer_[std::size_t(value)] < 0) return nullptr;
    const Node& node = graph_.nodes[std::size_t(writer_[std::size_t(value)])];
    return node.operation == operation ? &node : nullptr;
  }
  int only_reader(int value) const {
    return readers_[std::size_t(value)].size() == 1 ? readers_[std::size_t(value)].front() : -1;
  }
  Known known(int value) const { return value < 0 ? nullptr : graph_.values[std::size_t(value)].known; }

 private:
  const Graph& graph_;
  std::vector<int> writer_;
  std::vector<std::vector<int>> readers_;  // -1: the graph's outputs
};

int operand_of(const Node& node, std::size_t number) {
  return number < node.operands.size() ? node.operands[number] : -1;
}

bool has_attributes(const Node& node, std::initializer_list<std::string_view> allowed) {
  return std::all_of(node.attributes.begin(), node.attributes.end(), [&](const auto& attribute) {
    return std::find(allowed.begin(), allowed.end(), attribute.first) != allowed.end();
  });
}

// What integers stand for: x, scale, zero point (-1: 0), as values.
struct Quantised {
  int integers = -1, scale = -1, zero = -1;
  std::int64_t axis = 1;  // of scales of channels
};

class Integers {
 public:
  explicit Integers(Graph graph) : graph_(std::move(graph)), values_(graph_) {}

  Graph replaced() {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) replace(n);
    return std::move(graph_);
  }

 private:
  std::optional<Quantised> operand(const Node& node, std::size_t number) const {
    const Node* from = values_.writer(operand_of(node, number), "DequantizeLinear");
    if (from == nullptr || !has_attributes(*from, {"axis"})) return std::nullopt;
    Quantised result{from->operands[0], operand_of(*from, 1), operand_of(*from, 2)};
    if (const auto axis = from->attributes.find("axis"); axis != from->attributes.end())
      if (const auto* number_of = std::get_if<std::int64_t>(&axis->second)) result.axis = *number_of;
    if (!values_.known(result.scale) || values_.known(result.scale)->type != DType::f32) return std::nullopt;
    if (result.zero >= 0 && !values_.known(result.zero)) return std::nullopt;
    return result;
  }
  bool is_one(const Quantised& of) const { return values_.known(of.scale)->size() == 1; }
  static bool is_byte(DType type) { return type == DType::u8 || type == DType::i8; }
  // The type of the zero point; u8 if it is left out.
  DType type_of(const Quantised& of) const { return of.zero < 0 ? DType::u8 : values_.known(of.zero)->type; }
  bool is_same(int a, int b) const {
    return a == b || (a >= 0 && b >= 0 && values_.known(a)->type == values_.known(b)->type &&
                      values_.known(a)->bytes == values_.known(b)->bytes);
  }

  // What the only reader of the node's result makes of it: QuantizeLinear, or one after a Relu that it leaves nothing
  // to do. `last`: that node.
  std::optional<Quantised> result(const Node& node, int& last) const {
    if (node.results.size() != 1 || node.results[0] < 0) return std::nullopt;
    int reader = values_.only_reader(node.results[0]);
    bool has_relu = false;
    if (reader >= 0 && graph_.nodes[std::size_t(reader)].operation == "Relu") {
      has_relu = true;
      reader = values_.only_reader(graph_.nodes[std::size_t(reader)].results[0]);
    }
    if (reader < 0) return std::nullopt;
    const Node& to = graph_.nodes[std::size_t(reader)];
    if (to.operation != "QuantizeLinear" || !has_attributes(to, {"axis"})) return std::nullopt;
    const Quantised result{to.results[0], operand_of(to, 1), operand_of(to, 2)};
    const Known scale = values_.known(result.scale), zero = values_.known(result.zero);
    if (!scale || scale->type != DType::f32 || scale->size() != 1 || (result.zero >= 0 && !zero)) return std::nullopt;
    const DType type = type_of(result);
    if (!is_byte(type)) return std::nullopt;
    if (has_relu && (zero ? zero->number(0) : 0) != codegen::lowest(type)) return std::nullopt;
    last = reader;
    return result;
  }

  // A bias in 32 bits whose scale is the product of the others', as sums have it; -1: none. Nothing for another one.
  std::optional<int> bias(const Node& node, std::size_t number, const Quantised& x, const Quantised& w) const {
    if (operand_of(node, number) < 0) return -1;
    const auto of = operand(node, number);
    if (!of) return std::nullopt;
    const Known integers = values_.known(of->integers), scale = values_.known(of->scale);
    const Known of_x = values_.known(x.scale), of_w = values_.known(w.scale);
    if (!integers || integers->type != DType::i32) return std::nullopt;
    if (of->zero >= 0) {
      const Known zero = values_.known(of->zero);
      for (std::size_t e = 0; e < zero->size(); ++e)
        if (zero->number(e) != 0) return std::nullopt;
    }
    for (std::size_t e = 0; e < std::max(scale->size(), of_w->size()); ++e) {
      const auto at = [&](const Known& array) { return float(array->number(array->size() == 1 ? 0 : e)); };
      if ((scale->size() > 1 && e >= scale->size()) || (of_w->size() > 1 && e >= of_w->size()) ||
          at(scale) != at(of_x) * at(of_w))
        return std::nullopt;
    }
    return of->integers;
  }

  // A scale for each column of a constant matrix.
  bool is_by_column(const Quantised& of) const {
    const Known integers = values_.known(of.integers);
    return integers && integers->shape.size() == 2 && (of.axis == 1 || of.axis == -1) &&
           values_.known(of.scale)->shape == Shape{integers->shape.back()};
  }

  // The node of integers takes the place of the last one of its group; the others are not needed any more.
  void replace(std::size_t number) {
    const Node& node = graph_.nodes[number];
    int last = int(number);
    const auto x = operand(node, 0);
    if (!x || !is_one(*x)) return;
    const auto y = result(node, last);
    if (!y) return replace_in_floats(node, *x, graph_.nodes[number]);
    // Operators that move and compare elements do the same to integers of one scale.
    constexpr std::string_view moving[] = {"Flatten", "MaxPool", "Reshape", "Squeeze", "Transpose", "Unsqueeze"};
    Node made{.name = node.name, .operation = {}, .attributes = node.attributes, .operands = {}, .results = {}};
    if (std::find(std::begin(moving), std::end(moving), node.operation) != std::end(moving)) {
      if (!is_same(x->scale, y->scale) || !is_same(x->zero, y->zero) || !is_byte(type_of(*x))) return;
      made.operation = node.operation;
      made.operands = node.operands;
      made.operands[0] = x->integers;
    } else if (node.operation == "GlobalAveragePool") {
      made.operation = "com.microsoft.QLinearGlobalAveragePool";
      made.operands = {x->integers, x->scale, x->zero, y->scale, y->zero};
    } else if (!of_two(node, *x, *y, made)) {
      return;
    }
    Node& end = graph_.nodes[std::size_t(last)];
    made.results = end.results;
    end = std::move(made);
  }

  // Products whose result stays in floating point: the sum of integers, times both scales.
  void replace_in_floats(const Node& node, const Quantised& x, Node& by) const {
    const auto w = operand(node, 1);
    if (!w || !is_byte(type_of(x)) || !is_byte(type_of(*w)) || node.results.size() != 1) return;
    Node made{
        .name = node.name, .operation = {}, .attributes = node.attributes, .operands = {}, .results = node.results};
    if (node.operation == "MatMul" && (is_one(*w) || is_by_column(*w))) {
      made.operation = "com.microsoft.MatMulIntegerToFloat";
      made.operands = {x.integers, w->integers, x.scale, w->scale, x.zero, w->zero};
    } else if (!general(node, x, *w, made)) {
      return;
    }
    by = std::move(made);
  }

  // A Gemm without what follows from its result.
  bool general(const Node& node, const Quantised& x, const Quantised& w, Node& made) const {
    if (node.operation != "Gemm") return false;
    const auto sum = bias(node, 2, x, w);
    const auto beta = node.attributes.find("beta"), turned = node.attributes.find("transB");
    const auto is = [](const Attribute& attribute, auto number) {
      const auto* value = std::get_if<decltype(number)>(&attribute);
      return value != nullptr && *value == number;
    };
    if (!sum || (beta != node.attributes.end() && !is(beta->second, 1.0))) return false;
    const bool is_turned = turned != node.attributes.end() && is(turned->second, std::int64_t(1));
    if (!is_one(w) && w.axis != (is_turned ? 0 : 1)) return false;
    made.operation = "com.microsoft.QGemm";
    made.attributes.erase("beta");
    made.operands = {x.integers, x.scale, x.zero, w.integers, w.scale, w.zero, *sum};
    return true;
  }

  bool of_two(const Node& node, const Quantised& x, const Quantised& y, Node& made) const {
    const auto w = operand(node, 1);
    if (!w) return false;
    const bool is_sum = node.operation == "Add", is_multiplication = node.operation == "Mul";
    if (is_sum || is_multiplication) {
      if (!is_one(*w) || type_of(x) != type_of(*w) || type_of(x) != type_of(y) || !is_byte(type_of(x))) return false;
      made.operation = is_sum ? "com.microsoft.QLinearAdd" : "com.microsoft.QLinearMul";
      made.operands = {x.integers, x.scale, x.zero, w->integers, w->scale, w->zero, y.scale, y.zero};
      return true;
    }
    if (!is_byte(type_of(x)) || !is_byte(type_of(*w))) return false;
    made.operands = {x.integers, x.scale, x.zero, w->integers, w->scale, w->zero, y.scale, y.zero};
    if (node.operation == "MatMul") {
      made.operation = "QLinearMatMul";
      return is_one(*w) || is_by_column(*w);
    }
    if (node.operation == "Conv") {
      const auto sum = bias(node, 2, x, *w);
      made.operation = "QLinearConv";
      if (sum && *sum >= 0) made.operands.push_back(*sum);
      return sum && (is_one(*w) || w->axis == 0);
    }
    if (!general(node, x, *w, made)) return false;
    made.operands.insert(made.operands.end(), {y.scale, y.zero});
    return true;
  }

  Graph graph_;
  Values values_;
};

// Null without the attribute, or if it is of another kind.
template <class Kind>
const Kind* attribute_of(const Node& node, const std::string& name) {
  const auto found = node.attributes.find(name);
  return found == node.attributes.end() ? nullptr : std::get_if<Kind>(&found->second);
}

// Where an operator has its weights and their zero point, and the dimension of the weights along which these vary.
struct Weights {
  std::size_t operand, zero;
  bool is_first = false;  // the first dimension; else the last
};
std::optional<Weights> weights_of(const Node& node) {
  if (node.operation == "ConvInteger") return Weights{1, 3, true};
  if (node.operation == "QLinearConv") return Weights{3, 5, true};
  if (node.operation == "MatMulInteger") return Weights{1, 3};
  if (node.operation == "QLinearMatMul") return Weights{3, 5};
  if (node.operation == "com.microsoft.QGemm") {
    const auto* const turned = attribute_of<std::int64_t>(node, "transB");
    return Weights{3, 5, turned != nullptr && *turned != 0};
  }
  return std::nullopt;
}

constexpr std::int64_t summed_bytes = 4;  // by a dot product

// Lengths of windows, pads or dilations; `otherwise` without the attribute.
std::vector<std::int64_t> lengths_of(const Node& node, const std::string& name, std::vector<std::int64_t> otherwise) {
  const auto* const list = attribute_of<std::vector<std::int64_t>>(node, name);
  return list != nullptr && list->size() == otherwise.size() ? *list : otherwise;
}

// Whether a window of `dimensions` may be longer at its end: one group, no dilation of it, pads that are written down.
bool takes_longer_windows(const Node& node, std::size_t dimensions) {
  const auto* const groups = attribute_of<std::int64_t>(node, "group");
  const auto* const mode = attribute_of<std::string>(node, "auto_pad");
  return (groups == nullptr || *groups == 1) && (mode == nullptr || *mode == "NOTSET") &&
         lengths_of(node, "dilations", std::vector<std::int64_t>(dimensions, 1)).back() == 1;
}

// The array with zeros at the end of its last dimension.
Known widened(const Array& array, std::int64_t extent) {
  const std::vector<std::int64_t> numbers = array.integers();
  const std::int64_t own = array.shape.back();
  Shape shape = array.shape;
  shape.back() = extent;
  std::vector<std::int64_t> all(std::size_t(elements_of(shape)));
  for (std::size_t e = 0; e < numbers.size(); ++e)
    all[e / std::size_t(own) * std::size_t(extent) + e % std::size_t(own)] = numbers[e];
  return known(array.type, shape, all);
}

}  // namespace

Graph with_integer_operators(Graph graph) {
  return Integers(std::move(graph)).replaced();
}

Graph with_zero_points_in_weights(Graph graph) {
  Values values(graph);
  std::map<std::pair<int, int>, int> known;  // by weights and zero point
  for (Node& node : graph.nodes) {
    const auto where = weights_of(node);
    if (!where) continue;
    const int from = operand_of(node, where->operand), zero_from = operand_of(node, where->zero);
    const Known weights = values.known(from), zero = values.known(zero_from);
    if (!weights || !zero || zero->size() == 0 || weights->shape.empty()) continue;
    const std::vector<std::int64_t> zeros = zero->integers();
    if (std::all_of(zeros.begin(), zeros.end(), [](std::int64_t each) { return each == 0; })) continue;
    const std::size_t count = std::size_t(where->is_first ? weights->shape.front() : weights->shape.back());
    if (zeros.size() != 1 && (zero->shape.size() != 1 || zeros.size() != count)) continue;
    std::vector<std::int64_t> shifted = weights->integers();
    const std::size_t inner = shifted.size() / std::max<std::size_t>(1, count);
    for (std::size_t e = 0; e < shifted.size(); ++e)
      shifted[e] -= zeros[zeros.size() == 1 ? 0 : where->is_first ? e / inner : e % count];
    const auto [least, largest] = std::minmax_element(shifted.begin(), shifted.end());
    const auto fits = [&](DType type) {
      return least == shifted.end() ||
             (double(*least) >= codegen::lowest(type) && double(*largest) <= codegen::highest(type));
    };
    if (!fits(DType::i8) && !fits(DType::u8)) continue;
    const auto [made, is_new] = known.emplace(std::pair(from, zero_from), -1);
    if (is_new)
      made->second = add_constant(graph, graph.values[std::size_t(from)].name + ".shifted",
                                  graph::known(fits(DType::i8) ? DType::i8 : DType::u8, weights->shape, shifted));
    node.operands[where->operand] = made->second;
    node.operands[where->zero] = -1;
  }
  return graph;
}

Graph with_windows_in_groups(Graph graph) {
  Values values(graph);
  std::map<int, int> made;  // by weights
  for (Node& node : graph.nodes) {
    if (node.operation != "ConvInteger" && node.operation != "QLinearConv") continue;
    const auto where = weights_of(node);
    const int from = operand_of(node, where->operand), zero_from = operand_of(node, where->zero);
    const Known weights = values.known(from), zero = zero_from < 0 ? nullptr : values.known(zero_from);
    if (!weights || weights->shape.size() < 3 || weights->size() == 0 || (zero_from >= 0 && !zero)) continue;
    if (zero && std::any_of(zero->bytes.begin(), zero->bytes.end(), [](char each) { return each != 0; })) continue;
    const std::size_t dimensions = weights->shape.size() - 2;
    const std::int64_t width = weights->shape.back();
    const std::int64_t wide = (width + summed_bytes - 1) / summed_bytes * summed_bytes;
    if (width == 1 || width == wide || weights->shape[1] % summed_bytes == 0 || !takes_longer_windows(node, dimensions))
      continue;
    const auto [place, is_new] = made.emplace(from, -1);
    if (is_new)
      place->second = add_constant(graph, graph.values[std::size_t(from)].name + ".widened", widened(*weights, wide));
    node.operands[where->operand] = place->second;
    std::vector<std::int64_t> pads = lengths_of(node, "pads", std::vector<std::int64_t>(2 * dimensions, 0));
    pads.back() += wide - width;
    node.attributes["pads"] = pads;
    if (node.attributes.contains("kernel_shape")) {
      Shape kernel(weights->shape.begin() + 2, weights->shape.end());
      kernel.back() = wide;
      node.attributes["kernel_shape"] = kernel;
    }
  }
  return graph;
}

}  // namespace graft::graph
