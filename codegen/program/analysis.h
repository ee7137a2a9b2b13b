// Counts of a loop program that need no execution: trips, touched elements, reuse, strides, footprints. Read
// by limits, features and the simulator; nothing here depends on a machine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "codegen/program/program.h"

namespace graft::codegen {

// One access of a store in `run`, seen from one enclosing loop (fixed outer iterations, this loop and all inside run).
struct Touch {
  std::int64_t stride = 0;  // elements that the flattened offset moves per step of this loop
  // Upper bound on the distinct elements touched by this loop and all inside: the product over dimensions of the
  // interval's width, at most the trips of the loops in that dimension; and no more than the trips of all loops in the
  // index.
  std::int64_t touched = 1;
  std::int64_t reuse = 1;  // executions of the access in this loop and inside / touched (rounded down, at least 1)
  std::int64_t bytes = 0;  // touched * element size
  // Distinct lines of `line_bytes`, as if every row began a new line: rows (contiguous, dimensions that are walked
  // whole joined to the next) times the lines of a row's span; no more than lines from the first element to the last,
  // nor than elements. 0 unless requested.
  std::int64_t lines = 0;
};
inline constexpr std::int64_t line_bytes = 64;  // a unit for counting memory, not a property of a machine

struct AccessSite {
  int store = 0;  // position in LoopProgram::stores
  int load = -1;  // position in the store's value.loads, or -1 for the target
  int buffer = 0;
  bool writes = false;             // the target; with a combine it is read too
  std::span<const Touch> touches;  // parallel to StoreContext::loops of its store
};

// A store of `run` with the loops around it, outermost first.
struct StoreContext {
  int store = 0;
  std::span<const int> loops;              // positions in LoopProgram::loops
  std::span<const std::int64_t> top_down;  // product of extents from the outermost loop down to and including this one
  std::span<const std::int64_t>
      bottom_up;                // product of extents of this loop and those inside, on the path to the store
  std::int64_t executions = 1;  // how often the store runs
};

// Made for each of the many programs of a search: all lists are stored in three vectors. Move only, as its
// spans point into these.
struct Analysis {
  std::vector<StoreContext> stores;  // in order of `run`
  std::vector<AccessSite> sites;     // for each store: target first, then loads in order

  Analysis() = default;
  Analysis(Analysis&&) = default;
  Analysis& operator=(Analysis&&) = default;

  std::vector<int> loops;              // storage of the spans
  std::vector<std::int64_t> products;  // .
  std::vector<Touch> touches;          // .
};
enum class Lines { left_out, counted };
Analysis analyse(const LoopProgram& program, Lines lines = Lines::left_out);

// Visits the stores of `run` in order, for callers that look at many programs and keep little of each;
// an Analysis is made from it. Results are valid until the same function, or next(), is called again.
class StoreWalk {
 public:
  explicit StoreWalk(const LoopProgram& program, Lines lines = Lines::left_out);
  bool next();  // moves to the first, then the next store; false after the last
  const StoreContext& context() const { return context_; }
  bool entered() const { return entered_; }  // the loops around it differ from those around the previous store
  // For an access of the store, by level of the context's loops.
  std::span<const Touch> touches(const Access& access);
  std::int64_t stride(const Access& access, std::size_t level);  // a single stride of these: much cheaper

 private:
  struct Move {  // the movement of an access per step of a loop
    std::int64_t stride = 0;
    std::int64_t distance = 0;      // of the index along `dimension`
    int dimension = -1, more = -1;  // more: further dimensions, for a diagonal: position in diagonals_
  };
  struct Side {  // one side of the box that an access touches, along a dimension
    std::int64_t width = 1, trips = 1;
    std::int64_t distinct() const { return width < trips ? width : trips; }
    void move(std::int64_t distance, std::int64_t extent) {
      width += distance * (extent - 1);
      trips *= extent;
    }
  };

  void enter(const Node& loop);
  void place(const Access& access);
  std::int64_t lines_of(const std::vector<std::int64_t>& shape, std::int64_t bytes) const;

  const LoopProgram& program_;
  const bool count_lines_;
  StoreContext context_;
  bool entered_ = false;
  std::size_t node_ = 0;                                      // the next of run
  std::vector<int> level_of_;                                 // by loop; valid for the surrounding loops
  std::size_t depth_ = 0;                                     // loops around it; by level, with room for more:
  std::vector<int> loops_, ends_;                             // positions in the program's loops, ends in run
  std::vector<std::int64_t> extents_, top_down_, bottom_up_;  // .
  std::vector<Move> moves_;                                   // of one access
  std::vector<Touch> touches_;                                // .
  std::vector<Move> diagonals_;
  std::vector<Side> sides_;  // by dimension
};

const Access& access_of(const LoopProgram& program, const AccessSite& site);

// Calls visit(buffer, access, writes) for every access of the stores in body[begin, end); what a combine reads is not
// visited apart.
template <class Visit>
void for_each_access(const LoopProgram& program, const Body& body, int begin, int end, Visit visit) {
  for (int n = begin; n < end; ++n) {
    const Node& node = body[std::size_t(n)];
    if (node.kind != Node::Kind::store) continue;
    const Store& store = program.stores[std::size_t(node.item)];
    visit(store.target.tensor, store.target, true);
    for (const Access& load : store.value.loads) visit(load.tensor, load, false);
  }
}

// Whether two iterations of a band of loops never meet in an element, where these are all accesses to its buffer within
// the band. A loop of the band is separated when some dimension of every access tells its value: its step there is
// beyond all that smaller steps and the loops inside can add. `around`: loops that have one value for all iterations.
bool is_divided(const LoopProgram& program, std::span<const int> band, std::span<const Access* const> accesses,
                std::span<const int> around = {});

// Whether an innermost loop (of those that are neither unrolled nor vectors) reads or writes memory at a place that it
// does not move.
bool repeats_accesses(const LoopProgram& program);

// Arithmetic operations that `run` executes (a combine counts one).
std::int64_t flops(const LoopProgram& program);

}  // namespace graft::codegen
