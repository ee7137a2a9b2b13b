#include "features/buffers.h"

#include <algorithm>

namespace graft::features {

using codegen::Interval;

BufferSizes::BufferSizes(const codegen::LoopProgram& program)
    : program_(program), number_of_(program.buffers.size(), -1) {
  boxes_.reserve(program.buffers.size());
  sides_.reserve(4 * program.buffers.size());
}

std::size_t BufferSizes::add(const codegen::Access& access, std::int64_t touched) {
  int& number = number_of_[std::size_t(access.tensor)];
  const bool first = number < 0;
  if (first) {
    number = int(boxes_.size());
    boxes_.push_back({.buffer = access.tensor, .sides = sides_.size()});
    sides_.resize(sides_.size() + access.index.size());
  }
  Box& box = boxes_[std::size_t(number)];
  box.sum += double(touched);
  Interval* all = sides_.data() + box.sides;
  for (const codegen::Affine& index : access.index) {
    Interval side{index.constant, index.constant};
    for (const codegen::Term& term : index.terms) {
      const std::int64_t reach = term.coefficient * (program_.loops[std::size_t(term.variable)].extent - 1);
      (reach < 0 ? side.low : side.high) += reach;
    }
    *all = first ? side : Interval{std::min(all->low, side.low), std::max(all->high, side.high)};
    ++all;
  }
  return std::size_t(number);
}

std::vector<BufferSize> BufferSizes::largest_first() const {
  std::vector<BufferSize> sizes;
  sizes.reserve(boxes_.size());
  for (std::size_t number = 0; number < boxes_.size(); ++number) {
    const Box& box = boxes_[number];
    const codegen::Buffer& buffer = program_.buffers[std::size_t(box.buffer)];
    double volume = 1;
    for (std::size_t d = 0; d < buffer.shape.size(); ++d) volume *= double(sides_[box.sides + d].width());
    sizes.push_back({box.buffer, number, std::min(volume, box.sum) * double(codegen::bytes_of(buffer.dtype))});
  }
  std::sort(sizes.begin(), sizes.end(), [](const BufferSize& a, const BufferSize& b) {
    return a.bytes_touched != b.bytes_touched ? a.bytes_touched > b.bytes_touched : a.number < b.number;
  });
  return sizes;
}

std::vector<BufferSize> buffers_by_size(const codegen::LoopProgram& program, const codegen::Analysis& analysis) {
  BufferSizes sizes(program);
  for (const codegen::AccessSite& site : analysis.sites) {
    if (program.buffers[std::size_t(site.buffer)].scope == codegen::Scope::memory)
      sizes.add(codegen::access_of(program, site), site.touches.empty() ? 1 : site.touches.front().touched);
  }
  return sizes.largest_first();
}

}  // namespace graft::features
