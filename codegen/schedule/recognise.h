// A schedule finds its place in a space: which sketch, filled with which arguments, has these very steps, or the same
// ones of a workload under other letters.
#pragma once

#include "base/error.h"
#include "codegen/expression/target.h"
#include "codegen/schedule/step.h"
#include "codegen/space/space.h"

namespace graft::codegen {

// The arguments with which the sketch gives these steps, in this order. A Reason where there are none, with the first
// step that no line of the sketch has.
base::Result<std::vector<std::int64_t>> recognised(const Schedule& schedule, const Sketch& sketch);
// The candidate of the space that has these steps, of the first of its sketches that gives them. Whether its arguments
// are in their domains is not asked: tile sizes may be a user's own. A Reason where no sketch gives them, of the one
// that got furthest.
base::Result<Candidate> recognised(const Schedule& schedule, const Space& space);

// The candidate of the space that does what this one does, of a workload that computes the same under other letters or
// was written in another way (Workload::key): of the sketch in the same place of its own space by rule, which no names
// go into, with the same arguments. A Reason where there is none, or where its program is another one.
base::Result<Candidate> renamed(const Candidate& candidate, const Space& space, const Target& target);

}  // namespace graft::codegen
