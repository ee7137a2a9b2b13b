#include "codegen/program/analysis.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace graft::codegen {
namespace {

// Calls visit(store, path) for each store of the body, `path` being the positions of the loops around it, outermost
// first.
template <class Visit>
void walk(const Body& body, Visit visit) {
  std::vector<int> path, ends;
  for (int n = 0; n < int(body.size()); ++n) {
    while (!ends.empty() && ends.back() == n) {
      ends.pop_back();
      path.pop_back();
    }
    const Node& node = body[std::size_t(n)];
    if (node.kind == Node::Kind::loop) {
      path.push_back(node.item);
      ends.push_back(node.end);
    } else {
      visit(node.item, path);
    }
  }
}

// Fills an analysis, one store after the other; its vectors are scratch that is kept between them.
class Analyser {
 public:
  Analyser(const LoopProgram& program, Lines lines)
      : program_(program), count_lines_(lines == Lines::counted), level_of_(program.loops.size(), -1) {
    reserve();
  }

  void add(int item, const std::vector<int>& path) {
    const Store& store = program_.stores[std::size_t(item)];
    if (result_.stores.empty() || !std::equal(path.begin(), path.end(), around_.loops.begin(), around_.loops.end()))
      enter(path);
    around_.store = item;
    result_.stores.push_back(around_);
    add_site(item, -1, store.target);
    for (int load = 0; load < int(store.value.loads.size()); ++load)
      add_site(item, load, store.value.loads[std::size_t(load)]);
  }

  Analysis result() && { return std::move(result_); }

 private:
  struct Step {  // of an index along a dimension, per step of a loop
    std::size_t dimension;
    std::int64_t distance;
    int next;  // of the same loop, -1 at the last
  };

  // Nothing moves once spans show it.
  void reserve() {
    std::size_t stores = 0, sites = 0, loops = 0, touches = 0, dimensions = 0, deepest = 0;
    walk(program_.run, [&](int item, const std::vector<int>& path) {
      const Store& store = program_.stores[std::size_t(item)];
      ++stores;
      loops += path.size();
      sites += 1 + store.value.loads.size();
      touches += path.size() * (1 + store.value.loads.size());
      deepest = std::max(deepest, path.size());
    });
    for (const Buffer& buffer : program_.buffers) dimensions = std::max(dimensions, buffer.shape.size());
    result_.stores.reserve(stores);
    result_.sites.reserve(sites);
    result_.loops.reserve(loops);
    result_.products.reserve(2 * loops);
    result_.touches.reserve(touches);
    widths_.resize(dimensions);
    trips_.resize(dimensions);
    first_step_.resize(deepest);
  }

  // The loops around the stores that come next. Those of one body share what is said of their loops.
  void enter(const std::vector<int>& path) {
    const std::size_t levels = path.size();
    around_ = {};
    extents_.clear();
    const int* const loops = result_.loops.data() + result_.loops.size();
    const std::int64_t* const products = result_.products.data() + result_.products.size();
    for (std::size_t level = 0; level < levels; ++level) {
      level_of_[std::size_t(path[level])] = int(level);
      extents_.push_back(program_.loops[std::size_t(path[level])].extent);
      result_.loops.push_back(path[level]);
      result_.products.push_back(around_.executions *= extents_.back());
    }
    result_.products.resize(result_.products.size() + levels);
    std::int64_t inside = 1;
    for (std::size_t level = levels; level-- > 0;)
      result_.products[result_.products.size() - levels + level] = inside *= extents_[level];
    around_.loops = {loops, levels};
    around_.top_down = {products, levels};
    around_.bottom_up = {products + levels, levels};
  }

  void add_site(int store, int load, const Access& access) {
    touch(access);
    const Touch* const touches = result_.touches.data() + result_.touches.size();
    result_.touches.insert(result_.touches.end(), touches_.begin(), touches_.end());
    result_.sites.push_back({.store = store,
                             .load = load,
                             .buffer = access.tensor,
                             .writes = load < 0,
                             .touches = {touches, touches_.size()}});
  }

