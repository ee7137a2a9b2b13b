// Scales and shifts of channels: batch normalisation, and products and sums with a number for each channel.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/fold.h"

namespace graft::graph {
namespace {

// Which dimension of a node's weights (its operand 1) is that of the result's channels, and how: group g of a
// transposed convolution has the rows from g * rows / groups on, and the channels of each group are numbered from 0.
struct Channels {
  int dimension = 0;
  std::int64_t groups = 1;
};

std::optional<Channels> channels_of(const Node& node) {
  const auto integer = [&](const std::string& name, std::int64_t otherwise) {
    const auto found = node.attributes.find(name);
    const auto* value = found == node.attributes.end() ? nullptr : std::get_if<std::int64_t>(&found->second);
    return value ? *value : otherwise;
  };
  if (node.operation == "Conv") return Channels{0, 1};
  if (node.operation == "ConvTranspose") return Channels{1, integer("group", 1)};
  return std::nullopt;
}

// y = factor * x + sum, by channel.
struct Affine {
  int operand = -1;  // x, a value
  std::vector<double> factor, sum;
};

class Scales {
 public:
  explicit Scales(Graph graph)
      : graph_(std::move(graph)), readers_(graph_.values.size()), writer_(graph_.values.size(), -1) {
    for (const Node& node : graph_.nodes)
      for (const int operand : node.operands)
        if (operand >= 0) ++readers_[std::size_t(operand)];
    for (const int output : graph_.outputs) ++readers_[std::size_t(output)];
  }

  Graph moved() {
    for (Node& node : std::exchange(graph_.nodes, {})) {
      const auto affine = affine_of(node);
      if (affine && into_weights(*affine, node.results[0])) continue;
      if (affine && node.operation == "BatchNormalization")
        write_out(*affine, node);
      else
        keep(std::move(node));
    }
    return std::move(graph_);
  }

 private:
  const Value& value(int number) const { return graph_.values[std::size_t(number)]; }
  Known known(const Node& node, std::size_t operand) const {
    if (operand >= node.operands.size() || node.operands[operand] < 0) return nullptr;
    return value(node.operands[operand]).known;
  }
  void keep(Node node) {
    for (const int result : node.results)
      if (result >= 0) writer_[std::size_t(result)] = int(graph_.nodes.size());
    graph_.nodes.push_back(std::move(node));
  }
  int constant(const std::string& name, Known array) {
    readers_.push_back(1), writer_.push_back(-1);
    return add_constant(graph_, name, std::move(array));
  }

  // A normalisation has f = scale / sqrt(variance + epsilon), and the sum shift - mean * f.
  std::optional<Affine> normalisation(const Node& node) const {
    const Known scale = known(node, 1), shift = known(node, 2), mean = known(node, 3), variance = known(node, 4);
    if (!scale || !shift || !mean || !variance) return std::nullopt;
    const auto given = node.attributes.find("epsilon");
    const double epsilon = given == node.attributes.end() ? double(1e-5f) : std::get<double>(given->second);
    Affine affine{node.operands[0], {}, {}};
    for (std::size_t c = 0; c < scale->size(); ++c) {
      affine.factor.push_back(scale->number(c) / std::sqrt(variance->number(c) + epsilon));
      affine.sum.push_back(shift->number(c) - mean->number(c) * affine.factor.back());
    }
    return affine;
  }

  // x * c, c * x, x + c, c + x, x - c, c - x, x / c.
  std::optional<Affine> arithmetic(const Node& node) const {
    const std::string& operation = node.operation;
    const bool is_product = operation == "Mul", is_sum = operation == "Add", is_difference = operation == "Sub";
    if (!is_product && !is_sum && !is_difference && operation != "Div") return std::nullopt;
    const bool is_first = known(node, 0) != nullptr;  // the constant
    const Known numbers = known(node, is_first ? 0 : 1);
    if (!numbers || (is_first && operation == "Div")) return std::nullopt;
    Affine affine{node.operands[is_first ? 1 : 0], {}, {}};
    const Value& x = value(affine.operand);
    if (!x.shape || x.shape->size() < 2 || value(node.results[0]).shape != x.shape) return std::nullopt;
    // One number, or one for each channel.
    const std::size_t rank = x.shape->size(), own = numbers->shape.size();
    const std::size_t channels = std::size_t((*x.shape)[1]);
    for (std::size_t d = 0; d < own; ++d)
      if (numbers->shape[d] != 1 && rank - own + d != 1) return std::nullopt;
    for (std::size_t c = 0; c < channels; ++c) {
      const double number = numbers->number(numbers->size() == 1 ? 0 : c);
      affine.factor.push_back(is_product ? number : is_sum ? 1 : is_difference ? (is_first ? -1 : 1) : 1 / number);
      affine.sum.push_back(is_sum ? number : is_difference ? (is_first ? number : -number) : 0);
    }
    return affine;
  }

