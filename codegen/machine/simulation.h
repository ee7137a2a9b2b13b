// The core's own time for a recorded function, by LLVM's machine code analyser. Private to this part: its interface has
// LLVM types.
#pragma once

#include "codegen/machine/core_timing.h"
#include "codegen/machine/recording.h"

namespace graft::codegen {

// Whether LLVM has latencies and ports for the machine's cpu; itineraries (older cores) do not count.
bool has_scheduling_model(const llvm::TargetMachine& machine);

// Innermost loops, and nests of loops that unroll to few instructions, are simulated as endless sequences: the slope of
// cycles over iterations is charged per iteration, the intercept (fill and drain) per entry, in part; all other blocks
// are charged one by one. What a sequence writes to a slot of the stack or to a named place of memory and reads there
// again is a dependence. Calls and returns are left out. Needs a scheduling model.
base::Result<CoreTiming> simulate(const Recording& recording, const llvm::TargetMachine& machine,
                                  const CoreTimingSettings& settings);

}  // namespace graft::codegen
