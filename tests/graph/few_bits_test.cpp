// Weights of few bits against plain loops over the numbers that were packed.
#include "graph/few_bits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/monitor.h"
#include "graph/fold.h"
#include "tests/graph/support/drawn.h"
#include "tests/graph/support/onnx_file.h"
#include "tests/support/refusal.h"

namespace {

using namespace graft::graph;
using file::attribute;
using file::GraphFile;
using graft::codegen::contains;
using graft::codegen::Elements;
using graft::codegen::refusal;
using List = std::vector<std::int64_t>;
using Numbers = std::vector<double>;

class Random : public Drawn {
 public:
  using Drawn::Drawn;
  List integers(std::int64_t count, std::int64_t values) {
    List all;
    for (std::int64_t i = 0; i < count; ++i) all.push_back(upto(values));
    return all;
  }
  std::vector<float> floats(std::int64_t count) {
    std::vector<float> all;
    for (std::int64_t i = 0; i < count; ++i) all.push_back(float(upto(33) - 16) / 8);
    return all;
  }
};

// Rows of `in_row` numbers, each row in bytes of its own, the first number in the lowest bits.
std::string packed(const List& numbers, std::int64_t in_row, std::int64_t bits) {
  std::string all;
  for (std::size_t begin = 0; begin < numbers.size(); begin += std::size_t(in_row)) {
    unsigned byte = 0, filled = 0;
    for (std::size_t e = begin; e < begin + std::size_t(in_row); ++e) {
      byte |= unsigned(numbers[e]) << filled, filled += unsigned(bits);
      if (filled == 8) all += char(byte), byte = 0, filled = 0;
    }
    if (filled > 0) all += char(byte);
  }
  return all;
}

void expect_near(const Elements& is, const Numbers& should) {
  ASSERT_EQ(is.size(), should.size());
  for (std::size_t e = 0; e < should.size(); ++e)
    EXPECT_NEAR(is[e], should[e], 1e-5 * (1 + std::abs(should[e]))) << "element " << e;
}

enum class Zeros { none, packed, floating };

// A product with `n` columns of `k` weights.
struct Product {
  std::int64_t m = 2, n = 3, k = 40, block = 16, bits = 4;
  Zeros zeros = Zeros::none;
  bool has_groups = false, has_bias = false;
  std::int64_t blocks() const { return (k + block - 1) / block; }
};

Product drawn(Random& random) {
  Product of;
  of.m = 1 + random.upto(3), of.n = 1 + random.upto(5), of.k = 1 + random.upto(100);
  of.block = std::int64_t(16) << random.upto(5), of.bits = std::int64_t(2) << random.upto(3);
  of.zeros = Zeros(random.upto(3)), of.has_groups = random.upto(4) == 0, of.has_bias = random.coin();
  if (random.coin()) return of;
  // As packed bytes are read.
  of.n = 16 * (1 + random.upto(3)), of.k = of.block * (1 + random.upto(3)), of.has_groups = false;
  return of;
}

void check(const Product& of, Random& random) {
  const std::int64_t blocks = of.blocks(), in_row = blocks * of.block, values = std::int64_t(1) << of.bits;
  const List numbers = random.integers(of.n * in_row, values), zeros = random.integers(of.n * blocks, values),
             groups = random.integers(of.k, blocks);
  const std::vector<float> x = random.floats(of.m * of.k), scales = random.floats(of.n * blocks),
                           bias = random.floats(of.n), floating = random.floats(of.n * blocks);
  GraphFile graph;
  graph.input("x", {of.m, of.k}).weight("scales", {of.n, blocks}, scales).weight("bias", {of.n}, bias);
  graph.weight_of(
      file::tensor("b", {of.n, blocks, of.block * of.bits / 8}, file::u8, packed(numbers, in_row, of.bits)));
  const std::string rows_of_zeros = packed(zeros, blocks, of.bits);
  if (of.zeros == Zeros::packed)
    graph.weight_of(file::tensor("zeros", {of.n, std::int64_t(rows_of_zeros.size()) / of.n}, file::u8, rows_of_zeros));
  else
    graph.weight("zeros", {of.n, blocks}, floating);
  graph.weight_of(
      file::tensor("groups", {of.k}, file::i32, file::raw(std::vector<std::int32_t>(groups.begin(), groups.end()))));
  graph.node(
      "com.microsoft.MatMulNBits",
      {"x", "b", "scales", of.zeros == Zeros::none ? "" : "zeros", of.has_groups ? "groups" : "",
       of.has_bias ? "bias" : ""},
      {"y"},
      {attribute("K", of.k), attribute("N", of.n), attribute("bits", of.bits), attribute("block_size", of.block)});
  graph.output("y");
  Numbers expected;
  for (std::int64_t i = 0; i < of.m; ++i)
    for (std::int64_t n = 0; n < of.n; ++n) {
      double sum = of.has_bias ? double(bias[std::size_t(n)]) : 0;
      for (std::int64_t k = 0; k < of.k; ++k) {
        const std::size_t at = std::size_t(n * blocks + (of.has_groups ? groups[std::size_t(k)] : k / of.block));
        const double zero = of.zeros == Zeros::none     ? double(values / 2)
                            : of.zeros == Zeros::packed ? double(zeros[at])
                                                        : double(floating[at]);
        sum += double(x[std::size_t(i * of.k + k)]) * double(scales[at]) *
               (double(numbers[std::size_t(n * in_row + k)]) - zero);
      }
      expected.push_back(sum);
    }
  expect_near(file::results(graph, {{"x", Numbers(x.begin(), x.end())}}, 21).front(), expected);
}

TEST(FewBits, ProductsOfRandomWeights) {
  Random random(1);
  for (int round = 0; round < 500; ++round) {
    SCOPED_TRACE(round);
    check(drawn(random), random);
  }
}

// Weights of a product as ONNX's own operators have them: DequantizeLinear in blocks, before MatMul (as they are or
// turned) or Gemm.
struct Dequantised {
  std::int64_t m = 2, n = 16, k = 32, block = 16;
  bool is_turned = false, is_signed = true, has_zeros = false, is_gemm = false;
  int type() const { return is_signed ? file::i4 : file::u4; }
};

void check(const Dequantised& of, Random& random) {
  const std::int64_t blocks = of.k / of.block;
  const Shape shape = of.is_turned ? Shape{of.n, of.k} : Shape{of.k, of.n},
              of_blocks = of.is_turned ? Shape{of.n, blocks} : Shape{blocks, of.n};
  const List numbers = random.integers(of.n * of.k, 16), zeros = random.integers(of.n * blocks, 16);
  const std::vector<float> x = random.floats(of.m * of.k), scales = random.floats(of.n * blocks),
                           bias = random.floats(of.n);
  GraphFile graph;
  graph.input("x", {of.m, of.k}).weight("s", of_blocks, scales).weight("bias", {of.n}, bias);
  graph.weight_of(file::tensor("q", shape, of.type(), packed(numbers, elements_of(shape), 4)));
  graph.weight_of(file::tensor("z", of_blocks, of.type(), packed(zeros, elements_of(of_blocks), 4)));
  graph.node("DequantizeLinear", {"q", "s", of.has_zeros ? "z" : ""}, {"w"},
             {attribute("axis", std::int64_t(of.is_turned)), attribute("block_size", of.block)});
  if (of.is_gemm) {
    graph.node("Gemm", {"x", "w", "bias"}, {"y"}, {attribute("transB", std::int64_t(of.is_turned))});
  } else {
    if (of.is_turned) graph.node("Transpose", {"w"}, {"t"}, {attribute("perm", List{1, 0})});
    graph.node("MatMul", {"x", of.is_turned ? "t" : "w"}, {"y"});
  }
  graph.output("y");
  const auto value = [&](std::int64_t number) { return double(of.is_signed && number > 7 ? number - 16 : number); };
  Numbers expected;
  for (std::int64_t i = 0; i < of.m; ++i)
    for (std::int64_t j = 0; j < of.n; ++j) {
      double sum = of.is_gemm ? double(bias[std::size_t(j)]) : 0;
      for (std::int64_t k = 0; k < of.k; ++k) {
        const std::size_t at = std::size_t(of.is_turned ? j * of.k + k : k * of.n + j);
        const std::size_t block = std::size_t(of.is_turned ? j * blocks + k / of.block : k / of.block * of.n + j);
        sum += double(x[std::size_t(i * of.k + k)]) * double(scales[block]) *
               (value(numbers[at]) - (of.has_zeros ? value(zeros[block]) : 0));
      }
      expected.push_back(sum);
    }
  const Graph ready = folded(file::read(graph, 25), "m.onnx");
  EXPECT_TRUE(std::any_of(ready.nodes.begin(), ready.nodes.end(),
                          [](const Node& node) { return node.operation == "graft.ProductOfBlocks"; }));
  expect_near(file::results(graph, {{"x", Numbers(x.begin(), x.end())}}, 25).front(), expected);
}

TEST(FewBits, ProductsOfDequantizedWeights) {
  Random random(4);
  for (int round = 0; round < 80; ++round) {
    SCOPED_TRACE(round);
    Dequantised of{
        .m = 1 + random.upto(3), .n = 16 * (1 + random.upto(3)), .block = std::int64_t(16) << random.upto(2)};
    of.k = of.block * (1 + random.upto(3));
    of.is_turned = random.coin(), of.is_signed = random.coin(), of.has_zeros = random.coin(),
    of.is_gemm = random.coin();
    check(of, random);
  }
}

// The output y of a graph for x, after a pass.
Numbers output_of(const GraphFile& file, const FewBits& wanted, const std::vector<float>& x) {
  graft::base::Monitor nobody;
  return reference(folded(with_few_bits(file::read(file, 21), wanted), "m.onnx"),
                   {{"x", Elements(Numbers(x.begin(), x.end()))}}, "m.onnx", nobody)
      .front()
      .numbers();
}

// Rows as bytes with a scale for each block: what their numbers rounded so give.
TEST(FewBits, RowsBecomeBytes) {
  Random random(5);
  constexpr std::int64_t m = 3, n = 32, block = 32, blocks = 3, k = block * blocks;
  for (const std::int64_t bits : {2, 4, 8}) {
    const std::int64_t values = std::int64_t(1) << bits;
    const List numbers = random.integers(n * k, values);
    const std::vector<float> scales = random.floats(n * blocks);
    std::vector<float> x = random.floats(m * k);
    for (std::int64_t e = 0; e < block; ++e) x[std::size_t(e)] = 0;
    GraphFile graph;
    graph.input("x", {m, k}).weight("s", {n, blocks}, scales);
    graph.weight_of(file::tensor("b", {n, blocks, block * bits / 8}, file::u8, packed(numbers, k, bits)));
    graph.node("com.microsoft.MatMulNBits", {"x", "b", "s"}, {"t"},
               {attribute("K", k), attribute("N", n), attribute("bits", bits), attribute("block_size", block)});
    graph.node("Relu", {"t"}, {"r"}).node("Sub", {"t", "r"}, {"u"}).node("Add", {"u", "r"}, {"y"}).output("y");
    Numbers expected;
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0, exact = 0, may = 0;
        for (std::int64_t b = 0; b < blocks; ++b) {
          const auto row = x.begin() + i * k + b * block;
          float most = 0;
          for (std::int64_t e = 0; e < block; ++e) most = std::max(most, std::abs(row[e]));
          const double step = double(most * float(1.0 / 127));
          for (std::int64_t e = 0; e < block; ++e) {
            const double w = double(scales[std::size_t(j * blocks + b)]) *
                             double(numbers[std::size_t(j * k + b * block + e)] - values / 2);
            sum += step > 0 ? std::nearbyint(double(row[e]) / step) * step * w : 0;
            exact += double(row[e]) * w, may += step / 2 * std::abs(w);
          }
        }
        expected.push_back(sum);
        EXPECT_LE(std::abs(sum - exact), may * 1.001);
      }
    expect_near(Elements(output_of(graph, {.quantises_rows = true}, x)), expected);
  }
}

