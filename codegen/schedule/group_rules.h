// Private to this folder: sketches for GPUs, by axes and strides alone (rules.h for those of processors).
#pragma once

#include <vector>

#include "codegen/expression/computation.h"
#include "codegen/space/space.h"

namespace graft::codegen {

// One sketch: every stage that reduces (the last stage if none does) in groups of work-items. The last spatial axis is
// x, the first one along which an operand stays the same is y; all others are groups alone. Blocks of x and y are
// groups, within which items have neighbouring results or such that are a group's items apart; each keeps a tile of
// results, vectors along x. Operands are read from memory, or copied to the group's memory for a part of the outermost
// reduction axis. Sizes divide: there are no remainders.
std::vector<SketchSpace> group_sketches(const Computation& computation);

}  // namespace graft::codegen
