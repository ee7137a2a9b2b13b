// Facts of a machine's data sheet, as inputs in addition to a program's. Nothing measured and nothing about the
// machine's timing: no cycles, latencies, penalties, misses. A table with them is shown without them, too (DESIGN.md,
// Leakage).
#pragma once

#include "features/encoding.h"

namespace graft::features {

// The target's facts, the same for all of its programs: they are only useful after another encoding's columns.
// All 0 without a target.
Encoding target_facts();

}  // namespace graft::features