// Weights of floating point in four bits: the nearest numbers of their block's scale.
TEST(FewBits, WeightsAreStoredInFourBits) {
  Random random(6);
  constexpr std::int64_t m = 2, n = 16, block = 32, k = 2 * block;
  const std::vector<float> x = random.floats(m * k), w = random.floats(n * k);
  for (const bool is_turned : {false, true}) {
    GraphFile graph;
    graph.input("x", {m, k}).weight("w", is_turned ? Shape{n, k} : Shape{k, n}, w);
    graph.node("Gemm", {"x", "w"}, {"y"}, {attribute("transB", std::int64_t(is_turned))}).output("y");
    Numbers expected;
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::int64_t begin = 0; begin < k; begin += block) {
          const auto weight = [&](std::int64_t e) { return w[std::size_t(is_turned ? j * k + e : e * n + j)]; };
          double extreme = 0;
          for (std::int64_t e = begin; e < begin + block; ++e)
            if (std::abs(weight(e)) > float(std::abs(extreme))) extreme = double(weight(e));
          for (std::int64_t e = begin; e < begin + block; ++e) {
            const double scale = extreme / -8, number = std::nearbyint(double(weight(e)) / scale);
            sum += double(x[std::size_t(i * k + e)]) * scale * std::min(number, 7.0);
          }
        }
        expected.push_back(sum);
      }
    expect_near(Elements(output_of(graph, {.block = block}, x)), expected);
    // Blocks that do not divide what is summed leave a product as it is.
    const Graph other = folded(with_few_bits(file::read(graph, 21), {.block = 128}), "m.onnx");
    EXPECT_EQ(other.nodes.front().operation, "Gemm");
  }
}

