// Private to this room: numbers in which kernels that are equal otherwise differ.
#pragma once

#include "graph/fuse.h"

namespace graft::graph {

// Literals by which groups differ that are equal otherwise, such as the scales and zero points that a network has learnt
// for each of its equal layers, become constants that the groups read: then they are one kernel, tuned once.
void share_kernels(Groups& groups);

}  // namespace graft::graph
