// Weights of few bits: products that read their packed bytes, and constants in floating point where a network has them
// elsewhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "graph/operators.h"

namespace graft::graph {

// How numbers of single precision are stored: those between kernels as `type`; with a `block`, weights of products have
// four bits, in blocks of that many numbers along what is summed, with a scale each.
struct Storage {
  DType type = DType::f32;
  std::int64_t block = 0;
  bool operator==(const Storage&) const = default;
};
std::string to_text(const Storage& storage);                  // "f16", "s4:32"
std::optional<Storage> storage_named(std::string_view name);  // f32, f16, bf16, s4:16 and so on in powers of two

struct FewBits {
  std::int64_t block = 0;       // of Storage
  bool quantises_rows = false;  // the other operand of products with few bits becomes bytes, block by block
};
// For a graph as it was read, its constants known: products with what DequantizeLinear makes of constants in blocks,
// and those that are asked for, become MatMulNBits of packed bytes.
Graph with_few_bits(Graph graph, const FewBits& wanted = {});

// DequantizeLinear of constants of eight bits or less by one loop over their bytes: a language model has hundreds of
// millions of them, for each of which evaluating an index expression would take minutes.
// Whether the node is such a one.
bool is_of_known_bytes(const Node& node, const Operands& operands);
// Its result. Shapes were checked (results_of).
Known dequantised(const Node& node, const Operands& operands);

}  // namespace graft::graph
