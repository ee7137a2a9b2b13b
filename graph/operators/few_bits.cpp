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

// Numbers of few bits, one in each byte. Without zero points they are signed: half of their range is subtracted.
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

constexpr std::int64_t group_size = 4;  // bytes that dot products sum

// The product of rows with a matrix of few bits: by column, block and byte, the first number in the lowest bits
// (operand 1), with a scale for each block of each column (operand 2). Zero points (operand 4) count as often as the
// sums of the rows' blocks (operand 3) say. P[i,b,j] is what the numbers of a block sum to, without scales. Rows are
// numbers, or (operand 5 is there) bytes with a scale for each block of theirs, whose sums are exact: by block, group
// of four bytes, place in a byte, and byte of the group.
Meaning product_of_blocks(const Call& call) {
  const std::int64_t bits = bits_of(call), each = 8 / bits;
  const bool is_quantised = call.has(5);
  const Shape &x = call.shape(0), &packed = call.shape(1);
  const auto fits = [&](int number, const Shape& shape) { return !call.has(number) || call.shape(number) == shape; };
  const std::size_t rank = is_quantised ? 4 : 3;
  if (x.size() != (is_quantised ? 5 : 2) || packed.size() != rank || (is_quantised && packed[3] != group_size) ||
      !fits(2, {packed[0], packed[1]}) || !fits(3, {x[0], packed[1]}) || !fits(4, {packed[0], packed[1]}) ||
      !fits(5, {x[0], packed[1]}) || product(x, 1, x.size()) != product(packed, 1, rank) * each ||
      !is_byte(call.type(1)))
    throw Malformed{fmt::format("{} times {} of {} bits", to_text(x), to_text(packed), bits)};
  const Axes spatial = {{"i", x[0]}, {"b", packed[1]}, {"j", packed[0]}};
  Axes within = {{"p", packed[2]}};
  if (each > 1) within.push_back({"h", each});
  if (is_quantised) within.push_back({"l", group_size});
  Expression expression(call);
  const std::string place = each > 1 ? "h" : "0";
  const std::string factor =
      is_quantised ? expression.operand(0, {"i", "b", "p", place, "l"})
                   : expression.operand(0, {"i", fmt::format("{}*b + {}*p + {}", packed[2] * each, each, place)});
  std::string number = expression.operand(1, is_quantised ? Index{"j", "b", "p", "l"} : Index{"j", "b", "p"});
  if (each > 1) number = fmt::format("bit_and({} >> {} * h, {})", number, bits, (1 << bits) - 1);
  if (!is_quantised) number = fmt::format("cast_f32({})", number);
  expression.stage("P", is_quantised ? DType::i32 : DType::f32, spatial, fmt::format("{} * {}", factor, number),
                   "+=", within);
  const std::string zero = call.has(4) ? expression.operand(4, {"j", "b"}) : std::to_string(1 << (bits - 1));
  std::string sum = fmt::format("({} - {} * {})", is_quantised ? "cast_f32(P[i,b,j])" : "P[i,b,j]", zero,
                                expression.operand(3, {"i", "b"}));
  if (is_quantised) sum = fmt::format("{} * {}", expression.operand(5, {"i", "b"}), sum);
  const std::string scale = expression.operand(2, {"j", "b"});
  expression.stage("y", DType::f32, {spatial[0], spatial[2]}, fmt::format("{} * ({})", scale, sum), "+=", {spatial[1]});
  return {expression.result(DType::f32, {x[0], packed[0]})};
}

// Rows (operand 0) as bytes, for a scale of each block (operand 1), in the order of product_of_blocks.
Meaning bytes_of_rows(const Call& call) {
  const std::int64_t each = 8 / bits_of(call);
  const Shape &x = call.shape(0), &scales = call.shape(1);
  if (x.size() != 2 || scales.size() != 2 || scales[0] != x[0] || scales[1] < 1 ||
      x[1] % (scales[1] * group_size * each) != 0)
    throw Malformed{fmt::format("rows {} with scales {}", to_text(x), to_text(scales))};
  const std::int64_t block = x[1] / scales[1];
  const Shape shape = {x[0], scales[1], block / (group_size * each), each, group_size};
  const Axes axes = {{"i", shape[0]}, {"b", shape[1]}, {"p", shape[2]}, {"h", shape[3]}, {"l", shape[4]}};
  Expression expression(call);
  const std::string number =
      expression.operand(0, {"i", fmt::format("{}*b + {}*p + {}*l + h", block, group_size * each, each)});
  const std::string scale = expression.operand(1, {"i", "b"});
  expression.stage("y", DType::i8, axes,
                   fmt::format("select({0} > 0, saturate_i8(round({1} / {0})), 0)", scale, number));
  return {expression.result(DType::i8, shape)};
}

