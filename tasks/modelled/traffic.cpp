#include "tasks/modelled/traffic.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "codegen/program/analysis.h"

namespace graft::tasks {
namespace {

using codegen::Affine;
using codegen::Interval;
using codegen::LoopProgram;
using codegen::Node;

// Shorter runs end before a prefetcher has understood them.
constexpr double lines_of_a_run = 4;

Interval hull(const Interval& a, const Interval& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

Lines& operator+=(Lines& a, const Lines& b) {
  a.sequential += b.sequential;
  a.scattered += b.scattered;
  a.written += b.written;
  return a;
}
Lines operator*(double factor, Lines lines) {
  return {factor * lines.sequential, factor * lines.scattered, factor * lines.written};
}

// Regions are looked up by (node, buffer): they depend on no capacity.
class Footprints {
 public:
  Footprints(const LoopProgram& program, std::int64_t line_bytes)
      : program_(program), line_bytes_(double(line_bytes)), analysis_(codegen::analyse(program)) {
    for (const codegen::AccessSite& site : analysis_.sites)
      if (program_.buffers[std::size_t(site.buffer)].scope == codegen::Scope::memory) sites_.push_back(&site);
    context_of_.resize(program_.stores.size());
    for (const codegen::StoreContext& context : analysis_.stores) context_of_[std::size_t(context.store)] = &context;
    const std::size_t nodes = program_.run.size();
    iteration_bytes_.resize(nodes);
    regions_.resize(nodes);
    for (int position = 0; position < int(nodes); ++position) {
      iteration_bytes_[std::size_t(position)] = bytes(regions(position, false));
      regions_[std::size_t(position)] = regions(position, true);
    }
  }

  Lines missed(double capacity) const {
    return bytes(regions_of_run()) <= capacity ? Lines{} : missed_in(0, int(program_.run.size()), capacity);
  }

 private:
  using Regions = std::vector<Lines>;  // by buffer

  const codegen::Access& access_of(const codegen::AccessSite& site) const {
    const codegen::Store& store = program_.stores[std::size_t(site.store)];
    return site.load < 0 ? store.target : store.value.loads[std::size_t(site.load)];
  }
  std::span<const int> loops_of(const codegen::AccessSite& site) const {
    return context_of_[std::size_t(site.store)]->loops;
  }

  double bytes(const Regions& of) const {
    double sum = 0;
    for (const Lines& lines : of) sum += lines.all() * line_bytes_;
    return sum;
  }

  // Of the node's subtree, the node's own loop moving or standing still.
  Regions regions(int position, bool moving) const {
    const Node& node = program_.run[std::size_t(position)];
    std::vector<Interval> ranges(program_.loops.size(), Interval{0, 0});
    std::vector<bool> inside(program_.stores.size(), false);
    for (int at = position; at < node.end; ++at) {
      const Node& below = program_.run[std::size_t(at)];
      if (below.kind == Node::Kind::store)
        inside[std::size_t(below.item)] = true;
      else if (at != position || moving)
        ranges[std::size_t(below.item)].high = program_.loops[std::size_t(below.item)].extent - 1;
    }
    return boxes(inside, ranges);
  }
  Regions regions_of_run() const {
    std::vector<Interval> ranges;
    for (const codegen::Loop& loop : program_.loops) ranges.push_back({0, loop.extent - 1});
    return boxes(std::vector<bool>(program_.stores.size(), true), ranges);
  }

  Regions boxes(const std::vector<bool>& inside, const std::vector<Interval>& ranges) const {
    struct Box {
      std::vector<Interval> dimensions;
      Interval offsets{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
      double elements = 0;  // at most: the sum over accesses
      bool walked = false;  // some access walks it in small steps
      bool written = false;
    };
    std::vector<Box> found(program_.buffers.size());
    for (const codegen::AccessSite* site : sites_) {
      if (!inside[std::size_t(site->store)]) continue;
      const codegen::Access& access = access_of(*site);
      Box& box = found[std::size_t(site->buffer)];
      double volume = 1;
      for (std::size_t d = 0; d < access.index.size(); ++d) {
        const Interval interval = codegen::range(access.index[d], ranges);
        volume *= double(interval.width());
        if (box.elements == 0)
          box.dimensions.push_back(interval);
        else
          box.dimensions[d] = hull(box.dimensions[d], interval);
      }
      const Affine flat = codegen::offset(program_, access);
      box.offsets = hull(box.offsets, codegen::range(flat, ranges));
      // Distinct positions of the loops that move the access bound the elements, too.
      double positions = 1;
      std::int64_t innermost_stride = 0;
      for (int loop : loops_of(*site)) {
        const double trips = double(ranges[std::size_t(loop)].width());
        const std::int64_t stride = flat.coefficient(loop);
        if (stride == 0 || trips == 1) continue;
        positions *= trips;
        innermost_stride = stride;
      }
      box.elements += std::min(volume, positions);
      const double step = double(std::abs(innermost_stride) * element_bytes(site->buffer));
      box.walked = box.walked || (step > 0 && step <= line_bytes_);
      box.written = box.written || site->writes;
    }
    Regions result(program_.buffers.size());
    for (std::size_t b = 0; b < found.size(); ++b) {
      const Box& box = found[b];
      if (box.elements == 0) continue;
      const codegen::Buffer& buffer = program_.buffers[b];
      const double element = double(element_bytes(int(b)));
      double rows = 1, run = 1;
      bool joined = true;
      for (std::size_t d = box.dimensions.size(); d-- > 0;) {
        const double width = double(box.dimensions[d].width());
        (joined ? run : rows) *= width;
        joined = joined && box.dimensions[d].width() == buffer.shape[d];
      }
      const double lines_of_run = lines_in(run * element);
      const double lines =
          std::min({rows * lines_of_run, box.elements, lines_in(double(box.offsets.width()) * element)});
      const bool sequential = box.walked && lines_of_run >= lines_of_a_run;
      (sequential ? result[b].sequential : result[b].scattered) = lines;
      if (box.written) result[b].written = lines;
    }
    return result;
  }
  std::int64_t element_bytes(int buffer) const {
    return codegen::bytes_of(program_.buffers[std::size_t(buffer)].dtype);
  }
  double lines_in(double bytes_in_a_row) const {
    return double(std::int64_t((bytes_in_a_row + line_bytes_ - 1) / line_bytes_));
  }

  // One pass over run[begin, end).
  Lines missed_in(int begin, int end, double capacity) const {
    Lines sum;
    for (int position = begin; position < end; position = program_.run[std::size_t(position)].end) {
      const Node& node = program_.run[std::size_t(position)];
      if (node.kind == Node::Kind::store || iteration_bytes_[std::size_t(position)] <= capacity) {
        for (const Lines& lines : regions_[std::size_t(position)]) sum += lines;
      } else {
        const double trips = double(program_.loops[std::size_t(node.item)].extent);
        sum += trips * missed_in(position + 1, node.end, capacity);
      }
    }
    return sum;
  }

  const LoopProgram& program_;
  const double line_bytes_;
  const codegen::Analysis analysis_;
  std::vector<const codegen::AccessSite*> sites_;         // in memory
  std::vector<const codegen::StoreContext*> context_of_;  // by store; none for those of `prepare`
  std::vector<double> iteration_bytes_;                   // by node of `run`: what one iteration touches
  std::vector<Regions> regions_;                          // by node of `run`: what all its iterations touch
};

}  // namespace

std::vector<Lines> missed_lines(const LoopProgram& program, const std::vector<std::int64_t>& capacities,
                                std::int64_t line_bytes) {
  const Footprints footprints(program, line_bytes);
  std::vector<Lines> missed;
  for (std::int64_t capacity : capacities) missed.push_back(footprints.missed(double(capacity)));
  return missed;
}

}  // namespace graft::tasks
