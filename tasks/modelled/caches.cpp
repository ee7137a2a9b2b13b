#include "tasks/modelled/caches.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <optional>

#include "base/hash.h"
#include "codegen/program/analysis.h"

namespace graft::tasks {
namespace {

using codegen::Affine;
using codegen::LoopProgram;

// Lines of memory by number. Buffers in huge pages are in the upper half; a tag is a line and whether it is dirty.
using Line = std::uint32_t;
constexpr int line_bits = 31;
constexpr Line upper_half = Line(1) << (line_bits - 1);
constexpr Line no_line = ~Line(0);
constexpr std::uint32_t no_tag = ~std::uint32_t(0);

// As in graft-worker: the alignment of buffers, and the gaps between them.
constexpr std::int64_t alignment_bytes = 64;

constexpr std::int64_t endless = std::numeric_limits<std::int64_t>::max();

std::int64_t rounded_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// One cache, or the second TLB: sets of tags, the most recently used first.
class Sets {
 public:
  Sets() = default;
  Sets(std::int64_t count, std::int64_t ways)
      : count_(std::uint32_t(count)),
        ways_(std::uint32_t(ways)),
        mask_(std::has_single_bit(count_) ? count_ - 1 : 0),
        reciprocal_(~std::uint64_t(0) / count_ + 1),
        tags_(std::size_t(count * ways), no_tag) {}

  std::uint32_t ways() const { return ways_; }
  std::uint32_t set_of(Line line) const {
    if (mask_ == 0 && count_ > 1)  // line modulo count_ by two multiplications
      return std::uint32_t(((unsigned __int128)(reciprocal_ * line) * count_) >> 64);
    return line & mask_;
  }

  // Whether the line is there. It is the most recently used one of its set afterwards; `victim` is the tag that had to
  // go for it, if one had.
  bool access(Line line, bool dirty, std::uint32_t& victim) {
    std::uint32_t* const set = tags_.data() + at(line);
    const std::uint32_t tag = line << 1;
    std::uint32_t carried = set[0];
    if ((carried ^ tag) <= 1) {
      set[0] = carried | std::uint32_t(dirty);
      return true;
    }
    set[0] = tag | std::uint32_t(dirty);
    for (std::uint32_t way = 1; way < ways_; ++way) {
      std::swap(set[way], carried);
      if ((carried ^ tag) <= 1) {
        set[0] |= carried & 1;
        return true;
      }
    }
    victim = carried;
    return false;
  }

  bool holds(Line line) const { return find(line) != nullptr; }
  // A line written back by the inner level; false if it is not here any more.
  bool make_dirty(Line line) {
    std::uint32_t* const tag = const_cast<std::uint32_t*>(find(line));
    if (tag == nullptr) return false;
    *tag |= 1;
    return true;
  }

  // What `fills` new lines, spread evenly, would have pushed out.
  void age(double fills) {
    const double each = std::min(fills / count_, double(ways_));
    const std::uint32_t everywhere = std::uint32_t(each);
    const std::uint64_t more = std::uint64_t((each - everywhere) * 0x1p32);
    for (std::uint32_t s = 0; s < count_; ++s) {
      const bool one_more = std::uint32_t(s * 2654435769u) < more;
      const std::uint32_t gone = std::min(ways_, everywhere + std::uint32_t(one_more));
      std::uint32_t* const end = tags_.data() + std::size_t(s + 1) * ways_;
      std::fill(end - gone, end, no_tag);
    }
  }

 private:
  std::size_t at(Line line) const { return std::size_t(set_of(line)) * ways_; }
  const std::uint32_t* find(Line line) const {
    const std::uint32_t* const set = tags_.data() + at(line);
    for (std::uint32_t way = 0; way < ways_; ++way)
      if ((set[way] ^ (line << 1)) <= 1) return set + way;
    return nullptr;
  }

  std::uint32_t count_ = 1, ways_ = 1, mask_ = 0;
  std::uint64_t reciprocal_ = 0;
  std::vector<std::uint32_t> tags_;
};

// The first TLB: a list of slots, the most recently used first, and where each page is in it.
class Pages {
 public:
  Pages(std::int64_t entries, std::size_t pages) : slot_of_(pages, none), slots_(std::size_t(entries)) {
    for (std::size_t i = 0; i < slots_.size(); ++i) slots_[i] = {none, std::int32_t(i) - 1, std::int32_t(i) + 1};
    slots_.back().after = none;
    last_ = std::int32_t(slots_.size()) - 1;
  }

  bool access(Line page) {
    if (slots_[std::size_t(first_)].page == std::int32_t(page)) return true;
    std::int32_t slot = slot_of_[page];
    const bool hit = slot != none;
    if (!hit) {
      slot = last_;
      forget(slot);
      slots_[std::size_t(slot)].page = std::int32_t(page);
      slot_of_[page] = slot;
    }
    bring_to_front(slot);
    return hit;
  }
  bool holds(Line page) const { return slot_of_[page] != none; }
  void age(double fills) {
    std::int32_t slot = last_;
    for (double gone = 0; gone + 1 <= fills && slot != none; gone += 1, slot = slots_[std::size_t(slot)].before)
      forget(slot);
  }

