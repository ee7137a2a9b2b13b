#include "codegen/program/analysis.h"

#include <algorithm>
#include <cassert>

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

// Sees accesses from the loops of one path after the other; its vectors are scratch that is kept between calls.
class Observer {
 public:
  explicit Observer(const LoopProgram& program) : program_(program), level_of_(program.loops.size(), -1) {}

  void enter(const std::vector<int>& path) {
    path_ = &path;
    for (std::size_t level = 0; level < path.size(); ++level) level_of_[std::size_t(path[level])] = int(level);
  }

  std::vector<Touch> touches(const Access& access) {
    const Buffer& buffer = program_.buffers[std::size_t(access.tensor)];
    const std::size_t levels = path_->size(), dimensions = access.index.size();
    const std::int64_t bytes = bytes_of(buffer.dtype);
    std::vector<Touch> result(levels);

    coefficients_.assign(levels * dimensions, 0);
    std::int64_t stride = 1;
    for (std::size_t d = dimensions; d-- > 0; stride *= buffer.shape[d]) {
      for (const Term& term : access.index[d].terms) {
        const std::size_t level = std::size_t(level_of_[std::size_t(term.variable)]);
        assert(level < levels);
        coefficients_[level * dimensions + d] = term.coefficient;
        result[level].stride += term.coefficient * stride;
      }
    }

    // From the innermost loop outwards. No dimension has more distinct values than its interval is wide, nor more than
    // the loops in it run; and a loop in several dimensions (a diagonal) does not multiply them.
    widths_.assign(dimensions, 1);
    trips_.assign(dimensions, 1);
    std::int64_t all_trips = 1, executions = 1;
    for (std::size_t level = levels; level-- > 0;) {
      const std::int64_t extent = program_.loops[std::size_t((*path_)[level])].extent;
      bool depends = false;
      std::int64_t box = 1;
      for (std::size_t d = 0; d < dimensions; ++d) {
        if (const std::int64_t coefficient = coefficients_[level * dimensions + d]; coefficient != 0) {
          widths_[d] += (coefficient < 0 ? -coefficient : coefficient) * (extent - 1);
          trips_[d] *= extent;
          depends = true;
        }
        box *= std::min(widths_[d], trips_[d]);
      }
      executions *= extent;
      if (depends) all_trips *= extent;
      Touch& touch = result[level];
      touch.touched = std::min(box, all_trips);
      touch.reuse = std::max<std::int64_t>(1, executions / touch.touched);
      touch.bytes = touch.touched * bytes;
      touch.lines = std::min(touch.touched, lines(buffer.shape, bytes));
    }
    return result;
  }

 private:
  // Of the box that widths_ and trips_ describe now.
  std::int64_t lines(const std::vector<std::int64_t>& shape, std::int64_t bytes) const {
    const auto lines_of = [&](std::int64_t elements) { return (elements * bytes + line_bytes - 1) / line_bytes; };
    std::int64_t all = 1, row = 1, rows = 1;  // elements from the first to the last of all, of a row
    std::int64_t stride = 1;
    bool contiguous = true;
    for (std::size_t d = shape.size(); d-- > 0; stride *= shape[d]) {
      const std::int64_t distinct = std::min(widths_[d], trips_[d]);
      all += (widths_[d] - 1) * stride;
      (contiguous ? row : rows) *= contiguous ? widths_[d] : distinct;
      contiguous = contiguous && distinct == shape[d];
    }
    return std::min(rows * lines_of(row), lines_of(all));
  }

  const LoopProgram& program_;
  const std::vector<int>* path_ = nullptr;
  std::vector<int> level_of_;                 // by loop; right for those on the path
  std::vector<std::int64_t> coefficients_;    // [level][dimension]
  std::vector<std::int64_t> widths_, trips_;  // by dimension
};

}  // namespace

Analysis analyse(const LoopProgram& program) {
  Analysis analysis;
  analysis.stores.reserve(program.stores.size());
  std::size_t accesses = 0;
  for (const Store& store : program.stores) accesses += 1 + store.value.loads.size();
  analysis.sites.reserve(accesses);

  Observer observer(program);
  walk(program.run, [&](int item, const std::vector<int>& path) {
    const Store& store = program.stores[std::size_t(item)];
    StoreContext context{.store = item, .loops = path, .top_down = {}, .bottom_up = {}};
    context.top_down.resize(path.size());
    context.bottom_up.resize(path.size());
    for (std::size_t level = 0; level < path.size(); ++level) {
      context.executions *= program.loops[std::size_t(path[level])].extent;
      context.top_down[level] = context.executions;
    }
    std::int64_t inside = 1;
    for (std::size_t level = path.size(); level-- > 0;)
      context.bottom_up[level] = inside *= program.loops[std::size_t(path[level])].extent;

    observer.enter(path);
    analysis.sites.push_back({.store = item,
                              .load = -1,
                              .buffer = store.target.tensor,
                              .writes = true,
                              .touches = observer.touches(store.target)});
    for (int load = 0; load < int(store.value.loads.size()); ++load) {
      const Access& access = store.value.loads[std::size_t(load)];
      analysis.sites.push_back(
          {.store = item, .load = load, .buffer = access.tensor, .writes = false, .touches = observer.touches(access)});
    }
    analysis.stores.push_back(std::move(context));
  });
  return analysis;
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
