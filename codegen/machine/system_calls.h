// Private to this folder: how Linux is called on an architecture, as text of LLVM IR.
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

}  // namespace graft::codegen