 private:
  static constexpr std::int32_t none = -1;
  struct Slot {
    std::int32_t page = none, before = none, after = none;
  };

  void forget(std::int32_t slot) {
    std::int32_t& page = slots_[std::size_t(slot)].page;
    if (page != none) slot_of_[std::size_t(page)] = none;
    page = none;
  }
  void bring_to_front(std::int32_t slot) {
    if (slot == first_) return;
    Slot& moved = slots_[std::size_t(slot)];
    slots_[std::size_t(moved.before)].after = moved.after;
    (moved.after == none ? last_ : slots_[std::size_t(moved.after)].before) = moved.before;
    moved.before = none;
    moved.after = first_;
    slots_[std::size_t(first_)].before = slot;
    first_ = slot;
  }

  std::vector<std::int32_t> slot_of_;  // by page
  std::vector<Slot> slots_;
  std::int32_t first_ = 0, last_ = 0;
};

// Pages whose misses go on in one direction.
class Streams {
 public:
  explicit Streams(std::int64_t count) : streams_(std::size_t(count)), pages_(std::size_t(count), no_line) {}

  // Whether the miss of the line at this offset of its page was to be expected. A page that was not missed in for a
  // while makes room for a new one.
  bool expects(Line page, std::int32_t offset) {
    for (std::size_t i = 0; i < pages_.size(); ++i)
      if (pages_[i] == page) return goes_on(streams_[i], offset);
    while (streams_[hand_].used) {
      streams_[hand_].used = false;
      advance();
    }
    pages_[hand_] = page;
    streams_[hand_] = {offset, 1, 0, true};
    advance();
    return false;
  }

 private:
  struct Stream {
    std::int32_t offset = 0, direction = 1, steps = 0;
    bool used = false;
  };

  void advance() { hand_ = hand_ + 1 == streams_.size() ? 0 : hand_ + 1; }
  static bool goes_on(Stream& stream, std::int32_t offset) {
    stream.used = true;
    const std::int32_t moved = offset - stream.offset;
    if (moved == 0) return stream.steps >= 2;
    stream.offset = offset;
    const bool near = std::abs(moved) <= 2;
    if (near && (moved > 0) == (stream.direction > 0)) {
      ++stream.steps;
    } else {
      stream.direction = moved > 0 ? 1 : -1;
      stream.steps = near ? 1 : 0;
    }
    return stream.steps >= 2;
  }

  std::vector<Stream> streams_;
  std::vector<Line> pages_;
  std::size_t hand_ = 0;
};

// An access of the program, at its present position.
struct Site {
  std::int64_t address = 0;  // in bytes; within a leaf loop, where the loop begins
  std::int64_t next = 0;     // iteration of the leaf loop in which it moves to another line
  Line line = no_line, page = no_line;
  // The prefetcher's view: how far it moved the last time, and how often it did the same before.
  std::int32_t moved = 0, again = 0;
  int store = 0;  // of the program, whose access it is
  bool huge = false, writes = false;
};

struct Node {
  int end = 0;              // one past the node's subtree
  std::int64_t extent = 0;  // 0: a site, the first of its range
  bool leaf = false;        // contains sites only
  int site_begin = 0, site_end = 0;
  int steps = 0;       // into Trace::steps: how far each of the sites moves with the loop, in bytes
  double touches = 0;  // in all iterations, about
  int digest = -1;     // into Simulator::digests_
};

// The addresses of the buffers. Those of huge pages are far above the others.
struct Layout {
  std::vector<std::int64_t> addresses;  // by buffer
  std::int64_t end = 0, huge_end = 0;
};

Layout layout_of(const LoopProgram& program, const Geometry& geometry) {
  Layout layout;
  layout.huge_end = std::int64_t(upper_half) * geometry.line_bytes;
  const auto place = [&](std::int64_t bytes) {
    const std::int64_t padded = rounded_up(std::max<std::int64_t>(bytes, 1), alignment_bytes);
    const bool huge = geometry.huge_page_bytes > 0 && padded >= geometry.huge_page_bytes;
    const std::int64_t unit = huge ? geometry.huge_page_bytes : geometry.page_bytes;
    std::int64_t& last = huge ? layout.huge_end : layout.end;
    last = rounded_up(last, unit) + unit + rounded_up(padded, unit);
    return last - padded;
  };
  std::int64_t workspace_bytes = 0;
  std::vector<std::size_t> temporaries;
  for (const codegen::Buffer& buffer : program.buffers) {
    std::int64_t address = 0;
    if (buffer.scope == codegen::Scope::memory && !buffer.is_literal()) {
      if (buffer.role != codegen::Role::temporary) {
        address = place(buffer.bytes());
      } else {
        address = workspace_bytes;
        workspace_bytes += rounded_up(buffer.bytes(), alignment_bytes);
        temporaries.push_back(layout.addresses.size());
      }
    }
    layout.addresses.push_back(address);
  }
  const std::int64_t workspace = temporaries.empty() ? 0 : place(workspace_bytes);
  for (const std::size_t temporary : temporaries) layout.addresses[temporary] += workspace;
  return layout;
}

// The accesses of `run` in the order in which they happen.
struct Trace {
  std::vector<Node> nodes;
  std::vector<Site> sites;
  std::vector<std::int64_t> steps;
  Line pages = 0, huge_pages = 0;  // numbers of the lower and of the upper half that occur
};

class TraceMaker {
 public:
  // Leaf loops are cut into pieces of about `piece` touches, so that they can be left early; 0: not at all.
  TraceMaker(const LoopProgram& program, const Geometry& geometry, double piece)
      : program_(program), geometry_(geometry), piece_(piece), layout_(layout_of(program, geometry)) {}

