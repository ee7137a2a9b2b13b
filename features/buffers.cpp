#include "features/buffers.h"

#include <algorithm>

namespace graft::features {
namespace {

using codegen::AccessSite;
using codegen::Interval;
using codegen::LoopProgram;

// Around all accesses of one buffer so far.
struct Box {
  std::size_t sides = 0;  // where its sides begin, one a dimension
  double sum = 0;         // elements touched by each access site, added up
};

void add(const LoopProgram& program, const AccessSite& site, Box& box, Interval* sides) {
  const codegen::Access& access = codegen::access_of(program, site);
  for (std::size_t d = 0; d < access.index.size(); ++d) {
    Interval side{access.index[d].constant, access.index[d].constant};
    for (const codegen::Term& term : access.index[d].terms) {
      const std::int64_t reach = term.coefficient * (program.loops[std::size_t(term.variable)].extent - 1);
      (reach < 0 ? side.low : side.high) += reach;
    }
    Interval& all = sides[d];
    all = box.sum == 0 ? side : Interval{std::min(all.low, side.low), std::max(all.high, side.high)};
  }
  box.sum += site.touches.empty() ? 1 : double(site.touches.front().touched);
}

}  // namespace

std::vector<BufferSize> buffers_by_size(const LoopProgram& program, const codegen::Analysis& analysis) {
  std::vector<BufferSize> sizes;
  std::vector<Box> boxes;  // parallel
  std::vector<Interval> sides;
  std::vector<int> position_of(program.buffers.size(), -1);
  for (const AccessSite& site : analysis.sites) {
    if (program.buffers[std::size_t(site.buffer)].scope != codegen::Scope::memory) continue;
    int& position = position_of[std::size_t(site.buffer)];
    if (position < 0) {
      position = int(sizes.size());
      sizes.push_back({.buffer = site.buffer});
      boxes.push_back({.sides = sides.size()});
      sides.resize(sides.size() + program.buffers[std::size_t(site.buffer)].shape.size());
    }
    Box& box = boxes[std::size_t(position)];
    add(program, site, box, sides.data() + box.sides);
  }
  for (std::size_t b = 0; b < sizes.size(); ++b) {
    const codegen::Buffer& buffer = program.buffers[std::size_t(sizes[b].buffer)];
    double volume = 1;
    for (std::size_t d = 0; d < buffer.shape.size(); ++d) volume *= double(sides[boxes[b].sides + d].width());
    sizes[b].bytes_touched = std::min(volume, boxes[b].sum) * double(codegen::bytes_of(buffer.dtype));
  }
  std::stable_sort(sizes.begin(), sizes.end(),
                   [](const BufferSize& a, const BufferSize& b) { return a.bytes_touched > b.bytes_touched; });
  return sizes;
}

}  // namespace graft::features
