// A machine that tests lower programs for: x86-64-v3, as no host needs to be.
#pragma once

#include "codegen/expression/target.h"

namespace graft {

inline codegen::Target small_target() {
  codegen::Target target;
  target.triple = "x86_64-unknown-linux-gnu";
  target.cpu = "x86-64-v3";
  target.vector_bits = 256;
  target.vector_registers = 16;
  return target;
}

}  // namespace graft
