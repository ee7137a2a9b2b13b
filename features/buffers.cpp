#include "features/buffers.h"

#include <algorithm>

namespace graft::features {
namespace {

using codegen::AccessSite;
using codegen::Interval;
using codegen::LoopProgram;

// Around all accesses of one buffer so far.
struct Box {
  std::vector<Interval> sides;  // by dimension
  double sum = 0;               // elements touched by each access site, added up
};

void add(const LoopProgram& program, const AccessSite& site, Box& box) {
  const codegen::Access& access = codegen::access_of(program, site);
  const bool first = box.sum == 0;
  box.sides.resize(access.index.size());
  for (std::size_t d = 0; d < access.index.size(); ++d) {
    Interval side{access.index[d].constant, access.index[d].constant};
    for (const codegen::Term& term : access.index[d].terms) {
      const std::int64_t reach = term.coefficient * (program.loops[std::size_t(term.variable)].extent - 1);
      (reach < 0 ? side.low : side.high) += reach;
    }
    Interval& all = box.sides[d];
    all = first ? side : Interval{std::min(all.low, side.low), std::max(all.high, side.high)};
  }
  box.sum += site.touches.empty() ? 1 : double(site.touches.front().touched);
}

}  // namespace

std::vector<BufferSize> buffers_by_size(const LoopProgram& program, const codegen::Analysis& analysis) {
  std::vector<BufferSize> sizes;
  std::vector<Box> boxes;  // parallel
  std::vector<int> position_of(program.buffers.size(), -1);
  for (const AccessSite& site : analysis.sites) {
    if (program.buffers[std::size_t(site.buffer)].scope != codegen::Scope::memory) continue;
    int& position = position_of[std::size_t(site.buffer)];
    if (position < 0) {
      position = int(sizes.size());
      sizes.push_back({.buffer = site.buffer});
      boxes.emplace_back();
    }
    add(program, site, boxes[std::size_t(position)]);
  }
  for (std::size_t b = 0; b < sizes.size(); ++b) {
    double volume = 1;
    for (const Interval& side : boxes[b].sides) volume *= double(side.width());
    const codegen::Buffer& buffer = program.buffers[std::size_t(sizes[b].buffer)];
    sizes[b].bytes_touched = std::min(volume, boxes[b].sum) * double(codegen::bytes_of(buffer.dtype));
  }
  std::stable_sort(sizes.begin(), sizes.end(),
                   [](const BufferSize& a, const BufferSize& b) { return a.bytes_touched > b.bytes_touched; });
  return sizes;
}

}  // namespace graft::features
