// The program as a tree, for networks that walk it (TreeGRU): a root for the program, below it the loops and stores of
// `run` as they stand in each other. Stores are the leaves.
#pragma once

#include "features/encoding.h"

namespace graft::features {

// Version 1, Shape::tree. Row 0 is the root (parent -1), the other rows are run's nodes in order, parents in front.
// What says nothing about a node's kind is 0. The columns of a buffer (b0 .. b4, of the largest ones, buffers.h) are
// the same buffer's in all nodes.
Encoding tree();

}  // namespace graft::features