  Trace make() {
    std::vector<Part> parts = parts_of(0, int(program_.run.size()));
    for (const Part& part : parts) add(part);
    trace_.pages = Line(layout_.end / geometry_.page_bytes + 1);
    if (geometry_.huge_page_bytes > 0)
      trace_.huge_pages =
          Line((layout_.huge_end - std::int64_t(upper_half) * geometry_.line_bytes) / geometry_.huge_page_bytes + 1);
    return std::move(trace_);
  }

 private:
  struct Mover {  // an access
    std::int64_t address = 0;
    std::vector<std::pair<int, std::int64_t>> steps;  // by loop, in bytes
    int store = 0;
    bool writes = false;
    std::int64_t step(int loop) const {
      for (const auto& [of, bytes] : steps)
        if (of == loop) return bytes;
      return 0;
    }
    bool same_place(const Mover& other) const { return address == other.address && steps == other.steps; }
  };
  struct Part {  // a loop over parts, or one access
    std::int64_t extent = 0;
    int loop = -1;
    std::vector<Part> parts;
    Mover mover;
    bool is_access() const { return extent == 0; }
  };

  std::vector<Part> parts_of(int begin, int end) {
    std::vector<Part> parts;
    const auto append = [&](const codegen::Access& access, int store, bool writes) {
      const codegen::Buffer& buffer = program_.buffers[std::size_t(access.tensor)];
      if (buffer.scope == codegen::Scope::registers || buffer.is_literal()) return;
      const Affine flat = codegen::offset(program_, access);
      const std::int64_t size = codegen::bytes_of(buffer.dtype);
      Part part;
      part.mover.address = layout_.addresses[std::size_t(access.tensor)] + flat.constant * size;
      part.mover.store = store;
      part.mover.writes = writes;
      for (const codegen::Term& term : flat.terms) part.mover.steps.push_back({term.variable, term.coefficient * size});
      // The same element twice in a row is one touch.
      if (!parts.empty() && parts.back().is_access() && parts.back().mover.same_place(part.mover))
        parts.back().mover.writes |= writes;
      else
        parts.push_back(std::move(part));
    };
    for (int n = begin; n < end; n = program_.run[std::size_t(n)].end) {
      const codegen::Node& node = program_.run[std::size_t(n)];
      if (node.kind == codegen::Node::Kind::store) {
        const codegen::Store& store = program_.stores[std::size_t(node.item)];
        for (const codegen::Access& load : store.value.loads) append(load, node.item, false);
        append(store.target, node.item, true);
        continue;
      }
      Part loop{program_.loops[std::size_t(node.item)].extent, node.item, parts_of(n + 1, node.end), {}};
      if (loop.parts.empty()) continue;
      if (loop.extent == 1) {
        std::move(loop.parts.begin(), loop.parts.end(), std::back_inserter(parts));
        continue;
      }
      if (loop.parts.size() == 1 && !loop.parts[0].is_access() && continues(loop, loop.parts[0])) {
        Part inner = std::move(loop.parts[0]);
        inner.extent *= loop.extent;
        loop = std::move(inner);
      }
      parts.push_back(std::move(loop));
    }
    return parts;
  }
  // Whether each iteration of the outer loop continues where the inner one ended: both are one loop then.
  static bool continues(const Part& outer, const Part& inner) {
    const auto goes_on = [&](const Part& part, const auto& self) -> bool {
      if (part.is_access()) return part.mover.step(outer.loop) == inner.extent * part.mover.step(inner.loop);
      return std::all_of(part.parts.begin(), part.parts.end(), [&](const Part& one) { return self(one, self); });
    };
    return goes_on(inner, goes_on);
  }

  int add_node() {
    trace_.nodes.emplace_back();
    trace_.nodes.back().site_begin = int(trace_.sites.size());
    return int(trace_.nodes.size()) - 1;
  }
  void end_node(int at, std::int64_t extent, double touches) {
    Node& node = trace_.nodes[std::size_t(at)];
    node.end = int(trace_.nodes.size());
    node.extent = extent;
    node.site_end = int(trace_.sites.size());
    node.touches = touches;
  }
  void add_site(const Mover& mover, std::int64_t address) {
    Site site;
    site.address = address;
    site.huge = address >= std::int64_t(upper_half) * geometry_.line_bytes;
    site.store = mover.store;
    site.writes = mover.writes;
    trace_.sites.push_back(site);
    movers_.push_back(&mover);
  }
  void add_steps(int at, int loop, std::int64_t factor) {
    Node& node = trace_.nodes[std::size_t(at)];
    node.steps = int(trace_.steps.size());
    for (int s = node.site_begin; s < node.site_end; ++s)
      trace_.steps.push_back(movers_[std::size_t(s)]->step(loop) * factor);
  }