  // Into touches_.
  void touch(const Access& access) {
    const Buffer& buffer = program_.buffers[std::size_t(access.tensor)];
    const std::size_t dimensions = access.index.size();
    const std::int64_t bytes = bytes_of(buffer.dtype);

    steps_.clear();
    touches_.resize(extents_.size());
    for (std::size_t level = 0; level < extents_.size(); ++level) {
      touches_[level].stride = 0;
      first_step_[level] = -1;
    }
    std::int64_t stride = 1;
    for (std::size_t d = dimensions; d-- > 0; stride *= buffer.shape[d]) {
      widths_[d] = trips_[d] = 1;
      for (const Term& term : access.index[d].terms) {
        const std::size_t level = std::size_t(level_of_[std::size_t(term.variable)]);
        assert(level < touches_.size());
        touches_[level].stride += term.coefficient * stride;
        steps_.push_back({d, term.coefficient < 0 ? -term.coefficient : term.coefficient, first_step_[level]});
        first_step_[level] = int(steps_.size()) - 1;
      }
    }

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
          const auto& [d, distance, next] = steps_[std::size_t(step)];
          widths_[d] += distance * (extent - 1);
          trips_[d] *= extent;
        }
        std::int64_t box = 1;
        for (std::size_t d = 0; d < dimensions; ++d) box *= std::min(widths_[d], trips_[d]);
        touched = std::min(box, all_trips);
        if (count_lines_) lines = std::min(touched, lines_of(buffer.shape, bytes));
      }
      Touch& touch = touches_[level];
      touch.touched = touched;
      touch.reuse = touched == all_trips ? other_trips : all_trips * other_trips / touched;  // a division is slow
      touch.bytes = touched * bytes;
      touch.lines = lines;
    }
  }

  // Of the box that widths_ and trips_ describe now.
  std::int64_t lines_of(const std::vector<std::int64_t>& shape, std::int64_t bytes) const {
    const auto lines = [&](std::int64_t elements) { return (elements * bytes + line_bytes - 1) / line_bytes; };
    std::int64_t all = 1, row = 1, rows = 1;  // elements from the first to the last of all, of a row
    std::int64_t stride = 1;
    bool contiguous = true;
    for (std::size_t d = shape.size(); d-- > 0; stride *= shape[d]) {
      const std::int64_t distinct = std::min(widths_[d], trips_[d]);
      all += (widths_[d] - 1) * stride;
      const bool joins = contiguous && (distinct == widths_[d] || d + 1 == shape.size());
      (joins ? row : rows) *= joins ? widths_[d] : distinct;
      contiguous = contiguous && distinct == shape[d];
    }
    return std::min(rows * lines(row), lines(all));
  }

  const LoopProgram& program_;
  const bool count_lines_;
  Analysis result_;
  StoreContext around_;                       // of the body that the last store was in
  std::vector<std::int64_t> extents_;         // of its loops
  std::vector<int> level_of_;                 // by loop; right for those of the body
  std::vector<Touch> touches_;                // of one access
  std::vector<Step> steps_;                   // .
  std::vector<int> first_step_;               // by level
  std::vector<std::int64_t> widths_, trips_;  // by dimension
};

}  // namespace

Analysis analyse(const LoopProgram& program, Lines lines) {
  Analyser analyser(program, lines);
  walk(program.run, [&](int item, const std::vector<int>& path) { analyser.add(item, path); });
  return std::move(analyser).result();
}

const Access& access_of(const LoopProgram& program, const AccessSite& site) {
  const Store& store = program.stores[std::size_t(site.store)];
  return site.load < 0 ? store.target : store.value.loads[std::size_t(site.load)];
}

std::int64_t flops(const LoopProgram& program) {
  std::int64_t total = 0;
  walk(program.run, [&](int item, const std::vector<int>& path) {
    const Store& store = program.stores[std::size_t(item)];
    const ArithmeticCounts counts = arithmetic(store.value);
    std::int64_t each = counts.add + counts.mul + counts.div + counts.compare + counts.special;
    if (store.combine != Combine::none) ++each;
    for (const int loop : path) each *= program.loops[std::size_t(loop)].extent;
    total += each;
  });
  return total;
}

}  // namespace graft::codegen
