// Weights of two, four or eight bits in blocks, each with a scale and a zero point, as onnxruntime packs them. Products
// read their bytes, and apply scales to sums of blocks. Where blocks are not whole or are chosen by row (g_idx), and of
// tables, they become bytes and a DequantizeLinear, which folding makes a constant of.
#include "graph/few_bits.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/operators/body.h"

namespace graft::graph {
namespace {

using List = std::vector<std::int64_t>;

bool is_byte(DType type) {
  return type == DType::u8 || type == DType::i8;
}

// Number `place` of packed ones; the first is in the lowest bits.
int packed_number(std::string_view bytes, std::int64_t place, std::int64_t bits) {
  const std::int64_t bit = place * bits;
  return std::uint8_t(bytes[std::size_t(bit / 8)]) >> (bit % 8) & ((1 << bits) - 1);
}

std::int64_t bits_of(const Call& call) {
  const std::int64_t bits = call.integer("bits", 4);
  if (bits != 2 && bits != 4 && bits != 8) throw Unsupported{fmt::format("bits={}", bits)};
  return bits;
}

std::int64_t block_of(const Call& call, std::int64_t otherwise) {
  constexpr std::int64_t most = 1 << 20;
  const std::int64_t block = call.integer("block_size", otherwise);
  if (block < 16 || block > most || (block & (block - 1)) != 0) throw Malformed{fmt::format("block_size is {}", block)};
  return block;
}

// Numbers in bytes; without zero points the one that stands for 0 is subtracted from them.
Known in_bytes(Shape shape, std::string bytes, std::int64_t bits, bool has_zeros) {
  if (!has_zeros)
    for (char& byte : bytes) byte = char(std::uint8_t(byte) - (1 << (bits - 1)));
  return std::make_shared<const Array>(Array{has_zeros ? DType::u8 : DType::i8, std::move(shape), std::move(bytes)});
}

// The bytes of an operand.
const std::string& bytes_of(const Call& call, int number) {
  const Operand& of = call.operand(number);
  if (!of.known) throw Unsupported{fmt::format("operand {} {}", number, not_constant)};
  if (!is_byte(of.type)) throw Malformed{fmt::format("operand {} of type {}", number, codegen::name_of(of.type))};
  return of.known->bytes;
}

// ---- products ----

// The product of rows (operand 0, a matrix) with a matrix of few bits (operand 1, by column, block and byte, the first
// number in the lowest bits), with a scale for each block of each column (operand 2). Zero points (operand 4) count as
// often as the sums of the rows' blocks (operand 3) say: P[i,b,j], what the numbers of a block sum to, is exact but for
// the rounding of sums, whatever the scales.
Meaning product_of_blocks(const Call& call) {
  const std::int64_t bits = bits_of(call), each = 8 / bits;
  const Shape &x = call.shape(0), &packed = call.shape(1);
  if (x.size() != 2 || packed.size() != 3 || x[1] != packed[1] * packed[2] * each)
    throw Malformed{fmt::format("{} times {} of {} bits", to_text(x), to_text(packed), bits)};
  const Axes blocks = {{"i", x[0]}, {"b", packed[1]}, {"j", packed[0]}};
  Axes within = {{"p", packed[2]}};
  if (each > 1) within.push_back({"h", each});
  Expression expression(call);
  std::string number = expression.operand(1, {"j", "b", "p"});
  std::string place = fmt::format("{}*b + {}*p", packed[2] * each, each);
  if (each > 1) {
    number = fmt::format("bit_and({} >> {} * h, {})", number, bits, (1 << bits) - 1);
    place += " + h";
  }
  const std::string factor = expression.operand(0, {"i", place});
  expression.stage("P", DType::f32, blocks, fmt::format("{} * cast_f32({})", factor, number), "+=", within);
  std::string sum = "P[i,b,j]";
  if (call.has(3)) {
    const std::string zero = call.has(4) ? expression.operand(4, {"j", "b"}) : std::to_string(1 << (bits - 1));
    sum = fmt::format("({} - {} * {})", sum, zero, expression.operand(3, {"i", "b"}));
  }
  const std::string scale = expression.operand(2, {"j", "b"});
  expression.stage("y", DType::f32, {blocks[0], blocks[2]}, fmt::format("{} * {}", scale, sum), "+=", {blocks[1]});
  return {expression.result(DType::f32, {x[0], packed[0]})};
}

// A matrix of `columns` rows of `inner` numbers, each row in blocks.
class PackedMatrix {
 public:
  explicit PackedMatrix(const Call& call)
      : call_(call),
        bits_(bits_of(call)),
        columns_(call.integer("N", 0)),
        inner_(call.integer("K", 0)),
        block_(block_of(call, 0)) {
    if (call.integer("weight_prepacked", 0) != 0) throw Unsupported{"weight_prepacked"};
    if (columns_ < 1 || inner_ < 1) throw Malformed{fmt::format("K is {} and N is {}", inner_, columns_)};
    blocks_ = inner_ / block_ + (inner_ % block_ != 0);
    must_have(1, elements_of({columns_, blocks_, block_ * bits_ / 8}));
    must_have(2, elements_of({columns_, blocks_}));
    if (call.has(4)) groups_ = groups();
  }

