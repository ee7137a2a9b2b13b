// The program as a tree, for networks that walk it (TreeGRU): a root for the program, below it the loops and stores
// of `run` by nesting. Stores are the leaves.
#pragma once

#include "features/encoding.h"

namespace graft::features {

// Version 1, Shape::tree. Row 0 is the root (parent -1), the other rows are run's nodes in order, parents first.
// Columns that do not apply to a node's kind are 0. The columns of a buffer (b0 .. b4, of the largest ones, buffers.h)
// are the same buffer's in all nodes.
Encoding tree();

}  // namespace graft::features
