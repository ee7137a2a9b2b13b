#include "codegen/program/analysis.h"

#include <algorithm>
#include <cassert>

namespace graft::codegen {
StoreWalk::StoreWalk(const LoopProgram& program, Lines lines)
    : program_(program), count_lines_(lines == Lines::counted), level_of_(program.loops.size(), -1) {
  constexpr std::size_t usual = 16;  // loops around a store, or terms of an access: seldom more
  for (std::vector<int>* list : {&loops_, &ends_, &first_step_}) list->reserve(usual);
  for (std::vector<std::int64_t>* list : {&extents_, &top_down_, &bottom_up_}) list->reserve(usual);
  touches_.reserve(usual);
  steps_.reserve(usual);
  sides_.reserve(usual);
}

bool StoreWalk::next() {
  entered_ = node_ == 0;
  for (; node_ < program_.run.size(); ++node_) {
    while (!ends_.empty() && std::size_t(ends_.back()) == node_) {
      for (std::vector<int>* list : {&loops_, &ends_}) list->pop_back();
      for (std::vector<std::int64_t>* list : {&extents_, &top_down_}) list->pop_back();
      entered_ = true;
    }
    const Node& node = program_.run[node_];
    if (node.kind == Node::Kind::store) break;
    level_of_[std::size_t(node.item)] = int(loops_.size());
    loops_.push_back(node.item);
    ends_.push_back(node.end);
    extents_.push_back(program_.loops[std::size_t(node.item)].extent);
    top_down_.push_back((top_down_.empty() ? 1 : top_down_.back()) * extents_.back());
    entered_ = true;
  }
  if (node_ == program_.run.size()) return false;
  context_.store = program_.run[node_++].item;
  if (!entered_) return true;
  bottom_up_.resize(loops_.size());
  std::int64_t inside = 1;
  for (std::size_t level = loops_.size(); level-- > 0;) bottom_up_[level] = inside *= extents_[level];
  context_.loops = loops_;
  context_.top_down = top_down_;
  context_.bottom_up = bottom_up_;
  context_.executions = inside;
  touches_.resize(loops_.size());
  first_step_.resize(loops_.size());
  return true;
}

// Strides into touches_, and by which loop an index moves how far: steps_. sides_: of a single element.
void StoreWalk::place(const Access& access) {
  const std::vector<std::int64_t>& shape = program_.buffers[std::size_t(access.tensor)].shape;
  steps_.clear();
  sides_.assign(access.index.size(), {});
  for (std::size_t level = 0; level < touches_.size(); ++level) {
    touches_[level].stride = 0;
    first_step_[level] = -1;
  }
  std::int64_t stride = 1;
  for (std::size_t d = access.index.size(); d-- > 0; stride *= shape[d]) {
    for (const Term& term : access.index[d].terms) {
      const std::size_t level = std::size_t(level_of_[std::size_t(term.variable)]);
      assert(level < touches_.size());
      touches_[level].stride += term.coefficient * stride;
      steps_.push_back({d, term.coefficient < 0 ? -term.coefficient : term.coefficient, first_step_[level]});
      first_step_[level] = int(steps_.size()) - 1;
    }
  }
}

std::span<const Touch> StoreWalk::strides(const Access& access) {
  place(access);
  return touches_;
}

std::span<const Touch> StoreWalk::touches(const Access& access) {
  place(access);
  const Buffer& buffer = program_.buffers[std::size_t(access.tensor)];
  const std::int64_t bytes = bytes_of(buffer.dtype);
  // From the innermost loop outwards. No dimension has more distinct values than its interval is wide, nor more than
  // the loops in it run; and a loop in several dimensions (a diagonal) does not multiply them.
  std::int64_t all_trips = 1, other_trips = 1, touched = 1, lines = count_lines_ ? 1 : 0;
  for (std::size_t level = touches_.size(); level-- > 0;) {
    const std::int64_t extent = extents_[level];
    if (first_step_[level] < 0) {
      other_trips *= extent;
    } else {
      all_trips *= extent;
      for (int step = first_step_[level]; step >= 0; step = steps_[std::size_t(step)].next) {
        Side& side = sides_[steps_[std::size_t(step)].dimension];
        side.width += steps_[std::size_t(step)].distance * (extent - 1);
        side.trips *= extent;
      }
      std::int64_t box = 1;
      for (const Side& side : sides_) box *= side.distinct();
      touched = std::min(box, all_trips);
      if (count_lines_) lines = std::min(touched, lines_of(buffer.shape, bytes));
    }
    Touch& touch = touches_[level];
    touch.touched = touched;
    touch.reuse = touched == all_trips ? other_trips : all_trips * other_trips / touched;  // a division is slow
    touch.bytes = touched * bytes;
    touch.lines = lines;
  }
  return touches_;
}

// Of the box that sides_ describes now.
std::int64_t StoreWalk::lines_of(const std::vector<std::int64_t>& shape, std::int64_t bytes) const {
  const auto lines = [&](std::int64_t elements) { return (elements * bytes + line_bytes - 1) / line_bytes; };
  std::int64_t all = 1, row = 1, rows = 1;  // elements from the first to the last of all, of a row
  std::int64_t stride = 1;
  bool contiguous = true;
  for (std::size_t d = shape.size(); d-- > 0; stride *= shape[d]) {
    const std::int64_t distinct = sides_[d].distinct();
    all += (sides_[d].width - 1) * stride;
    const bool joins = contiguous && (distinct == sides_[d].width || d + 1 == shape.size());
    (joins ? row : rows) *= joins ? sides_[d].width : distinct;
    contiguous = contiguous && distinct == shape[d];
  }
  return std::min(rows * lines(row), lines(all));
}

Analysis analyse(const LoopProgram& program, Lines lines) {
  std::size_t stores = 0, sites = 0, loops = 0, touches = 0;
  for (StoreWalk walk(program); walk.next();) {
    const std::size_t accesses = 1 + program.stores[std::size_t(walk.context().store)].value.loads.size();
    const std::size_t around = walk.context().loops.size();
    ++stores;
    sites += accesses;
    loops += around;
    touches += around * accesses;
  }
  Analysis result;  // nothing of it moves once spans show it
  result.stores.reserve(stores);
  result.sites.reserve(sites);
  result.loops.reserve(loops);
  result.products.reserve(2 * loops);
  result.touches.reserve(touches);
  const auto kept = [](auto& all, const auto& more) {
    all.insert(all.end(), more.begin(), more.end());
    return std::span(all).last(more.size());
  };
  for (StoreWalk walk(program, lines); walk.next();) {
    StoreContext context = walk.context();
    if (walk.entered()) {
      context.loops = kept(result.loops, context.loops);
      context.top_down = kept(result.products, context.top_down);
      context.bottom_up = kept(result.products, context.bottom_up);
    } else {
      context = result.stores.back();
      context.store = walk.context().store;
    }
    result.stores.push_back(context);
    const Store& store = program.stores[std::size_t(context.store)];
    const auto add = [&](int load, const Access& access) {
      result.sites.push_back({.store = context.store,
                              .load = load,
                              .buffer = access.tensor,
                              .writes = load < 0,
                              .touches = kept(result.touches, walk.touches(access))});
    };
    add(-1, store.target);
    for (std::size_t load = 0; load < store.value.loads.size(); ++load) add(int(load), store.value.loads[load]);
  }
  return result;
}

const Access& access_of(const LoopProgram& program, const AccessSite& site) {
  const Store& store = program.stores[std::size_t(site.store)];
  return site.load < 0 ? store.target : store.value.loads[std::size_t(site.load)];
}

std::int64_t flops(const LoopProgram& program) {
  std::int64_t total = 0;
  for (StoreWalk walk(program); walk.next();) {
    const Store& store = program.stores[std::size_t(walk.context().store)];
    const ArithmeticCounts counts = arithmetic(store.value);
    std::int64_t each = counts.add + counts.mul + counts.div + counts.compare + counts.special;
    if (store.combine != Combine::none) ++each;
    total += each * walk.context().executions;
  }
  return total;
}

}  // namespace graft::codegen