  // Operand 0 times its transpose.
  Part product(Body& body) const {
    const Shape& shape = call_.shape(0);
    const bool is_whole = groups_.empty() && inner_ == blocks_ * block_ && columns_ % widest_lanes == 0;
    const bool is_run = call_.type(0) == DType::f32 && !call_.is_known(0) && call_.is_known(1) && call_.is_known(2);
    if (!is_whole || !is_run || !is_byte(call_.type(1)) || call_.type(2) != DType::f32 || shape.empty() ||
        shape.back() != inner_)
      return body.node("MatMul", {body.operand(0), weights(body)});
    const std::int64_t rows = graph::product(shape, 0, shape.size() - 1);
    const Part x = body.reshaped(body.operand(0), {rows, inner_});
    const Part sums = body.node("ReduceSum", {body.reshaped(x, {rows, blocks_, block_}), body.integers({2})},
                                {{"keepdims", std::int64_t(0)}});
    const std::int64_t bytes = block_ * bits_ / 8;
    std::vector<Part> operands = {x, body.constant(in_shape(call_.operand(1).known, {columns_, blocks_, bytes})),
                                  body.constant(in_shape(call_.operand(2).known, {columns_, blocks_})), sums};
    if (call_.has(3)) operands.push_back(body.constant(zeros(false)));
    Shape whole = shape;
    whole.back() = columns_;
    return body.reshaped(body.node("graft.ProductOfBlocks", operands, {{"bits", bits_}}), whole);
  }

 private:
  // Columns in panels of vectors, whatever the target.
  static constexpr std::int64_t widest_lanes = 16;

  static Known in_shape(const Known& known, Shape shape) {
    Array array = *known;
    array.shape = std::move(shape);
    return std::make_shared<const Array>(std::move(array));
  }

  // Its transpose in floating point.
  Part weights(Body& body) const {
    std::vector<Part> operands = {body.constant(numbers()), body.constant(by_group(DType::f32, call_.numbers(2)))};
    if (call_.has(3)) operands.push_back(body.constant(zeros()));
    return body.node("DequantizeLinear", operands,
                     {{"axis", std::int64_t(0)}, {"block_size", groups_.empty() ? block_ : 1}});
  }

  void must_have(int number, std::int64_t elements) const {
    if (elements_of(call_.shape(number)) != elements)
      throw Malformed{fmt::format("operand {} is {}, for {} columns of {} in blocks of {}", number,
                                  to_text(call_.shape(number)), columns_, inner_, block_)};
  }

