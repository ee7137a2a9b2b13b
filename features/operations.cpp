#include "features/operations.h"

#include <algorithm>
#include <numeric>

namespace graft::features {

using codegen::Combine;
using codegen::Op;
using codegen::ValueNode;

Operations& Operations::operator+=(const Operations& other) {
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    floating[kind] += other.floating[kind];
    integer[kind] += other.integer[kind];
  }
  return *this;
}

std::int64_t Operations::total() const {
  const std::int64_t all = std::accumulate(floating.begin(), floating.end(), std::int64_t(0)) +
                           std::accumulate(integer.begin(), integer.end(), std::int64_t(0));
  return all + floating[mad] + integer[mad];
}

Operations operations(const codegen::LoopProgram& program, const codegen::Store& store) {
  codegen::ArithmeticCounts plain = codegen::arithmetic(store.value);
  const std::vector<ValueNode>& nodes = store.value.nodes;
  const auto is_product = [&](int node) { return node >= 0 && nodes[std::size_t(node)].op == Op::mul; };
  std::int64_t fused = 0;  // with one operand: a second product stays a multiplication
  for (const ValueNode& node : nodes)
    fused += (node.op == Op::add || node.op == Op::sub) && (is_product(node.a) || is_product(node.b));
  if (store.combine == Combine::sum) {
    ++plain.add;
    fused += codegen::is_product(store.value);
  } else if (store.combine == Combine::product) {
    ++plain.mul;
  } else if (store.combine != Combine::none) {
    ++plain.compare;
  }

  Operations result;
  const codegen::Buffer& target = program.buffers[std::size_t(store.target.tensor)];
  auto& counts = codegen::is_floating(target.dtype) ? result.floating : result.integer;
  counts[Operations::mad] = fused;
  counts[Operations::add] = plain.add - fused;
  counts[Operations::mul] = plain.mul - fused;
  counts[Operations::div] = plain.div;
  counts[Operations::compare] = plain.compare;
  counts[Operations::special] = plain.special;
  return result;
}

}  // namespace graft::features