// Operands of nodes that are constants.
std::vector<Known> constants_of(const Graph& graph) {
  std::vector<Known> all;
  for (const Node& node : graph.nodes)
    for (const int operand : node.operands)
      if (operand >= 0 && graph.values[std::size_t(operand)].known)
        all.push_back(graph.values[std::size_t(operand)].known);
  return all;
}

// What a run reads of the weights is their packed bytes, and a scale for each block.
TEST(FewBits, ProductsReadPackedBytes) {
  GraphFile graph;
  graph.input("x", {1, 3, 64}).weight("s", {32, 2}, std::vector<float>(64, 1));
  graph.weight_of(file::tensor("b", {32, 2, 16}, file::u8, std::string(1024, '\x9a')));
  graph.node("com.microsoft.MatMulNBits", {"x", "b", "s"}, {"t"},
             {attribute("K", 64), attribute("N", 32), attribute("block_size", 32)});
  graph.node("Relu", {"t"}, {"y"});
  const Graph ready = folded(file::read(graph.output("y"), 21), "m.onnx");
  std::int64_t bytes = 0;
  for (const Known& known : constants_of(ready))
    if (known->size() > 3) bytes += std::int64_t(known->bytes.size());
  EXPECT_EQ(bytes, 32 * 2 * 16 + 32 * 2 * 4);
}