  // By number of a row, its block.
  List groups() const {
    List all = call_.integers(4);
    if (std::int64_t(all.size()) < inner_) throw Malformed{fmt::format("g_idx is {}", to_text(call_.shape(4)))};
    all.resize(std::size_t(inner_));
    for (const std::int64_t group : all)
      if (group < 0 || group >= blocks_) throw Malformed{fmt::format("g_idx names block {} of {}", group, blocks_)};
    return all;
  }

  Known numbers() const {
    const std::string& packed = bytes_of(call_, 1);
    const std::int64_t in_row = blocks_ * block_;
    std::string bytes;
    bytes.reserve(std::size_t(inner_ * columns_));
    for (std::int64_t k = 0; k < inner_; ++k)
      for (std::int64_t n = 0; n < columns_; ++n) bytes += char(packed_number(packed, n * in_row + k, bits_));
    return in_bytes({inner_, columns_}, std::move(bytes), bits_, call_.has(3));
  }

  // A number for each block of each column, in their order or transposed: blocks after each other, or those that g_idx
  // names.
  Known by_group(DType type, const std::vector<double>& numbers, bool turned = true) const {
    if (!turned) return known(type, {columns_, blocks_}, codegen::Elements(numbers));
    const std::int64_t rows = groups_.empty() ? blocks_ : inner_;
    std::vector<double> all;
    all.reserve(std::size_t(rows * columns_));
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t n = 0; n < columns_; ++n)
        all.push_back(numbers[std::size_t(n * blocks_ + (groups_.empty() ? row : groups_[std::size_t(row)]))]);
    return known(type, {rows, columns_}, codegen::Elements(std::move(all)));
  }

  Known zeros(bool turned = true) const {
    if (codegen::is_floating(call_.type(3))) {
      must_have(3, elements_of({columns_, blocks_}));
      return by_group(DType::f32, call_.numbers(3), turned);
    }
    const std::int64_t in_row = (blocks_ * bits_ + 7) / 8;
    must_have(3, elements_of({columns_, in_row}));
    const std::string& packed = bytes_of(call_, 3);
    std::vector<double> numbers;
    for (std::int64_t n = 0; n < columns_; ++n)
      for (std::int64_t b = 0; b < blocks_; ++b)
        numbers.push_back(packed_number(std::string_view(packed).substr(std::size_t(n * in_row)), b, bits_));
    return by_group(DType::u8, numbers, turned);
  }

  const Call& call_;
  const std::int64_t bits_, columns_, inner_, block_;
  std::int64_t blocks_ = 0;
  List groups_;  // by row, where g_idx is given
};

Graph product_with_few_bits(const Call& call) {
  Body body(call);
  Part y = PackedMatrix(call).product(body);
  if (call.has(5)) y = y + body.operand(5);
  return std::move(body).results({y});
}

// ---- rows of tables ----

// An operand whose last dimension has `last` numbers, if the reader did not unpack it (onnx.cpp).
Known unpacked(const Call& call, int number, std::int64_t last, bool has_zeros) {
  const std::int64_t bits = bits_of(call), in_row = (last * bits + 7) / 8;
  const std::string& packed = bytes_of(call, number);
  Shape shape = call.shape(number);
  if (shape.empty() || shape.back() != in_row)
    throw Malformed{fmt::format("operand {} is {}, for {} numbers of {} bits", number, to_text(shape), last, bits)};
  shape.back() = last;
  const std::int64_t rows = product(shape, 0, shape.size() - 1);
  std::string bytes;
  bytes.reserve(std::size_t(rows * last));
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t e = 0; e < last; ++e)
      bytes += char(packed_number(std::string_view(packed).substr(std::size_t(row * in_row)), e, bits));
  return in_bytes(std::move(shape), std::move(bytes), bits, has_zeros);
}

