// Products with weights of few bits, as files have them, become products that read packed bytes
// (operators/few_bits.cpp): those of onnxruntime, and products with what DequantizeLinear makes of constants in blocks.
#include "graph/few_bits.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace graft::graph {
namespace {

constexpr std::int64_t least_block = 16;

// A number of an attribute; nothing for one of another type.
std::optional<std::int64_t> integer(const Node& node, const std::string& name, std::int64_t otherwise) {
  const auto found = node.attributes.find(name);
  if (found == node.attributes.end()) return otherwise;
  const auto* const number = std::get_if<std::int64_t>(&found->second);
  return number == nullptr ? std::nullopt : std::optional(*number);
}

bool is_number(const Node& node, const std::string& name, double otherwise, double wanted) {
  const auto found = node.attributes.find(name);
  if (found == node.attributes.end()) return otherwise == wanted;
  const auto* const number = std::get_if<double>(&found->second);
  return number != nullptr && *number == wanted;
}

int operand_of(const Node& node, std::size_t number) {
  return number < node.operands.size() ? node.operands[number] : -1;
}

// A matrix of few bits: `inner` times `columns` numbers, in blocks along the inner dimension.
struct Weights {
  std::int64_t inner = 0, columns = 0, block = 0, bits = 4;
  int packed = -1, scales = -1, zeros = -1;  // constants as MatMulNBits takes them
};

// Integers row by row, each row in bytes of its own.
std::string packed_rows(const std::vector<int>& numbers, std::int64_t in_row, std::int64_t bits) {
  const std::int64_t bytes = (in_row * bits + 7) / 8, rows = std::int64_t(numbers.size()) / in_row;
  std::string all(std::size_t(rows * bytes), '\0');
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t e = 0; e < in_row; ++e)
      all[std::size_t(row * bytes + e * bits / 8)] |= char(numbers[std::size_t(row * in_row + e)] << (e * bits % 8));
  return all;
}

