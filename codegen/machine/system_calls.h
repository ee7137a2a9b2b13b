// Private to this folder: what code without a system's libraries is made of, as text of LLVM IR: how Linux is called on
// an architecture, the clock, kernels run and timed.
#pragma once

#include <optional>
#include <string>

#include "codegen/expression/target.h"

namespace graft::codegen {

struct SystemCalls {
  int write, exit, clock_gettime, setitimer;
  const char* instruction;
  const char* constraints;  // result; number; three arguments; what is lost
  const char* start;        // assembly after "_start:": an aligned stack, then graft_main
};

// nullopt for an architecture whose calls are not known here.
std::optional<SystemCalls> system_calls(const Target& target);

// Definitions of `i64 @system(number, a, b, c)` and `i64 @now()`, the nanoseconds of the monotonic clock, for a module
// that has neither.
std::string clock_text(const SystemCalls& calls);

// `void @serial_for(context, body, closure, n)`: the parallel_for (compile.h) of those that bring none.
std::string serial_for_text();

// `i64 @timed(run, buffers, workspace, parallel_for, context, runs)`: nanoseconds of this many runs of a kernel; needs
// @now.
std::string timed_text();

}  // namespace graft::codegen
