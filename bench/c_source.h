// A loop program as C, as a person would write it: the input of C compilers for the baseline of every kernel.
#pragma once

#include <string>

#include "codegen/program/program.h"

namespace graft::bench {

// `void NAME(void* const* p)`, p the program's parameters in order; within, a function of `restrict` pointers that is
// not inlined, temporaries static. `void NAME_prepare(void* const* p)`: what comes once before, from constants. Loop
// kinds are ignored: every loop is a plain for.
std::string to_c(const codegen::LoopProgram& program, const std::string& name);

}  // namespace graft::bench