  // Nothing for other nodes, other types, and factors that are not finite.
  std::optional<Affine> affine_of(const Node& node) const {
    if (node.results.empty() || node.results[0] < 0 || value(node.results[0]).type != DType::f32) return std::nullopt;
    auto affine = node.operation == "BatchNormalization" ? normalisation(node) : arithmetic(node);
    const auto finite = [](double number) { return std::isfinite(number); };
    if (!affine || !std::all_of(affine->factor.begin(), affine->factor.end(), finite) ||
        !std::all_of(affine->sum.begin(), affine->sum.end(), finite))
      return std::nullopt;
    return affine;
  }

  // With x = sum(w * input) + bias: the sum of w * factor, and the bias bias * factor + sum.
  bool into_weights(const Affine& affine, int result) {
    const int source = writer_[std::size_t(affine.operand)];
    if (source < 0 || readers_[std::size_t(affine.operand)] != 1) return false;
    const Node& product = graph_.nodes[std::size_t(source)];
    const auto channels = channels_of(product);
    const Known weights = known(product, 1), bias = known(product, 2);
    const bool has_bias = product.operands.size() > 2 && product.operands[2] >= 0;
    if (!channels || !weights || (has_bias && !bias)) return false;
    std::vector<double> sums;
    for (std::size_t c = 0; c < affine.sum.size(); ++c)
      sums.push_back((bias ? bias->number(c) : 0) * affine.factor[c] + affine.sum[c]);
    const std::size_t rows = std::size_t(weights->shape[0]), columns = std::size_t(weights->shape[1]);
    const std::size_t inner = weights->size() / std::max<std::size_t>(1, rows * columns);
    std::vector<double> scaled(weights->size());
    for (std::size_t e = 0; e < scaled.size(); ++e) {
      const std::size_t row = e / (columns * inner), column = e / inner % columns;
      const std::size_t group = row / std::max<std::size_t>(1, rows / std::size_t(channels->groups));
      scaled[e] = weights->number(e) * affine.factor[channels->dimension == 0 ? row : group * columns + column];
    }
    const std::string name = value(result).name;
    const int new_weights =
        constant(name + ".weights", graph::known(weights->type, weights->shape, codegen::Elements(scaled)));
    const int new_bias =
        constant(name + ".bias", graph::known(weights->type, {std::int64_t(sums.size())}, codegen::Elements(sums)));
    Node& changed = graph_.nodes[std::size_t(source)];
    changed.operands.resize(3, -1);
    changed.operands[1] = new_weights;
    changed.operands[2] = new_bias;
    changed.results[0] = result;
    writer_[std::size_t(result)] = source;
    return true;
  }

  void write_out(const Affine& affine, const Node& node) {
    const Value result = value(node.results[0]);
    Shape shape(result.shape->size() - 1, 1);
    shape[0] = std::int64_t(affine.factor.size());
    const int factor =
        constant(result.name + ".factor", graph::known(DType::f32, shape, codegen::Elements(affine.factor)));
    const int sum = constant(result.name + ".sum", graph::known(DType::f32, shape, codegen::Elements(affine.sum)));
    graph_.values.push_back({.name = result.name + ".scaled", .type = result.type, .shape = result.shape});
    readers_.push_back(1), writer_.push_back(-1);
    const int scaled = int(graph_.values.size()) - 1;
    keep({.name = node.name,
          .operation = "Mul",
          .attributes = {},
          .operands = {affine.operand, factor},
          .results = {scaled}});
    keep({.name = node.name,
          .operation = "Add",
          .attributes = {},
          .operands = {scaled, sum},
          .results = {node.results[0]}});
  }

  Graph graph_;
  std::vector<int> readers_;  // by value
  std::vector<int> writer_;   // by value: the node
};

}  // namespace

Graph with_scales_in_weights(Graph graph) {
  return Scales(std::move(graph)).moved();
}

}  // namespace graft::graph
