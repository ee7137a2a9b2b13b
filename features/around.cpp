#include "features/around.h"

#include <algorithm>

namespace graft::features {

using codegen::LoopKind;

void Around::enter(const codegen::LoopProgram& program, const codegen::StoreContext& context) {
  const std::size_t depth = context.loops.size();
  levels.resize(depth);
  carriers.clear();
  innermost = vector = -1;
  straight = depth;
  unrolled_next = unrolled = parallel = vector_extent = 1;
  for (std::size_t l = depth; l-- > 0;) {
    const codegen::Loop& loop = program.loops[std::size_t(context.loops[l])];
    const double extent = double(loop.extent);
    levels[l] = {context.loops[l], loop.extent, context.top_down[l], loop.kind};
    if (loop.kind != LoopKind::vector && innermost < 0) innermost = int(l);
    const bool next_to = straight == l + 1 && (loop.kind == LoopKind::vector || loop.kind == LoopKind::unrolled);
    if (next_to) straight = l;
    if (loop.kind == LoopKind::vector) {
      if (vector < 0) vector = int(l);
      vector_extent = std::max(vector_extent, extent);
    } else if (loop.kind == LoopKind::unrolled) {
      unrolled *= extent;
      if (next_to) unrolled_next *= extent;
    } else if (loop.kind == LoopKind::parallel) {
      parallel *= extent;
    } else {
      continue;
    }
    carriers.push_back(l);
  }
}

double Around::memory_operations(std::span<const codegen::Touch> touches, double executions) const {
  std::int64_t copies = 1;
  for (std::size_t level = straight; level < touches.size(); ++level) {
    if (levels[level].kind == LoopKind::vector || touches[level].stride == 0) copies *= levels[level].extent;
  }
  return executions / double(copies);
}

}  // namespace graft::features
