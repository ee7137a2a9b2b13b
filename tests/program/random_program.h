// Well-formed loop programs drawn from a seed, for property tests: every kind of loop, operation, role and scope
// occurs.
#pragma once

#include <cstdint>

#include "codegen/program/program.h"

namespace graft::codegen {

LoopProgram random_program(std::uint64_t seed);

}  // namespace graft::codegen
