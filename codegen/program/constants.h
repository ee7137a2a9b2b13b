// Splits a program whose constants are known when it is compiled: the part that prepares them runs once, when
// it is compiled, and the other part takes the results as constants.
#pragma once

#include <vector>

#include "codegen/program/program.h"

namespace graft::codegen {

struct WithoutPrepare {
  LoopProgram prepare;  // its `run` is the program's prepare; parameters: the constants, then, as outputs, `prepared`
  LoopProgram run;      // parameters: the program's, then, as constants, `prepared`; nothing to prepare
  std::vector<int> prepared;  // positions in buffers of either: written by prepare and read by run; may be empty
};
WithoutPrepare without_prepare(const LoopProgram& program);

// Whether `run` reads or writes a buffer.
bool runs_with(const LoopProgram& program, int buffer);

// Whether a buffer is a temporary in memory that `prepare` writes for `run`.
bool is_prepared(const LoopProgram& program, int buffer);

}  // namespace graft::codegen
