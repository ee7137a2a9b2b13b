// Private to this folder: the freestanding program around kernels - start, system calls, clock, output - as an object
// for the target. No libc, no files, no threads: parallel_for runs the iterations in order, so times of parallel
// programs are times on one core.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "codegen/expression/reference.h"
#include "codegen/expression/target.h"
#include "codegen/machine/compile.h"
#include "codegen/machine/link.h"

namespace graft::codegen {

// Relocatable ELF with `_start`, to be linked with the objects. Does what link_executable (link.h) promises. The first
// kernel's parameter p is the symbol `data<p>`, the memory of all `prepared` and `scratch`. A Reason for an
// architecture whose system calls are not known here.
base::Result<std::string> harness(const std::vector<const Object*>& objects, const Target& target,
                                  const Computation& computation, const Reference& reference,
                                  const RunSettings& settings);

}  // namespace graft::codegen