  double add(const Part& part) {
    const int at = add_node();
    if (part.is_access()) {
      add_site(part.mover, part.mover.address);
      end_node(at, 0, 1);
      return 1;
    }
    const bool leaf = std::all_of(part.parts.begin(), part.parts.end(), [](const Part& p) { return p.is_access(); });
    double touches = 0;
    if (leaf) {
      touches = touches_of_leaf(part, part.extent);
      const std::int64_t pieces =
          piece_ > 0 ? std::min<std::int64_t>(part.extent / 4, std::int64_t(touches / piece_)) : 0;
      if (pieces >= 4) {
        const std::int64_t length = part.extent / pieces;
        add_leaf(add_node(), part, 0, length);
        end_node(at, part.extent / length, touches);
        add_steps(at, part.loop, length);
        if (const std::int64_t rest = part.extent % length; rest > 0)
          add_leaf(add_node(), part, part.extent - rest, rest);
        return touches;
      }
      add_leaf(at, part, 0, part.extent);
      return touches;
    }
    for (const Part& inner : part.parts) touches += add(inner);
    touches *= double(part.extent);
    end_node(at, part.extent, touches);
    add_steps(at, part.loop, 1);
    return touches;
  }
  void add_leaf(int at, const Part& part, std::int64_t first, std::int64_t extent) {
    for (const Part& access : part.parts)
      add_site(access.mover, access.mover.address + first * access.mover.step(part.loop));
    end_node(at, extent, touches_of_leaf(part, extent));
    trace_.nodes[std::size_t(at)].leaf = true;
    add_steps(at, part.loop, 1);
  }
  double touches_of_leaf(const Part& part, std::int64_t extent) const {
    double busy = 1;  // iterations in which some access moves to another line
    for (const Part& access : part.parts) {
      const double step = double(std::abs(access.mover.step(part.loop)));
      busy += std::min(1.0, step / double(geometry_.line_bytes)) * double(extent - 1);
    }
    return std::min(busy, double(extent)) * double(part.parts.size());
  }

  const LoopProgram& program_;
  const Geometry& geometry_;
  const double piece_;
  const Layout layout_;
  Trace trace_;
  std::vector<const Mover*> movers_;  // parallel to Trace::sites
};

// A bijection of the numbers of `bits` bits.
Line scattered(Line number, int bits) {
  const Line mask = (Line(1) << bits) - 1;
  number = (number * 0x9E3779B1u) & mask;
  number ^= number >> (bits / 2);
  return (number * 0x85EBCA6Bu) & mask;
}

// Counts are stored in one array, so that a loop's change can be extrapolated as a whole: the touches, then those of
// each store of the program.
constexpr std::size_t most_levels = 3;
enum Count : std::size_t { tlb_misses, page_walks, level_counts };  // of a store
enum LevelCount : std::size_t { scattered_lines, prefetched_lines, written_lines, counts_of_level };
constexpr std::size_t counts_of_store = level_counts + most_levels * counts_of_level;

class Simulator {
 public:
  Simulator(Trace trace, std::size_t stores, const Geometry& geometry, const CacheSettings& settings)
      : trace_(std::move(trace)),
        settings_(settings),
        line_shift_(std::countr_zero(std::uint64_t(geometry.line_bytes))),
        page_shift_(std::countr_zero(std::uint64_t(geometry.page_bytes)) - line_shift_),
        huge_shift_(
            geometry.huge_page_bytes > 0 ? std::countr_zero(std::uint64_t(geometry.huge_page_bytes)) - line_shift_ : 0),
        tlb_entries_(geometry.tlb_entries),
        tlb_(geometry.tlb_entries, std::size_t(trace_.pages) + trace_.huge_pages),
        streams_(geometry.prefetch_streams),
        prefetches_(geometry.prefetch_streams > 0),
        counts_(1 + stores * counts_of_store) {
    assert(!geometry.levels.empty() && geometry.levels.size() <= most_levels);
    for (const CacheLevel& level : geometry.levels)
      caches_.emplace_back(std::max<std::int64_t>(1, level.bytes / geometry.line_bytes / level.ways), level.ways);
    if (geometry.l2_tlb_entries > 0)
      l2_tlb_.emplace(std::max<std::int64_t>(1, geometry.l2_tlb_entries / geometry.l2_tlb_ways), geometry.l2_tlb_ways);
    sure_of_ = std::min<std::int64_t>(geometry.levels[0].ways, geometry.tlb_entries);
    if (settings.touches > 0) {
      most_lines_ = std::min<std::size_t>(256, std::size_t(geometry.levels[0].bytes / geometry.line_bytes / 4));
      find_digests(0, int(trace_.nodes.size()));
    }
  }

