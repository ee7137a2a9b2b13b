// The core's own time for a recorded function, by LLVM's machine code analyser. Private to this part: it speaks LLVM.
#pragma once

#include "codegen/machine/core_timing.h"
#include "codegen/machine/recording.h"

namespace graft::codegen {

// Whether LLVM has latencies and ports for the machine's cpu; itineraries (older cores) do not count.
bool has_scheduling_model(const llvm::TargetMachine& machine);

// Innermost loops, and nests of loops that unroll to few instructions, are simulated as endless sequences: the slope of
// cycles over iterations is charged per iteration, the intercept (fill and drain) per entry, in part; all other blocks
// are charged one by one. Calls and returns are left out. Needs a scheduling model.
base::Result<CoreTiming> simulate(const Recording& recording, const llvm::TargetMachine& machine,
                                  const CoreTimingSettings& settings);

}  // namespace graft::codegen
