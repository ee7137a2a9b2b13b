// What a data sheet says of a machine, as inputs beside a program's. Nothing measured and nothing of how the machine is
// timed: no cycles, latencies, penalties, misses. A table with them is shown without them, too (DESIGN.md, Leakage).
#pragma once

#include "features/encoding.h"

namespace graft::features {

// The encoding, which has one row a program, with the target's facts behind its own columns; it is named NAME+facts.
// All 0 without a target.
Encoding with_target_facts(const Encoding& encoding);

}  // namespace graft::features