// Columns that vectors do not cover: a plain product with a constant of floating point.
TEST(FewBits, OtherWeightsAreConstantsAfterFolding) {
  GraphFile graph;
  graph.input("x", {1, 32}).weight("s", {2, 1}, {1, 2});
  graph.weight_of(file::tensor("b", {2, 1, 16}, file::u8, std::string(32, '\x9a')));
  graph.node("com.microsoft.MatMulNBits", {"x", "b", "s"}, {"t"},
             {attribute("K", 32), attribute("N", 2), attribute("block_size", 32)});
  graph.node("Relu", {"t"}, {"y"});
  const Graph ready = folded(file::read(graph.output("y"), 21), "m.onnx");
  ASSERT_EQ(ready.nodes.size(), 2);
  EXPECT_EQ(ready.nodes[0].operation, "MatMul");
  const Value& weights = ready.values[std::size_t(ready.nodes[0].operands[1])];
  ASSERT_TRUE(weights.known);
  EXPECT_EQ(weights.known->shape, (Shape{32, 2}));
  for (std::size_t e = 0; e < 64; ++e) EXPECT_EQ(weights.known->number(e), (e % 4 < 2 ? 2 : 1) * (1 + e % 2));
}

TEST(FewBits, ProductsThatDoNotFitAreRefused) {
  const auto said = [](const std::vector<std::string>& attributes, const Shape& b = {2, 2, 8},
                       bool is_constant = true) {
    GraphFile graph;
    graph.input("x", {1, 32}).weight("s", {2, 2}, {1, 2, 3, 4});
    const std::string bytes(std::size_t(elements_of(b)), '\0');
    is_constant ? graph.weight_of(file::tensor("b", b, file::u8, bytes)) : graph.input("b", b, file::u8);
    graph.weight_of(file::tensor("g", {32}, file::i32, std::string(128, '\3')));
    std::vector<std::string> all = {attribute("K", 32), attribute("N", 2)};
    all.insert(all.end(), attributes.begin(), attributes.end());
    graph.node("com.microsoft.MatMulNBits", {"x", "b", "s", "", attributes.empty() ? "g" : ""}, {"y"}, all).output("y");
    return refusal([&] { (void)file::results(graph, {{"x", Numbers(32, 0)}}, 21); });
  };
  const std::string block = attribute("block_size", 16);
  EXPECT_TRUE(contains(said({}), "block_size is 0"));
  EXPECT_TRUE(contains(said({attribute("block_size", 24)}), "block_size is 24"));
  EXPECT_TRUE(contains(said({block, attribute("bits", 3)}), "bits=3"));
  EXPECT_TRUE(contains(said({block, attribute("weight_prepacked", 1)}), "weight_prepacked"));
  EXPECT_TRUE(contains(said({block}, {2, 2, 9}), "operand 1 is [2,2,9], for 2 columns of 32 in blocks of 16"));
  EXPECT_TRUE(contains(said({block}, {2, 2, 8}, false), "operand 1 that is not a constant"));
}