  Traffic run() {
    for (int pass = 0; pass < 2; ++pass) {
      std::fill(counts_.begin(), counts_.end(), 0.0);
      pass_begun_ = simulated_;
      // Each nest of the program gets its share of the work.
      double all = 0;
      for (int n = 0; n < int(trace_.nodes.size()); n = trace_.nodes[std::size_t(n)].end)
        all += trace_.nodes[std::size_t(n)].touches;
      for (int n = 0; n < int(trace_.nodes.size()); n = trace_.nodes[std::size_t(n)].end) {
        const Node& node = trace_.nodes[std::size_t(n)];
        nest_begun_ = simulated_;
        allowed_ = std::int64_t(double(settings_.touches) * node.touches / all);
        enough_ = allowed_ / 16;
        run(n, node.end);
      }
    }
    Traffic traffic;
    traffic.levels.resize(caches_.size());
    for (std::size_t at = 1; at < counts_.size(); at += counts_of_store) {
      Misses& store = traffic.stores.emplace_back();
      const double* const counts = counts_.data() + at;
      store.tlb_misses = counts[tlb_misses];
      store.page_walks = counts[page_walks];
      for (std::size_t l = 0; l < caches_.size(); ++l) {
        const double* const lines = counts + level_counts + l * counts_of_level;
        store.levels.push_back({lines[scattered_lines], lines[prefetched_lines], lines[written_lines]});
        traffic.levels[l].scattered += lines[scattered_lines];
        traffic.levels[l].prefetched += lines[prefetched_lines];
        traffic.levels[l].written += lines[written_lines];
      }
      traffic.tlb_misses += store.tlb_misses;
      traffic.page_walks += store.page_walks;
    }
    traffic.touches = counts_[0] + double(simulated_ - pass_begun_);
    traffic.simulated = double(simulated_);
    return traffic;
  }

 private:
  void run(int begin, int end) {
    for (int n = begin; n < end; n = trace_.nodes[std::size_t(n)].end) {
      const Node& node = trace_.nodes[std::size_t(n)];
      if (node.digest >= 0)
        digested(node);
      else if (node.leaf)
        leaf(node);
      else if (node.extent > 0)
        loop(n);
      else
        single(trace_.sites[std::size_t(node.site_begin)]);
    }
  }

  void loop(int n) {
    const Node& node = trace_.nodes[std::size_t(n)];
    const std::int64_t begun = simulated_;
    const std::int64_t period = settings_.touches > 0 ? period_of(node) : 1;
    const std::size_t before = snapshots_.size();
    snapshots_.resize(before + counts_.size());
    note_counts(before);
    std::int64_t first_counted = 0, i = 0;
    while (i < node.extent) {
      const std::int64_t last = simulated_;
      run(n + 1, node.end);
      advance(node, 1);
      if (++i == node.extent || settings_.touches == 0) continue;
      // A loop is left after enough touches, so inner ones run whole and reuse over them is seen; one that has used up
      // what the nest is allowed is left sooner.
      const bool late = simulated_ - nest_begun_ > allowed_;
      const std::int64_t enough = late ? enough_ / 8 : enough_;
      const bool must_end = i >= 2 && simulated_ - last > 2 * enough;
      const bool may_end = i >= 3 && simulated_ - begun > enough;
      if (must_end || (may_end && i - first_counted >= period)) break;
      if (i - first_counted >= period) {
        first_counted = i;
        note_counts(before);
      }
    }
    advance(node, -i);
    if (i < node.extent) {
      extrapolate(before, double(node.extent - i) / double(i - first_counted));
      age(before);
    }
    snapshots_.resize(before);
  }
  // Lines are entered every `period` iterations.
  std::int64_t period_of(const Node& node) const {
    std::int64_t period = 1;
    for (int s = 0; s < node.site_end - node.site_begin; ++s) {
      const std::int64_t step = std::abs(trace_.steps[std::size_t(node.steps + s)]);
      if (step > 0 && step < (std::int64_t(1) << line_shift_))
        period = std::max(period, (std::int64_t(1) << line_shift_) / step);
    }
    return period;
  }
  void advance(const Node& node, std::int64_t iterations) {
    const std::int64_t* const steps = trace_.steps.data() + node.steps;
    Site* const sites = trace_.sites.data() + node.site_begin;
    for (int s = 0; s < node.site_end - node.site_begin; ++s) sites[s].address += steps[s] * iterations;
  }
  // Saves the counts so far in snapshots_; counts_ itself then has only the extrapolated touches.
  void note_counts(std::size_t at) {
    std::copy(counts_.begin(), counts_.end(), snapshots_.begin() + std::ptrdiff_t(at));
    snapshots_[at] += double(simulated_ - pass_begun_);
  }
  // Adds the counts since the snapshot `times` times again, and leaves the sum added in the snapshot.
  void extrapolate(std::size_t before, double times) {
    double* const added = snapshots_.data() + before;
    added[0] = times * (counts_[0] + double(simulated_ - pass_begun_) - added[0]);
    for (std::size_t i = 1; i < counts_.size(); ++i) added[i] = times * (counts_[i] - added[i]);
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += added[i];
  }
  // What the extrapolated misses would have pushed out.
  void age(std::size_t extrapolated) {
    std::array<double, counts_of_store> all{};
    for (std::size_t at = 1; at < counts_.size(); at += counts_of_store)
      for (std::size_t i = 0; i < counts_of_store; ++i) all[i] += snapshots_[extrapolated + at + i];
    for (std::size_t l = 0; l < caches_.size(); ++l) {
      const double* const lines = all.data() + level_counts + l * counts_of_level;
      if (const double fills = lines[scattered_lines] + lines[prefetched_lines]; fills >= 1) caches_[l].age(fills);
    }
    tlb_.age(all[tlb_misses]);
    if (l2_tlb_) l2_tlb_->age(all[page_walks]);
  }

