// Micro-kernels that graft has itself: dot products of four bytes or of two bf16 each, added to lanes of 32 bits, in
// the instructions that a target has for them; and of signed bytes with numbers of four or two bits, several in a byte.
// Schedules carry their text (program/intrinsic.h); these are what spaces by rule take.
#pragma once

#include <span>
#include <vector>

#include "codegen/expression/target.h"
#include "codegen/program/intrinsic.h"

namespace graft::codegen {

// Those that the target can run, in vectors as wide as it has them; none where it has no such instruction.
std::vector<IntrinsicPointer> dot_products(const Target& target);

// Whether all of these are such dot products, of any target.
bool are_dot_products(std::span<const IntrinsicPointer> intrinsics);

}  // namespace graft::codegen