// Operators that folding makes, named by a file.
TEST(FewBits, OperatorsOfTheirOwnCheckTheirOperands) {
  const auto said = [](const std::string& operation, const std::vector<Shape>& shapes) {
    GraphFile graph;
    std::vector<std::string> names;
    for (const Shape& shape : shapes) {
      names.push_back("x" + std::to_string(names.size()));
      graph.input(names.back(), shape);
    }
    graph.node(operation, names, {"y"}).output("y");
    return refusal([&] { (void)folded(file::read(graph, 21), "m.onnx"); });
  };
  EXPECT_TRUE(contains(said("graft.ProductOfBlocks", {{1, 32}, {}, {16, 2}, {1, 2}}), "[1,32] times []"));
  EXPECT_TRUE(contains(said("graft.ProductOfBlocks", {{}, {16, 1, 16}, {16, 1}, {1, 1}}), "[] times [16,1,16]"));
  EXPECT_TRUE(contains(said("graft.BytesOfRows", {{1, 32}, {}}), "rows [1,32] with scales []"));
  EXPECT_TRUE(contains(said("graft.BytesOfRows", {{1, 32}, {1, 0}}), "rows [1,32] with scales [1,0]"));
  EXPECT_TRUE(contains(said("graft.NumbersOfBytes", {{}}), "numbers of []"));
}