  void single(Site& site) {
    come_to(site, site.address);
    touch(site);
  }

  // A nest that comes back to few lines again and again, as those of register tiles do: a line stays while the nest
  // runs unless too many of them want one set, so one touch of each line does, in the order of the last ones. Which
  // lines these are depends on where in a line each access begins.
  struct Touch {
    int site = 0;
    std::int32_t line = 0;  // from the one in which the site begins
  };
  struct Digest {
    // By beginnings(); without touches where lines push each other out, and the nest has to run.
    std::vector<std::pair<std::uint64_t, std::vector<Touch>>> known;
    std::size_t latest = 0;
  };
  // Marks the largest nests that can be digested; returns the touches of the nodes after that.
  double find_digests(int begin, int end) {
    double all = 0;
    for (int n = begin; n < end; n = trace_.nodes[std::size_t(n)].end) {
      Node& node = trace_.nodes[std::size_t(n)];
      if (node.extent > 0 && !node.leaf) {
        bool small = false;
        if (node.touches <= most_touches) {
          const std::vector<Touch> touches = touches_of(n);
          small = !touches.empty() && touches.size() <= most_lines_;
          if (small && double(touches.size()) < node.touches / 1.5) {
            node.digest = int(digests_.size());
            node.touches = double(touches.size());
            digests_.emplace_back().known.emplace_back(beginnings(node), touches);
          }
        }
        if (!small) node.touches = double(node.extent) * find_digests(n + 1, node.end);
      }
      all += node.touches;
    }
    return all;
  }
  // A hash of where in their lines the sites begin.
  std::uint64_t beginnings(const Node& node) const {
    std::uint64_t key = 0, factor = 1;
    const std::uint64_t within = (std::uint64_t(1) << line_shift_) - 1;
    for (int s = node.site_begin; s < node.site_end; ++s) {
      key += (std::uint64_t(trace_.sites[std::size_t(s)].address) & within) * factor;
      factor += 0x9E3779B97F4A7C16u;
    }
    return key;
  }
  std::vector<Touch> touches_of(int n) {
    collected_.clear();
    collect(n);
    // The last one of each line, seen from the end; a table with open addressing knows which were seen.
    const std::size_t room = std::bit_ceil(2 * collected_.size());
    seen_.assign(room, no_touch);
    std::vector<Touch> last;
    for (std::size_t i = collected_.size(); i-- > 0;) {
      const std::uint64_t touch = std::uint64_t(collected_[i].site) << 32 | std::uint32_t(collected_[i].line);
      std::size_t at = std::size_t((touch * 0x9E3779B97F4A7C15u) >> 32) & (room - 1);
      while (seen_[at] != no_touch && seen_[at] != touch) at = (at + 1) & (room - 1);
      if (seen_[at] == touch) continue;
      seen_[at] = touch;
      last.push_back(collected_[i]);
    }
    std::reverse(last.begin(), last.end());
    if (conflict(last)) return {};
    const Node& node = trace_.nodes[std::size_t(n)];
    for (Touch& touch : last) {
      touch.line -= std::int32_t(trace_.sites[std::size_t(touch.site)].address >> line_shift_);
      touch.site -= node.site_begin;
    }
    return last;
  }
  bool conflict(const std::vector<Touch>& touches) const {
    std::vector<Line> lines;
    for (const Touch& touch : touches) lines.push_back(Line(touch.line) & (upper_half * 2 - 1));
    std::sort(lines.begin(), lines.end());
    lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
    std::int64_t pages = 0;
    for (std::size_t i = 0; i < lines.size(); ++i) pages += i == 0 || page_of(lines[i]) != page_of(lines[i - 1]);
    if (pages > tlb_entries_) return true;
    for (Line& line : lines) line = caches_[0].set_of(line);
    std::sort(lines.begin(), lines.end());
    for (std::size_t i = caches_[0].ways(); i < lines.size(); ++i)
      if (lines[i] == lines[i - caches_[0].ways()]) return true;
    return false;
  }
  // The touches of a subtree, lines as numbers.
  void collect(int n) {
    const Node& node = trace_.nodes[std::size_t(n)];
    if (node.extent == 0) {
      collected_.push_back(
          {node.site_begin, std::int32_t(trace_.sites[std::size_t(node.site_begin)].address >> line_shift_)});
      return;
    }
    for (std::int64_t i = 0; i < node.extent; ++i) {
      if (node.leaf)
        for (int s = node.site_begin; s < node.site_end; ++s)
          collected_.push_back({s, std::int32_t(trace_.sites[std::size_t(s)].address >> line_shift_)});
      for (int m = n + 1; m < node.end; m = trace_.nodes[std::size_t(m)].end) collect(m);
      advance(node, 1);
    }
    advance(node, -node.extent);
  }
  void digested(const Node& node) {
    Digest& digest = digests_[std::size_t(node.digest)];
    const std::uint64_t key = beginnings(node);
    if (digest.known[digest.latest].first != key) {
      const auto found =
          std::find_if(digest.known.begin(), digest.known.end(), [&](const auto& known) { return known.first == key; });
      digest.latest = std::size_t(found - digest.known.begin());
      if (found == digest.known.end()) digest.known.emplace_back(key, touches_of(int(&node - trace_.nodes.data())));
    }
    if (digest.known[digest.latest].second.empty()) {
      loop(int(&node - trace_.nodes.data()));
      return;
    }
    Site* const sites = trace_.sites.data() + node.site_begin;
    for (const Touch& touched : digest.known[digest.latest].second) {
      Site& site = sites[touched.site];
      come_to_line(site, Line(std::int32_t(site.address >> line_shift_) + touched.line) & (upper_half * 2 - 1));
      touch(site);
    }
  }

