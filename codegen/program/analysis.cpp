#include "codegen/program/analysis.h"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <set>
#include <utility>

namespace graft::codegen {
StoreWalk::StoreWalk(const LoopProgram& program, Lines lines)
    : program_(program), count_lines_(lines == Lines::counted), level_of_(program.loops.size(), -1) {}

bool StoreWalk::next() {
  entered_ = node_ == 0;
  for (;; ++node_) {
    for (; depth_ > 0 && std::size_t(ends_[depth_ - 1]) == node_; --depth_) entered_ = true;
    if (node_ == program_.run.size()) return false;
    const Node& node = program_.run[node_];
    if (node.kind == Node::Kind::store) break;
    enter(node);
  }
  context_.store = program_.run[node_++].item;
  if (!entered_) return true;
  std::int64_t inside = 1;
  for (std::size_t level = depth_; level-- > 0;) bottom_up_[level] = inside *= extents_[level];
  context_.loops = {loops_.data(), depth_};
  context_.top_down = {top_down_.data(), depth_};
  context_.bottom_up = {bottom_up_.data(), depth_};
  context_.executions = inside;
  return true;
}

void StoreWalk::enter(const Node& loop) {
  if (depth_ == loops_.size()) {
    const std::size_t room = std::max(2 * depth_, std::size_t(16));
    for (std::vector<int>* list : {&loops_, &ends_}) list->resize(room);
    for (std::vector<std::int64_t>* list : {&extents_, &top_down_, &bottom_up_}) list->resize(room);
    moves_.resize(room);
    touches_.resize(room);
  }
  const std::int64_t extent = program_.loops[std::size_t(loop.item)].extent;
  level_of_[std::size_t(loop.item)] = int(depth_);
  loops_[depth_] = loop.item;
  ends_[depth_] = loop.end;
  extents_[depth_] = extent;
  top_down_[depth_] = depth_ == 0 ? extent : top_down_[depth_ - 1] * extent;
  ++depth_;
  entered_ = true;
}

// Into moves_, which is left without any by who looks at it.
void StoreWalk::place(const Access& access) {
  const std::int64_t* const shape = program_.buffers[std::size_t(access.tensor)].shape.data();
  const int* const level_of = level_of_.data();
  Move* const moves = moves_.data();
  diagonals_.clear();
  std::int64_t stride = 1;
  for (std::size_t d = access.index.size(); d-- > 0; stride *= shape[d]) {
    for (const Term& term : access.index[d].terms) {
      const std::size_t level = std::size_t(level_of[term.variable]);
      assert(level < depth_);
      Move& move = moves[level];
      if (move.dimension >= 0) {
        diagonals_.push_back(move);
        move.more = int(diagonals_.size()) - 1;
      }
      move.stride += term.coefficient * stride;
      move.distance = term.coefficient < 0 ? -term.coefficient : term.coefficient;
      move.dimension = int(d);
    }
  }
}

std::int64_t StoreWalk::stride(const Access& access, std::size_t level) {
  place(access);
  const std::int64_t stride = moves_[level].stride;
  std::fill_n(moves_.data(), depth_, Move{});
  return stride;
}

std::span<const Touch> StoreWalk::touches(const Access& access) {
  place(access);
  const Buffer& buffer = program_.buffers[std::size_t(access.tensor)];
  const std::int64_t bytes = bytes_of(buffer.dtype);
  sides_.assign(access.index.size(), {});
  Side* const sides = sides_.data();
  Move* const moves = moves_.data();
  Touch* const touches = touches_.data();
  const std::int64_t* const extents = extents_.data();
  // From the innermost loop outwards. No dimension has more distinct values than its interval is wide, nor more than
  // the loops in it run; and a loop in several dimensions (a diagonal) does not multiply them.
  std::int64_t all_trips = 1, other_trips = 1, touched = 1, lines = count_lines_ ? 1 : 0;
  int overlapping = 0;  // dimensions that are not as wide as the loops in it run; without any, no element comes twice
  for (std::size_t level = depth_; level-- > 0;) {
    const std::int64_t extent = extents[level];
    const Move first = std::exchange(moves[level], {});
    if (first.dimension < 0) {
      other_trips *= extent;
    } else {
      all_trips *= extent;
      for (const Move* move = &first;; move = &diagonals_[std::size_t(move->more)]) {
        Side& side = sides[move->dimension];
        overlapping -= side.width < side.trips;
        side.move(move->distance, extent);
        overlapping += side.width < side.trips;
        if (move->more < 0) break;
      }
      touched = all_trips;
      if (overlapping > 0) {
        std::int64_t box = 1;
        for (const Side& side : sides_) box *= side.distinct();
        touched = std::min(box, all_trips);
      }
      if (count_lines_) lines = std::min(touched, lines_of(buffer.shape, bytes));
    }
    const std::int64_t reuse =
        touched == all_trips ? other_trips : all_trips * other_trips / touched;  // seldom divides
    touches[level] = {first.stride, touched, reuse, touched * bytes, lines};
  }
  return {touches, depth_};
}

// For the box that sides_ describes now.
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

bool is_divided(const LoopProgram& program, std::span<const int> band, std::span<const Access* const> accesses,
                std::span<const int> around) {
  std::vector<Interval> inside_band;  // by loop: the ranges of those that are not of the band
  for (const Loop& loop : program.loops) inside_band.push_back({0, loop.extent - 1});
  for (const int loop : around) inside_band[std::size_t(loop)] = {0, 0};
  std::set<int> open;
  for (const int loop : band) {
    if (program.loops[std::size_t(loop)].extent > 1) open.insert(loop);
    inside_band[std::size_t(loop)] = {0, 0};
  }
  for (std::size_t d = 0; d < accesses[0]->index.size(); ++d) {
    std::vector<std::pair<std::int64_t, int>> steps;
    bool same = true;
    for (const int loop : band) {
      const std::int64_t step = accesses[0]->index[d].coefficient(loop);
      for (const Access* access : accesses) same &= access->index[d].coefficient(loop) == step;
      steps.emplace_back(std::abs(step), loop);
    }
    if (!same) continue;
    Interval inside = range(accesses[0]->index[d], inside_band);
    for (const Access* access : accesses) {
      const Interval here = range(access->index[d], inside_band);
      inside = {std::min(inside.low, here.low), std::max(inside.high, here.high)};
    }
    std::sort(steps.begin(), steps.end());
    std::int64_t reach = inside.high - inside.low;
    for (const auto& [step, loop] : steps) {
      if (step > reach) open.erase(loop);
      reach += step * (program.loops[std::size_t(loop)].extent - 1);
    }
  }
  return open.empty();
}

bool repeats_accesses(const LoopProgram& program) {
  const auto runs = [&](const Node& node) {
    if (node.kind != Node::Kind::loop) return false;
    const Loop& loop = program.loops[std::size_t(node.item)];
    return loop.kind != LoopKind::unrolled && loop.kind != LoopKind::vector && loop.extent > 1;
  };
  for (const Body* body : {&program.prepare, &program.run}) {
    for (int n = 0; n < int(body->size()); ++n) {
      const Node& node = (*body)[std::size_t(n)];
      if (!runs(node) || std::any_of(body->begin() + n + 1, body->begin() + node.end, runs)) continue;
      bool repeats = false;
      for_each_access(program, *body, n + 1, node.end, [&](int b, const Access& access, bool) {
        const bool in_memory = program.buffers[std::size_t(b)].scope == Scope::memory;
        repeats |= in_memory && offset(program, access).coefficient(node.item) == 0;
      });
      if (repeats) return true;
    }
  }
  return false;
}

}  // namespace graft::codegen
