// Private to this folder: the freestanding program around a kernel - start, system calls, clock, output - as an object
// for the target. No libc, no files, no threads: parallel_for runs one iteration after the other, so times of parallel
// programs are those of one core.
#pragma once

#include <string>

#include "base/error.h"
#include "codegen/expression/reference.h"
#include "codegen/expression/target.h"
#include "codegen/machine/compile.h"

namespace graft::codegen {

// Relocatable ELF with `_start`, to be linked with `object`. Prints what link_executable (link.h) promises. A Reason
// for an architecture whose system calls are not known here.
base::Result<std::string> harness(const Object& object, const Target& target, const Computation& computation,
                                  const Reference& reference, int repetitions);

}  // namespace graft::codegen
