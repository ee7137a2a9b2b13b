// Private to this folder: sketches for GPUs, by axes and strides alone (rules.h for those of processors).
#pragma once

#include <vector>

#include "codegen/expression/computation.h"
#include "codegen/expression/target.h"
#include "codegen/space/space.h"

namespace graft::codegen {

// Sketches in which every stage that reduces (the last stage if none does) is a launch of its own: x is the innermost
// spatial axis along which the operands are contiguous, y one along which another operand stays the same; all others
// are groups alone. Blocks of x and y are groups, within which items have neighbouring results or such that are a
// group's items apart; each keeps a tile of results, vectors along x. Operands are read from memory, or copied to the
// group's memory for a part of the outermost reduction axis. Then, where they apply:
//
// * rows: stages that go through the same rows in one launch, a group for each row; what sums along the row keeps a
//   part sum for each item (rfactor);
// * parts: where there are few results, part sums in a launch of their own (rfactor);
// * Winograd's stages, each a launch.
std::vector<SketchSpace> group_sketches(const Computation& computation, const Target& target);

}  // namespace graft::codegen
