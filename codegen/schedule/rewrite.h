// Steps applied one by one to a computation: the plan of each stage's nest, before loops are made. The
// schedule's meaning is defined here; `lower` only carries it out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "codegen/expression/computation.h"
#include "codegen/program/program.h"
#include "codegen/schedule/step.h"

namespace graft::codegen {

struct LoopPlan {
  int axis = 0;           // of the stage
  int level = 0;          // 0 is outermost
  std::int64_t step = 1;  // elements of the axis that one iteration covers
  LoopKind kind = LoopKind::serial;
};

struct PackPlan {
  int tensor = 0;
  int above = 0;        // position in StagePlan::loops
  std::int64_t by = 0;  // neighbours copied at once; 0: in the order of the stage's own loops
};

struct ComputePlan {
  int stage = 0;                 // the producer
  int above = 0;                 // position in the consumer's loops
  std::vector<Interval> needed;  // by dimension of the producer, relative to the position of the consumer's loops
};

struct PrefetchPlan {
  int tensor = 0;
  int loop = 0;  // position in StagePlan::loops
  std::int64_t distance = 1;
};

struct StagePlan {
  std::vector<LoopPlan> loops;        // outermost first
  std::vector<std::int64_t> extents;  // by axis: of the stage, or the most that its consumer needs at once
  int accumulate = -1;                // position from which results are kept in a separate tile; -1: none
  std::vector<PackPlan> packs;
  std::vector<ComputePlan> computes;  // producers before those of the same position that read them
  std::vector<PrefetchPlan> prefetches;
  int lanes = -1;            // position of the innermost loop, whose lanes have separate results; -1: none
  int tensorized = -1;       // position from which the loops are an intrinsic's; -1: none
  std::string intrinsic;     // its name
  int fused = -1;            // the stage applied at write-back; -1: none; a fused stage may have another fused to it
  bool is_fused = false;     // this stage is applied at another's write-back
  bool is_computed = false;  // this stage is computed in tiles within another's loops
  bool scheduled = false;    // named by a step
};

std::string loop_name(const Stage& stage, const LoopPlan& loop);  // "i.0"

// Most elements of its axis that the loop at `position` runs over: the step of the next outer loop of the axis, or all.
std::int64_t range_of(const StagePlan& plan, int position);
// Most iterations of the loop at `position`, remainders included.
std::int64_t most_trips(const StagePlan& plan, int position);
// Whether no loop outside of `position` iterates more than once (there may be loops of one trip, such as those of a
// batch of one).
bool is_outermost(const StagePlan& plan, int position);

// Positions from the first parallel loop that iterates to one past the last one, which form one range of tasks: loops
// between them and outside of them iterate once, and nothing is packed, computed or kept between them. {0, 0}: none.
struct Band {
  int begin = 0, end = 0;
};
Band band_of(const StagePlan& plan);
// The same with loops of blocks of work-items, also those of one iteration.
Band band_with_blocks(const StagePlan& plan);
// What is between the loops of the stage's band and must not be.
std::optional<base::Reason> fault_of(const Computation& computation, const Stage& stage, const StagePlan& plan,
                                     const Band& band);

// One plan per stage. A Reason names the step that does not apply.
base::Result<std::vector<StagePlan>> apply(const Computation& computation, const Schedule& schedule);

}  // namespace graft::codegen