Graph gathered_of_blocks(const Call& call) {
  const bool is_packed = call.type(0) == DType::u8 && call.integer("is_unpacked", 0) == 0, has_zeros = call.has(3);
  const int rank = call.rank(0), along = call.axis(call.integer("gather_axis", 0), rank);
  const int quantised = call.axis(call.integer("quantize_axis", 1), rank);
  Body body(call);
  std::vector<Part> parts = {body.operand(0), body.operand(2), body.operand(3)};
  if (is_packed) {
    if (rank != call.rank(2)) throw Malformed{fmt::format("its scales are {}", to_text(call.shape(2)))};
    parts[0] = body.constant(unpacked(call, 0, call.shape(0).back() * 8 / bits_of(call), has_zeros));
    if (has_zeros) parts[2] = body.constant(unpacked(call, 3, call.shape(2).back(), true));
  }
  if (!has_zeros) parts.pop_back();
  const auto gathered = [&](Part x) {
    return body.node("Gather", {x, body.operand(1)}, {{"axis", std::int64_t(along)}});
  };
  const auto dequantised = [&](std::int64_t axis) {
    return body.node("DequantizeLinear", parts, {{"axis", axis}, {"block_size", block_of(call, 128)}});
  };
  if (quantised == along) return std::move(body).results({gathered(dequantised(quantised))});
  for (Part& part : parts) part = gathered(part);
  return std::move(body).results({dequantised(quantised < along ? quantised : quantised + call.rank(1) - 1)});
}

}  // namespace

bool is_of_known_bytes(const Node& node, const Operands& operands) {
  if (node.operation != "DequantizeLinear") return false;
  for (const std::optional<Operand>& operand : operands)
    if (!operand || !operand->known) return false;
  return is_byte(operands[0]->type) && operands[1]->type == DType::f32;
}

Known dequantised(const Node& node, const Operands& operands) {
  const Call call(node, operands, 0);
  const Array& numbers = *operands[0]->known;
  const Shape& shape = numbers.shape;
  const std::vector<double> scales = call.numbers(1);
  const std::vector<double> zeros = call.has(2) ? call.numbers(2) : std::vector<double>(scales.size(), 0);
  const bool is_one = scales.size() == 1 && call.rank(1) < 2;
  const std::size_t axis = is_one ? 0 : std::size_t(call.axis(call.integer("axis", 1), call.rank(0)));
  const std::int64_t extent = is_one ? 1 : shape[axis], block = call.integer("block_size", 0);
  const std::int64_t outer = is_one ? 1 : product(shape, 0, axis);
  const std::int64_t inner = product(shape, is_one ? 0 : axis + 1, shape.size());
  const std::int64_t blocks = block == 0 ? 0 : extent / block + (extent % block != 0);
  const bool is_signed = numbers.type == DType::i8;
  std::string bytes(numbers.size() * sizeof(float), '\0');
  std::size_t e = 0;
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t a = 0; a < extent; ++a)
      for (std::int64_t i = 0; i < inner; ++i, ++e) {
        const std::size_t at = std::size_t(is_one ? 0 : block == 0 ? a : (o * blocks + a / block) * inner + i);
        const std::uint8_t byte = std::uint8_t(numbers.bytes[e]);
        const float value =
            (float(is_signed ? int(std::int8_t(byte)) : int(byte)) - float(zeros[at])) * float(scales[at]);
        std::memcpy(bytes.data() + e * sizeof value, &value, sizeof value);
      }
  return std::make_shared<const Array>(Array{DType::f32, shape, std::move(bytes)});
}

std::vector<Row> few_bits_rows() {
  return {
      composed("com.microsoft.MatMulNBits", 3, 6, "K N accuracy_level bits block_size weight_prepacked",
               product_with_few_bits),
      {"graft.ProductOfBlocks", 3, 5, "bits", product_of_blocks},
      composed("com.microsoft.GatherBlockQuantized", 3, 4, "bits block_size gather_axis is_unpacked quantize_axis",
               gathered_of_blocks),
  };
}

}  // namespace graft::graph