// Blocks along dimension 0 and along dimension 1 of constants of four and two bits.
TEST(FewBits, ConstantsInBlocks) {
  Random random(2);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    const std::int64_t bits = random.coin() ? 4 : 2, axis = random.upto(2), block = 2 + random.upto(4);
    const Shape shape = {1 + random.upto(9), 1 + random.upto(9)};
    Shape of_blocks = shape;
    of_blocks[std::size_t(axis)] = (shape[std::size_t(axis)] + block - 1) / block;
    const bool is_signed = random.coin(), has_zeros = random.coin();
    const int type = is_signed ? (bits == 4 ? file::i4 : 26) : (bits == 4 ? file::u4 : 25);
    const std::int64_t values = std::int64_t(1) << bits;
    const List numbers = random.integers(elements_of(shape), values),
               zeros = random.integers(elements_of(of_blocks), values);
    const std::vector<float> scales = random.floats(elements_of(of_blocks));
    GraphFile graph;
    graph.weight_of(file::tensor("q", shape, type, packed(numbers, elements_of(shape), bits)));
    graph.weight_of(file::tensor("z", of_blocks, type, packed(zeros, elements_of(of_blocks), bits)));
    graph.weight("s", of_blocks, scales).input("x", shape);
    graph.node("DequantizeLinear", {"q", "s", has_zeros ? "z" : ""}, {"w"},
               {attribute("axis", axis), attribute("block_size", block)});
    graph.node("Add", {"x", "w"}, {"y"}).output("y");
    const auto value = [&](std::int64_t number) {
      return double(is_signed && number >= values / 2 ? number - values : number);
    };
    Numbers expected;
    for (std::int64_t i = 0; i < shape[0]; ++i)
      for (std::int64_t j = 0; j < shape[1]; ++j) {
        const std::size_t at = std::size_t(axis == 0 ? i / block * shape[1] + j : i * of_blocks[1] + j / block);
        expected.push_back(double(scales[at]) *
                           (value(numbers[std::size_t(i * shape[1] + j)]) - (has_zeros ? value(zeros[at]) : 0)));
      }
    const Graph ready = folded(file::read(graph, 25), "m.onnx");
    EXPECT_EQ(ready.nodes.size(), 1);
    expect_near(file::results(graph, {{"x", Numbers(expected.size(), 0)}}, 25).front(), expected);
  }
}

// Results of fewer bits keep to their range, though they are bytes.
TEST(FewBits, ResultsAreQuantised) {
  const auto is = [](int type, const char* zero) {
    GraphFile graph;
    graph.input("x", {6}).weight("s", {}, {0.5}).weight_of(file::tensor("z", {}, type, zero));
    graph.node("QuantizeLinear", {"x", "s", "z"}, {"q"}).node("DequantizeLinear", {"q", "s", "z"}, {"y"});
    return file::results(graph.output("y"), {{"x", {-100, -1, 0, 0.7, 2, 100}}}, 25).front().numbers();
  };
  EXPECT_EQ(is(file::i4, "\x1"), (Numbers{-4.5, -1, 0, 0.5, 2, 3}));
  EXPECT_EQ(is(file::u4, "\x1"), (Numbers{-0.5, -0.5, 0, 0.5, 2, 7}));
  EXPECT_EQ(is(26, "\x1"), (Numbers{-1.5, -1, 0, 0, 0, 0}));
  EXPECT_EQ(is(25, "\x1"), (Numbers{-0.5, -0.5, 0, 0.5, 1, 1}));
}