// What products with few bits take of rows: the sums of their blocks; of rows that become bytes, their scales and the
// bytes, too, and the sums are those of the bytes.
struct RowsInBlocks {
  RowsInBlocks(Part x, std::int64_t rows, std::int64_t blocks, std::int64_t block, bool is_quantised,
               std::int64_t bits) {
    Body& body = *x.body;
    const auto reduced = [&](const char* operation, Part of, const List& axes) {
      return body.node(operation, {of, body.integers(axes)}, {{"keepdims", std::int64_t(0)}});
    };
    numbers = body.reshaped(x, {rows, blocks * block});
    const Part in_blocks = body.reshaped(x, {rows, blocks, block});
    if (!is_quantised) {
      sums = reduced("ReduceSum", in_blocks, {2});
      return;
    }
    scales = reduced("ReduceMax", body.node("Abs", {in_blocks}), {2}) *
             body.number(1.0 / codegen::highest(DType::i8), DType::f32);
    numbers = body.node("graft.BytesOfRows", {numbers, scales}, {{"bits", bits}});
    sums = reduced("ReduceSum", body.cast(numbers, DType::f32), {2, 3, 4});
  }
  Part numbers, sums, scales;
};

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
    const std::int64_t rows = graph::product(shape, 0, shape.size() - 1), bytes = block_ * bits_ / 8;
    const bool is_quantised = call_.integer("quantised", 0) != 0;
    const RowsInBlocks x(body.operand(0), rows, blocks_, block_, is_quantised, bits_);
    const Shape packed =
        is_quantised ? Shape{columns_, blocks_, bytes / group_size, group_size} : Shape{columns_, blocks_, bytes};
    std::vector<Part> operands = {x.numbers, body.constant(in_shape(call_.operand(1).known, packed)),
                                  body.constant(in_shape(call_.operand(2).known, {columns_, blocks_})), x.sums,
                                  call_.has(3) ? body.constant(zeros(false)) : body.operand(3)};
    if (is_quantised) operands.push_back(x.scales);
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

// Numbers of few bits as bytes along the last dimension, `zero` less: with a sign if there is one.
Meaning numbers_of_bytes(const Call& call) {
  const std::int64_t bits = bits_of(call), each = 8 / bits, zero = call.integer("zero", 0);
  const DType type = zero == 0 ? DType::u8 : DType::i8;
  if (call.rank(0) == 0 || !is_byte(call.type(0)) || zero < 0 || zero >= 1 << bits)
    throw Malformed{fmt::format("numbers of {}", to_text(call.shape(0)))};
  Axes axes = axes_over(call.shape(0));
  Expression expression(call);
  Index element = index_of(axes);
  const std::string byte = expression.operand(0, element);
  element.back() = fmt::format("{}*{} + h", each, element.back());
  axes.push_back({"h", each});
  std::string value = fmt::format("bit_and({} >> {} * h, {})", byte, bits, (1 << bits) - 1);
  if (zero != 0) value += fmt::format(" - {}", zero);
  expression.stage("y", type, axes, value, "=", {}, element);
  Shape shape = call.shape(0);
  shape.back() *= each;
  return {expression.result(type, shape)};
}

Graph gathered_of_blocks(const Call& call) {
  const bool is_packed = call.type(0) == DType::u8 && call.integer("is_unpacked", 0) == 0, has_zeros = call.has(3);
  const int rank = call.rank(0), along = call.axis(call.integer("gather_axis", 0), rank);
  const int quantised = call.axis(call.integer("quantize_axis", 1), rank);
  Body body(call);
  std::vector<Part> parts = {body.operand(0), body.operand(2), body.operand(3)};
  // Rows are gathered packed.
  const bool unpacks_rows = is_packed && bits_of(call) < 8 && along + 1 < rank && quantised != along;
  if (is_packed) {
    if (rank != call.rank(2)) throw Malformed{fmt::format("its scales are {}", to_text(call.shape(2)))};
    if (unpacks_rows)
      bytes_of(call, 0);  // or refuses it
    else
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
  if (unpacks_rows)
    parts[0] = body.node("graft.NumbersOfBytes", {parts[0]},
                         {{"bits", bits_of(call)}, {"zero", std::int64_t(has_zeros ? 0 : 1 << (bits_of(call) - 1))}});
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
      composed("graft.MatMulNBits", 3, 6, "K N accuracy_level bits block_size quantised weight_prepacked",
               product_with_few_bits),
      {"graft.ProductOfBlocks", 4, 6, "bits", product_of_blocks},
      {"graft.BytesOfRows", 2, 2, "bits", bytes_of_rows},
      {"graft.NumbersOfBytes", 1, 1, "bits zero", numbers_of_bytes},
      composed("com.microsoft.GatherBlockQuantized", 3, 4, "bits block_size gather_axis is_unpacked quantize_axis",
               gathered_of_blocks),
  };
}

}  // namespace graft::graph
