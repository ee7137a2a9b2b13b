// What a data sheet says of a machine, as inputs beside a program's. Nothing measured and nothing of how the machine is
// timed: no cycles, latencies, penalties, misses. A table with them is shown without them, too (DESIGN.md, Leakage).
#pragma once

#include "features/encoding.h"

namespace graft::features {

// The target's facts, the same for all of its programs: they say something behind another encoding's columns only.
// All 0 without a target.
Encoding target_facts();

}  // namespace graft::features