// Rows of a table, packed as onnxruntime does it (u8) or of ONNX's types of four bits.
TEST(FewBits, RowsOfTables) {
  Random random(3);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    const bool is_bytes = random.coin(), is_signed = random.coin(), has_zeros = random.coin();
    const std::int64_t bits = is_bytes ? std::int64_t(2) << random.upto(3) : 4, rows = 3 + random.upto(5);
    const std::int64_t columns = 8 * (1 + random.upto(6)), blocks = (columns + 15) / 16;
    const std::int64_t values = std::int64_t(1) << bits, along = is_bytes ? 0 : random.upto(2);
    const List numbers = random.integers(rows * columns, values), zeros = random.integers(rows * blocks, values);
    const List at = {0, 2, -1};
    const std::vector<float> scales = random.floats(rows * blocks);
    const int type = is_bytes ? file::u8 : is_signed ? file::i4 : file::u4;
    const auto add = [&](GraphFile& graph, const char* name, const List& all, std::int64_t in_row) {
      const std::string bytes = packed(all, is_bytes ? in_row : std::int64_t(all.size()), bits);
      const std::int64_t last = is_bytes ? std::int64_t(bytes.size()) / rows : in_row;
      graph.weight_of(file::tensor(name, {rows, last}, type, bytes));
    };
    GraphFile graph;
    add(graph, "q", numbers, columns), add(graph, "z", zeros, blocks);
    graph.weight("s", {rows, blocks}, scales).input("at", {3}, file::i64);
    graph.node("com.microsoft.GatherBlockQuantized", {"q", "at", "s", has_zeros ? "z" : ""}, {"y"},
               {attribute("bits", bits), attribute("block_size", 16), attribute("gather_axis", along),
                attribute("quantize_axis", 1)});
    graph.output("y");
    const auto value = [&](std::int64_t number) {
      return double(!is_bytes && is_signed && number >= values / 2 ? number - values : number);
    };
    const auto element = [&](std::int64_t row, std::int64_t column) {
      const std::size_t block = std::size_t(row * blocks + column / 16);
      const double zero = has_zeros ? value(zeros[block]) : is_bytes ? double(values / 2) : 0;
      return double(scales[block]) * (value(numbers[std::size_t(row * columns + column)]) - zero);
    };
    Numbers expected;
    for (std::int64_t i = 0; i < (along == 0 ? 3 : rows); ++i)
      for (std::int64_t j = 0; j < (along == 0 ? columns : 3); ++j) {
        const std::int64_t place = at[std::size_t(along == 0 ? i : j)];
        expected.push_back(along == 0 ? element(place < 0 ? place + rows : place, j)
                                      : element(i, place < 0 ? place + columns : place));
      }
    expect_near(file::results(graph, {{"at", Numbers(at.begin(), at.end())}}, 21).front(), expected);
  }
}

// What a run reads of a table is its packed bytes.
TEST(FewBits, TablesStayPacked) {
  GraphFile graph;
  graph.weight_of(file::tensor("q", {100, 32}, file::u8, std::string(3200, '\x5a')));
  graph.weight("s", {100, 2}, std::vector<float>(200, 1)).input("at", {1}, file::i64);
  graph.node("com.microsoft.GatherBlockQuantized", {"q", "at", "s"}, {"y"},
             {attribute("block_size", 32), attribute("gather_axis", 0), attribute("quantize_axis", 1)});
  const Graph ready = folded(file::read(graph.output("y"), 21), "m.onnx");
  std::int64_t most = 0;
  for (const Known& known : constants_of(ready)) most = std::max(most, std::int64_t(known->bytes.size()));
  EXPECT_EQ(most, 3200);
}

TEST(FewBits, TablesThatDoNotFitAreRefused) {
  const auto said = [](const Shape& table, const Shape& scales, bool is_constant) {
    GraphFile graph;
    const std::string bytes(std::size_t(elements_of(table)), '\0');
    is_constant ? graph.weight_of(file::tensor("q", table, file::u8, bytes)) : graph.input("q", table, file::u8);
    graph.weight("s", scales, std::vector<float>(std::size_t(elements_of(scales)), 1)).input("at", {1}, file::i64);
    graph.node("com.microsoft.GatherBlockQuantized", {"q", "at", "s"}, {"y"}, {attribute("block_size", 16)});
    return refusal([&] { (void)file::results(graph.output("y"), {{"at", {0}}}, 21); });
  };
  EXPECT_TRUE(contains(said({4, 16}, {4, 2}, false), "operand 0 that is not a constant"));
  EXPECT_TRUE(contains(said({4, 16}, {4, 3}, true), "in blocks of 16"));
  EXPECT_TRUE(contains(said({4, 16}, {8}, true), "its scales are [8]"));
}

}  // namespace
