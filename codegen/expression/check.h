// Private to this folder: finds what makes a computation ill-formed, independent of where it was written, so that the
// parser can point into a text and `checked` can name a place. Checks only; nothing is repaired.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "codegen/expression/computation.h"

namespace graft::codegen {

struct Problem {
  int tensor = -1;   // the tensor it is about (of a stage: the one it writes), -1: the computation as a whole
  std::string text;  // "index 0 of A runs through 0..512, its extent is 512"
};
// The first problem in order of tensors and stages, or nothing.
std::optional<Problem> problem_of(const Computation& computation);

// "unknown type 'f16'; known: f32, f64, i32"
std::string unknown_dtype(std::string_view name);

}  // namespace graft::codegen
