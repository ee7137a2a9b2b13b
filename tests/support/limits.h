// The limits of a whole program, which lowering counts store by store.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/error.h"
#include "codegen/schedule/limits.h"

namespace graft::codegen {

inline std::optional<base::Reason> beyond_limits(const LoopProgram& program, const Target& target) {
  LimitCounter counter(target);
  std::vector<int> loops, ends;
  for (int at = 0; at < int(program.run.size()); ++at) {
    while (!ends.empty() && ends.back() <= at) {
      ends.pop_back();
      loops.pop_back();
    }
    const Node& node = program.run[std::size_t(at)];
    if (node.kind == Node::Kind::loop) {
      loops.push_back(node.item);
      ends.push_back(node.end);
    } else if (auto reason = counter.add(program, program.stores[std::size_t(node.item)], loops)) {
      return reason;
    }
  }
  return std::nullopt;
}

}  // namespace graft::codegen
