// What a program does on its target, from the program and the target's data sheet alone: vector operations, registers,
// loop control, and the lines that each cache has to fetch. Nothing in it was fitted, measured or simulated, and no
// rate of a machine is among it (DESIGN.md, Leakage: a table with these is shown without them, too).
#pragma once

#include "features/encoding.h"

namespace graft::features {

// The pre-defined cost model as an encoding: a roofline, whose first column is the prediction and whose others are what
// it is made of.
//
// Version 1. Without a target one without vectors and caches is meant.
//
// Lines that a cache fetches for an access: those touched by the outermost loop all of whose inside, of all buffers,
// fits into it, each time that this loop begins; one for each executed load or store where no loop fits (the footprint
// argument of Wolf and Lam 1991). Of one buffer's accesses in one store the largest number counts. A parallel loop
// divides all of it by the rounds that its iterations need on the target's threads.
Encoding analytic();

// The same columns and what they leave out: ratios to arithmetic, the lines of each large buffer (buffers.h), vector
// registers, single elements that vector loops move, lanes that stay empty, reuse inside of each cache; accumulations
// that wait for each other, pages, ends of loops, what one execution of the straight-line code does, lines that crowd
// at few places of a cache, lines written; and of the target alone how wide its vectors are and how many. Page and
// table sizes, places and foreseen loops are rules of thumb, the same for all targets. Stands behind an encoding of the
// program alone, as inputs of learned models.
Encoding on_target();

}  // namespace graft::features
