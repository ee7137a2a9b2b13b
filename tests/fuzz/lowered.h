// Shared by targets that lower something.
#pragma once

#include "codegen/program/program.h"
#include "tests/fuzz/target.h"

namespace graft::fuzz {

inline bool well_formed(const codegen::LoopProgram& program) {
  return accepted([&] {
           check(program, "program");
           return true;
         })
      .has_value();
}

}  // namespace graft::fuzz
