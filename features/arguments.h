// A candidate's own data, without its program: the arguments of its sketch. Fast, and of little use beyond one
// sketch: across sketches (hence across operators, and mostly across shapes) a position means something else.
#pragma once

#include "features/encoding.h"

namespace graft::features {

inline constexpr int most_arguments = 32;    // further ones are cut
inline constexpr int most_alternatives = 8;  // of one choice; the last place is shared with all further ones
inline constexpr int sketch_buckets = 32;

// AutoTVM's "knob" feature in one length: a number as its logarithm, a choice as one of most_alternatives places, the
// sketch as one of sketch_buckets by its hash. All 0 without a candidate. Version 1.
Encoding knobs();

}  // namespace graft::features
