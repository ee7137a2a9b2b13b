// One row for each store of `run`: the groups of features of Ansor (apache/tvm v0.16.0, src/auto_scheduler/feature.cc),
// 164 columns, computed as their names say. A model scores the rows and adds them up.
//
// Differences from Ansor's: multiply-adds are recognised; index arithmetic does not count as work of the store;
// integers have an intensity curve; positions of vector, unrolled and parallel loops are distinguished; lines of an
// access count the loops that skip it once, unique lines are counted per access; several stores to a buffer have a row
// each, so that a reduction does not hide its initial fill; buffers are those in memory, register buffers count as
// allocated. Kept for the list's sake, always 0: other functions, bools and selects, which loop programs do not have.
#pragma once

#include "features/encoding.h"

namespace graft::features {

Encoding stores();  // version 1, Shape::rows, in order of run

}  // namespace graft::features
