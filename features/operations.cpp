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
  std::array<std::int64_t, Operations::kinds> counts{};
  const std::vector<ValueNode>& nodes = store.value.nodes;
  const auto is_product = [&](int node) { return node >= 0 && nodes[std::size_t(node)].op == Op::mul; };
  const auto fuse = [&] {
    ++counts[Operations::mad];
    --counts[Operations::mul];
  };
  for (const ValueNode& node : nodes) {
    switch (node.op) {
      case Op::constant:
      case Op::load:
        break;
      case Op::add:
      case Op::sub:
        if (is_product(node.a) || is_product(node.b)) {
          fuse();  // with one of them; a second product stays a multiplication
        } else {
          ++counts[Operations::add];
        }
        break;
      case Op::neg:
        ++counts[Operations::add];
        break;
      case Op::mul:
        ++counts[Operations::mul];
        break;
      case Op::div:
        ++counts[Operations::div];
        break;
      case Op::max:
      case Op::min:
        ++counts[Operations::compare];
        break;
      case Op::exp:
      case Op::sqrt:
        ++counts[Operations::special];
        break;
    }
  }
  if (store.combine == Combine::sum) {
    if (is_product(int(nodes.size()) - 1)) {
      fuse();
    } else {
      ++counts[Operations::add];
    }
  } else if (store.combine != Combine::none) {
    ++counts[Operations::compare];
  }
  Operations result;
  const codegen::Buffer& target = program.buffers[std::size_t(store.target.tensor)];
  (codegen::is_floating(target.dtype) ? result.floating : result.integer) = counts;
  return result;
}

}  // namespace graft::features
