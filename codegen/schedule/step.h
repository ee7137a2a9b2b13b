// The one list of scheduling steps. A step is a comparable, printable value; a schedule is a list of steps. Loops of a
// stage are named "<axis>.<level>", outermost level first; before any tile an axis has one loop "<axis>.0".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace graft::codegen {

// Names of steps are versions: datasets and journals permanently store sketches as text and the hashes of the programs
// that they made. The effect of a step's name never changes; a step with another effect, even a better one, gets a new
// name, and the old one stays. tests/datasets/frozen checks this with programs of every step.
//
// The form and effect of each: step_forms.h. absorb, rfactor, winograd, reciprocal, unsign and layout come before all
// others, tile and order before a stage's other steps, the steps of a stage that is computed within another one after
// that compute.
#define GRAFT_STEPS(X) \
  X(tile)              \
  X(order)             \
  X(vector)            \
  X(unroll)            \
  X(parallel)          \
  X(accumulate)        \
  X(pack)              \
  X(fuse)              \
  X(absorb)            \
  X(compute)           \
  X(rfactor) X(winograd) X(tensorize) X(prefetch) X(layout) X(block) X(copy) X(bind) X(lanes) X(reciprocal) X(unsign)

enum class StepKind {
#define X(name) name,
  GRAFT_STEPS(X)
#undef X
};
std::string_view name_of(StepKind kind);
std::vector<std::string> step_names();

struct Step {
  StepKind kind = StepKind::tile;
  std::string stage;
  // tile, rfactor, reciprocal: axis; pack, prefetch, copy, unsign: tensor; fuse: consumer; absorb, compute: producer;
  // tensorize: intrinsic; bind: kind; else empty
  std::string subject;
  // layout, block: stored dimensions; copy: axes; order, bind, vector, unroll, parallel, tensorize, prefetch, lanes;
  // accumulate, pack, compute: those after "above"
  std::vector<std::string> loops;
  std::vector<std::int64_t> sizes;  // tile; copy: by axis; pack: N; rfactor, winograd, prefetch: one
  bool operator==(const Step&) const = default;
};
using Schedule = std::vector<Step>;

std::string to_text(const Step& step);
Step parse_step(std::string_view line, std::string_view place);                            // throws UserError
Step step_from_words(const std::vector<std::string_view>& words, std::string_view place);  // the same, already split
std::string to_text(const Schedule& schedule);                                             // a line a step

}  // namespace graft::codegen