  // Nothing happens from one iteration to the next unless some access moves to another line, so only those iterations
  // are simulated, all accesses of each: the order of last use is that of simulating all.
  void leaf(const Node& node) {
    Site* const sites = trace_.sites.data() + node.site_begin;
    const std::int64_t* const steps = trace_.steps.data() + node.steps;
    const int count = node.site_end - node.site_begin;
    for (int s = 0; s < count; ++s) sites[s].next = 0;
    for (std::int64_t at = 0; at < node.extent;) {
      std::int64_t next = node.extent;
      const std::int64_t missed_before = missed_;
      for (int s = 0; s < count; ++s) {
        Site& site = sites[s];
        if (site.next == at) {
          const std::int64_t address = site.address + steps[s] * at;
          come_to(site, address);
          site.next = steps[s] == 0 ? endless : at + iterations_in_line(address, steps[s]);
        }
        touch(site);
        next = std::min(next, site.next);
      }
      if (next > at + 1 && count > sure_of_ && missed_ > missed_before && !all_held(sites, count))
        repeat(sites, count, next - at - 1);
      at = next;
    }
  }
  std::int64_t iterations_in_line(std::int64_t address, std::int64_t step) const {
    const std::uint32_t bytes = std::uint32_t(1) << line_shift_;
    if (step >= bytes || -step >= std::int64_t(bytes)) return 1;
    const std::uint32_t within = std::uint32_t(address) & (bytes - 1);
    const std::uint32_t left = step > 0 ? bytes - within : within + 1;
    const std::uint32_t size = std::uint32_t(std::abs(step));
    if ((size & (size - 1)) == 0) return (left + size - 1) >> std::countr_zero(size);
    return (left + size - 1) / size;
  }
  bool all_held(const Site* sites, int count) const {
    for (int s = 0; s < count; ++s)
      if (!caches_[0].holds(sites[s].line) || !tlb_.holds(sites[s].page)) return false;
    return true;
  }
  // Iterations in which accesses push each other's lines out: they are all alike but for the first ones.
  void repeat(Site* sites, int count, std::int64_t times) {
    constexpr std::int64_t unlike = 3;
    const std::size_t before = snapshots_.size();
    snapshots_.resize(before + counts_.size());
    for (std::int64_t i = 0; i < std::min(times, unlike); ++i) {
      if (i + 1 == unlike) note_counts(before);
      for (int s = 0; s < count; ++s) touch(sites[s]);
    }
    if (times > unlike) extrapolate(before, double(times - unlike));
    snapshots_.resize(before);
  }

  void come_to(Site& site, std::int64_t address) {
    come_to_line(site, Line(address >> line_shift_) & (upper_half * 2 - 1));
  }
  void come_to_line(Site& site, Line line) {
    if (line == site.line) return;
    const std::int32_t moved = std::int32_t(line - site.line);
    if (site.line == no_line) {
      site.again = 0;
    } else if (moved == site.moved) {
      ++site.again;
    } else {
      site.again = 0;
      site.moved = moved;
    }
    site.line = line;
    site.page = page_of(line);
  }
  // Numbered from 0, those in the upper half after the others.
  Line page_of(Line line) const {
    return line < upper_half ? line >> page_shift_ : trace_.pages + ((line & (upper_half - 1)) >> huge_shift_);
  }
  Line physical(Line line) const {
    const int shift = line < upper_half ? page_shift_ : huge_shift_;
    const int bits = line_bits - 1 - shift;
    const Line page = scattered((line & (upper_half - 1)) >> shift, bits);
    return (line & upper_half) | page << shift | (line & ((Line(1) << shift) - 1));
  }

