// Private to this folder: parts of code that uses no system libraries, as text of LLVM IR: system calls of Linux on
// an architecture, the clock, running and timing kernels.
#pragma once

#include <optional>
#include <string>

#include "codegen/expression/target.h"

namespace graft::codegen {

struct SystemCalls {
  int write, exit, clock_gettime, setitimer;
  const char* instruction;
  const char* constraints;  // result; number; three arguments; clobbers
  const char* start;        // assembly after "_start:": an aligned stack, then graft_main
};

// nullopt for an architecture whose system calls are not known here.
std::optional<SystemCalls> system_calls(const Target& target);

// `i64 @system(number, a, b, c)`.
std::string system_text(const SystemCalls& calls);

// `i64 @graft.now()`, the nanoseconds of the monotonic clock; needs @system.
std::string clock_text(const SystemCalls& calls);

// `void @serial_for(context, body, closure, n)`: the parallel_for (compile.h) for callers without their own.
std::string serial_for_text();

// `i64 @timed(run, buffers, prepared, scratch, parallel_for, context, runs)`: nanoseconds for `runs` runs of a kernel;
// needs
// @graft.now.
std::string timed_text();

}  // namespace graft::codegen