class Products {
 public:
  explicit Products(Graph graph) : graph_(std::move(graph)), writer_(graph_.values.size(), -1) {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n)
      for (const int result : graph_.nodes[n].results)
        if (result >= 0) writer_[std::size_t(result)] = int(n);
  }

  Graph replaced(const FewBits& wanted) {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const std::optional<Product> found = product(graph_.nodes[n]);
      if (!found) continue;
      std::optional<Weights> weights = dequantised(found->weights, found->is_turned);
      if (!weights && wanted.block > 0) weights = stored(found->weights, found->is_turned, wanted.block);
      if (weights) replace(graph_.nodes[n], *found, *weights);
    }
    if (wanted.quantises_rows) quantise_rows();
    return std::move(graph_);
  }

 private:
  // A product of one operand with weights, whose columns are rows if `is_turned`.
  struct Product {
    int x = -1, weights = -1, bias = -1;
    bool is_turned = false;
  };

  std::optional<Product> product(const Node& node) const {
    if (node.operation == "MatMul" && node.operands.size() == 2)
      return Product{node.operands[0], node.operands[1], -1, false};
    if (node.operation != "Gemm" || node.operands.size() < 2) return std::nullopt;
    const std::optional<std::int64_t> turned = integer(node, "transB", 0);
    const Known bias = known(operand_of(node, 2));
    const bool is_plain = is_number(node, "alpha", 1, 1) && is_number(node, "beta", 1, 1) &&
                          integer(node, "transA", 0) == 0 && turned &&
                          (operand_of(node, 2) < 0 || (bias && bias->shape.size() == 1));
    if (!is_plain) return std::nullopt;
    return Product{node.operands[0], node.operands[1], operand_of(node, 2), *turned != 0};
  }

  Known known(int value) const { return value < 0 ? nullptr : graph_.values[std::size_t(value)].known; }
  const Node* writer(int value) const {
    return value < 0 || writer_[std::size_t(value)] < 0 ? nullptr
                                                        : &graph_.nodes[std::size_t(writer_[std::size_t(value)])];
  }

  // What DequantizeLinear gives in blocks along the inner dimension.
  std::optional<Weights> dequantised(int value, bool is_turned) {
    const Node* from = writer(value);
    if (from != nullptr && from->operation == "Transpose" && from->operands.size() == 1) {
      is_turned = !is_turned;
      from = writer(from->operands[0]);
    }
    if (from == nullptr || from->operation != "DequantizeLinear" || from->operands.size() < 2) return std::nullopt;
    const std::tuple key{from->results[0], is_turned};
    if (const auto found = weights_.find(key); found != weights_.end()) return found->second;
    const std::optional<std::int64_t> axis = integer(*from, "axis", 1), block = integer(*from, "block_size", 0);
    const Known numbers = known(from->operands[0]), scales = known(from->operands[1]),
                zeros = known(operand_of(*from, 2));
    const std::int64_t inner_axis = is_turned ? 1 : 0;
    const bool is_read = numbers && numbers->shape.size() == 2 && scales && scales->type == DType::f32 && axis &&
                         block && (*axis + 2) % 2 == inner_axis && (operand_of(*from, 2) < 0 || zeros) &&
                         (numbers->type == DType::u8 || numbers->type == DType::i8);
    if (!is_read || *block < least_block || (*block & (*block - 1)) != 0) return std::nullopt;
    Weights result{numbers->shape[std::size_t(inner_axis)], numbers->shape[std::size_t(1 - inner_axis)], *block};
    const Shape of_blocks =
        is_turned ? Shape{result.columns, result.inner / *block} : Shape{result.inner / *block, result.columns};
    if (result.inner == 0 || result.inner % *block != 0 || scales->shape != of_blocks ||
        (zeros && (zeros->shape != of_blocks || zeros->type != numbers->type)))
      return std::nullopt;
    pack(result, *numbers, *scales, zeros.get(), is_turned);
    return weights_.emplace(key, result).first->second;
  }

  // A constant of single precision in four bits.
  std::optional<Weights> stored(int value, bool is_turned, std::int64_t block) {
    if (const Node* from = writer(value);
        from != nullptr && from->operation == "Transpose" && from->operands.size() == 1) {
      is_turned = !is_turned;
      value = from->operands[0];
    }
    const std::tuple key{value, is_turned};
    if (const auto found = weights_.find(key); found != weights_.end()) return found->second;
    const Known numbers = known(value);
    if (!numbers || numbers->type != DType::f32 || numbers->shape.size() != 2) return std::nullopt;
    const std::int64_t inner_axis = is_turned ? 1 : 0;
    Weights result{numbers->shape[std::size_t(inner_axis)], numbers->shape[std::size_t(1 - inner_axis)], block};
    if (result.inner == 0 || result.inner % block != 0) return std::nullopt;
    const Matrix matrix(result, *numbers, is_turned);
    std::vector<double> scales;
    std::vector<int> all;
    for (std::int64_t n = 0; n < result.columns; ++n)
      for (std::int64_t begin = 0; begin < result.inner; begin += block) {
        double extreme = 0;
        for (std::int64_t k = begin; k < begin + block; ++k)
          if (std::abs(matrix.number(k, n)) > std::abs(extreme)) extreme = matrix.number(k, n);
        const double scale = double(float(extreme / -8));
        scales.push_back(scale);
        for (std::int64_t k = begin; k < begin + block; ++k)
          all.push_back(scale == 0 ? 8 : int(std::clamp(std::nearbyint(matrix.number(k, n) / scale) + 8, 0.0, 15.0)));
      }
    result.packed =
        constant(DType::u8, {result.columns, result.inner / block, block / 2}, packed_rows(all, result.inner, 4));
    result.scales = add_constant(
        graph_, unused_name(),
        graph::known(DType::f32, {result.columns, result.inner / block}, codegen::Elements(std::move(scales))));
    return weights_.emplace(key, result).first->second;
  }

  // A matrix of inner times columns as it is stored.
  struct Matrix {
    Matrix(const Weights& of, const Array& array, bool is_turned, std::int64_t block = 1)
        : array_(array), step_k_(is_turned ? 1 : of.columns), step_n_(is_turned ? of.inner / block : 1) {}
    double number(std::int64_t k, std::int64_t n) const {
      return array_.number(std::size_t(k * step_k_ + n * step_n_));
    }

   private:
    const Array& array_;
    std::int64_t step_k_, step_n_;
  };

  void pack(Weights& result, const Array& numbers, const Array& scales, const Array* zeros, bool is_turned) {
    const bool is_signed = numbers.type == DType::i8;
    const auto [least, most] = std::minmax_element(numbers.bytes.begin(), numbers.bytes.end(), [&](char a, char b) {
      return is_signed ? std::int8_t(a) < std::int8_t(b) : std::uint8_t(a) < std::uint8_t(b);
    });
    double low = is_signed ? std::int8_t(*least) : std::uint8_t(*least),
           high = is_signed ? std::int8_t(*most) : std::uint8_t(*most);
    for (std::size_t e = 0; zeros != nullptr && e < zeros->size(); ++e)
      low = std::min(low, zeros->number(e)), high = std::max(high, zeros->number(e));
    for (result.bits = 2; result.bits < 8; result.bits *= 2)
      if (low >= (is_signed ? -(1 << (result.bits - 1)) : 0) && high < (1 << (result.bits - is_signed))) break;
    const int offset = is_signed ? 1 << (result.bits - 1) : 0;
    const std::int64_t blocks = result.inner / result.block;
    const Matrix of_numbers(result, numbers, is_turned), of_scales(result, scales, is_turned, result.block);
    std::vector<int> all, zero;
    std::vector<double> scale;
    for (std::int64_t n = 0; n < result.columns; ++n) {
      for (std::int64_t k = 0; k < result.inner; ++k) all.push_back(int(of_numbers.number(k, n)) + offset);
      for (std::int64_t b = 0; b < blocks; ++b) {
        scale.push_back(of_scales.number(b, n));
        zero.push_back(offset +
                       (zeros == nullptr ? 0 : int(Matrix(result, *zeros, is_turned, result.block).number(b, n))));
      }
    }
    const Shape shape = {result.columns, blocks, result.block * result.bits / 8};
    result.packed = constant(DType::u8, shape, packed_rows(all, result.inner, result.bits));
    result.scales = add_constant(
        graph_, unused_name(), graph::known(DType::f32, {result.columns, blocks}, codegen::Elements(std::move(scale))));
    if (zeros != nullptr || !is_signed) {
      std::string bytes = packed_rows(zero, blocks, result.bits);
      const std::int64_t in_row = std::int64_t(bytes.size()) / result.columns;
      result.zeros = constant(DType::u8, {result.columns, in_row}, std::move(bytes));
    }
  }

  std::string unused_name() const { return fmt::format("packed.{}", graph_.values.size()); }
  int constant(DType type, Shape shape, std::string bytes) {
    return add_constant(graph_, unused_name(),
                        std::make_shared<const Array>(Array{type, std::move(shape), std::move(bytes)}));
  }

  static void replace(Node& node, const Product& product, const Weights& weights) {
    node.operation = "com.microsoft.MatMulNBits";
    node.operands = {product.x, weights.packed, weights.scales, weights.zeros, -1, product.bias};
    node.attributes = {
        {"K", weights.inner}, {"N", weights.columns}, {"bits", weights.bits}, {"block_size", weights.block}};
    node.version = 0;
  }

  // Products whose rows become bytes.
  void quantise_rows() {
    for (Node& node : graph_.nodes) {
      if (node.operation != "com.microsoft.MatMulNBits") continue;
      node.operation = "graft.MatMulNBits";
      node.attributes["quantised"] = std::int64_t(1);
    }
  }

  Graph graph_;
  std::vector<int> writer_;                           // by value: a node
  std::map<std::tuple<int, bool>, Weights> weights_;  // by value that is packed, and whether its columns are rows
};

}  // namespace

std::string to_text(const Storage& storage) {
  return storage.block > 0 ? fmt::format("s4:{}", storage.block) : std::string(codegen::name_of(storage.type));
}

std::optional<Storage> storage_named(std::string_view name) {
  constexpr std::int64_t most = 1 << 20;
  if (name.starts_with("s4:")) {
    std::int64_t block = 0;
    const char* const end = name.data() + name.size();
    if (std::from_chars(name.data() + 3, end, block).ptr != end || block < least_block || block > most ||
        (block & (block - 1)) != 0)
      return std::nullopt;
    return Storage{DType::f32, block};
  }
  const std::optional<DType> type = codegen::dtype_of(name);
  if (!type || codegen::computed_in(*type) != DType::f32) return std::nullopt;
  return Storage{*type};
}

Graph with_few_bits(Graph graph, const FewBits& wanted) {
  return Products(std::move(graph)).replaced(wanted);
}

}  // namespace graft::graph