  void touch(Site& site) {
    ++simulated_;
    if (!tlb_.access(site.page)) missed_page(site);
    std::uint32_t victim = no_tag;
    if (!caches_[0].access(site.line, site.writes, victim)) missed(site, victim);
  }
  double* counts_of(const Site& site) { return counts_.data() + 1 + std::size_t(site.store) * counts_of_store; }
  void missed_page(const Site& site) {
    ++missed_;
    double* const counts = counts_of(site);
    counts[tlb_misses] += 1;
    std::uint32_t victim = no_tag;
    if (!l2_tlb_ || !l2_tlb_->access(site.page, false, victim)) counts[page_walks] += 1;
  }
  void missed(const Site& site, std::uint32_t victim) {
    ++missed_;
    double* const lines = counts_of(site) + level_counts;
    if (victim != no_tag && (victim & 1) != 0) write_back(lines, 0, physical(victim >> 1));
    bool expected = false;
    if (prefetches_) {
      const Line in_page = (Line(1) << page_shift_) - 1;  // prefetchers stop at pages of the small kind
      expected = streams_.expects(site.line >> page_shift_, std::int32_t(site.line & in_page));
      expected = expected || (site.again >= 2 && std::abs(site.moved) <= 2);
    }
    const LevelCount missed_line = expected ? prefetched_lines : scattered_lines;
    lines[missed_line] += 1;
    const Line line = caches_.size() > 1 ? physical(site.line) : 0;
    for (std::size_t level = 1; level < caches_.size(); ++level) {
      victim = no_tag;
      if (caches_[level].access(line, false, victim)) return;
      if (victim != no_tag && (victim & 1) != 0) write_back(lines, level, victim >> 1);
      lines[level * counts_of_level + missed_line] += 1;
    }
  }
  // A dirty line leaves the level; levels that do not have it pass it on.
  void write_back(double* lines, std::size_t level, Line line) {
    do lines[level * counts_of_level + written_lines] += 1;
    while (++level < caches_.size() && !caches_[level].make_dirty(line));
  }

  static constexpr double most_touches = 4096;

  Trace trace_;
  const CacheSettings settings_;
  const int line_shift_, page_shift_, huge_shift_;
  std::vector<Sets> caches_;
  const std::int64_t tlb_entries_;
  Pages tlb_;
  std::optional<Sets> l2_tlb_;
  Streams streams_;
  const bool prefetches_;
  std::int64_t sure_of_ = 0;  // this many accesses can never evict each other's lines or pages
  static constexpr std::uint64_t no_touch = ~std::uint64_t(0);
  std::vector<Digest> digests_;
  std::vector<Touch> collected_;     // scratch of touches_of
  std::vector<std::uint64_t> seen_;  // likewise
  std::size_t most_lines_ = 0;
  std::vector<double> counts_;
  std::vector<double> snapshots_;  // of counts_: a stack, of the loops at hand
  std::int64_t missed_ = 0;        // lines and pages, in the first cache and TLB
  std::int64_t simulated_ = 0, pass_begun_ = 0, nest_begun_ = 0;
  std::int64_t allowed_ = 0;  // touches of the nest at hand
  std::int64_t enough_ = 0;   // touches after which a loop may be left
};

}  // namespace

std::vector<std::int64_t> buffer_addresses(const LoopProgram& program, const Geometry& geometry) {
  return layout_of(program, geometry).addresses;
}

std::uint64_t hash(const Geometry& geometry) {
  std::uint64_t hash = base::hash_mix(geometry.levels.size());
  const auto add = [&](std::int64_t value) { hash = base::hash_combine(hash, std::uint64_t(value)); };
  for (const CacheLevel& level : geometry.levels)
    for (std::int64_t value : {level.bytes, level.ways, std::int64_t(level.shared)}) add(value);
  for (std::int64_t value : {geometry.line_bytes, geometry.page_bytes, geometry.huge_page_bytes, geometry.tlb_entries,
                             geometry.l2_tlb_entries, geometry.l2_tlb_ways, geometry.prefetch_streams})
    add(value);
  return hash;
}

Geometry share_of(Geometry geometry, std::int64_t cores) {
  for (CacheLevel& level : geometry.levels)
    if (level.shared) level.bytes = std::max(level.bytes / cores, level.ways * geometry.line_bytes);
  return geometry;
}

Traffic simulate_caches(const LoopProgram& program, const Geometry& geometry, const CacheSettings& settings) {
  const double piece = settings.touches > 0 ? 64 : 0;
  return Simulator(TraceMaker(program, geometry, piece).make(), program.stores.size(), geometry, settings).run();
}

Traffic TrafficMemo::traffic(const LoopProgram& program, const Geometry& geometry, const CacheSettings& settings) {
  const Key key{codegen::hash(program), {geometry, settings}};
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
  }
  // Simulated outside of the lock; two threads that ask for the same at once do it twice and get the same.
  Traffic traffic = simulate_caches(program, geometry, settings);
  const std::lock_guard lock(mutex_);
  return known_.try_emplace(key, std::move(traffic)).first->second;
}

std::int64_t TrafficMemo::simulations() const {
  const std::lock_guard lock(mutex_);
  return std::int64_t(known_.size());
}

}  // namespace graft::tasks
