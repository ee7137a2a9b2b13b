// The pre-defined cost model as an encoding: a roofline over arithmetic, memory operations, loop control and the lines
// that each cache has to fetch, from the program and the target's data sheet alone. Nothing in it was fitted or
// measured: its rates are those of no machine. Its first column is the prediction, the others are what it is made of.
#pragma once

#include "features/encoding.h"

namespace graft::features {

// Version 1. Without a target one without vectors and caches is meant.
//
// Lines that a cache fetches for an access: those touched by the outermost loop all of whose inside, of all buffers,
// fits into it, each time that this loop begins; one for each executed load or store where no loop fits (the footprint
// argument of Wolf and Lam 1991). Of one buffer's accesses in one store the largest number counts. A parallel loop
// divides all of it by the rounds that its iterations need on the target's threads.
Encoding analytic();

}  // namespace graft::features
