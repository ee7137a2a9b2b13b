// AutoTVM's context-relation feature as released ("curve"), for reproduction; use context_relation.h
// otherwise. From reading apache/tvm v0.16.0, src/autotvm/touch_extractor.cc, GetCurveSampleFeatureFlatten:
//
// * Buffers: those that a store at the greatest depth of run accesses, by their last access there. Ours are in order
//   of first use (theirs: by name), at most buffer_slots, so that the length is fixed. Register buffers are theirs
//   `.local` ones and count like others.
// * Points: one for each loop around that access, with log2 of elements touched (the product of extents of it and the
//   loops inside that move the access: overlapping windows are counted twice), of reuse (the product of the others), of
//   the top-down product; and a point 0.
// * The three are sorted on their own, so touched elements of the innermost loop meet the top-down product of the
//   outermost.
// * For threshold i: y of the last point whose x is at most i, and i - x. So it has nothing about vectors, strides,
// arithmetic.
#pragma once

#include "features/encoding.h"

namespace graft::features {

// One threshold, 2^0: the release passed the number of thresholds as a bool (fixed by TVM pull request 3004).
// Version 1.
Encoding context_relation_released();
// 20 thresholds, 2^0 .. 2^19, as its cost model used afterwards. Version 1.
Encoding context_relation_published();

}  // namespace graft::features
