// Counts of a program's work on its target, from the program and the target's data sheet alone: vector operations,
// registers, loop control, and the lines that each cache has to fetch. Nothing in it is fitted, measured or simulated,
// and it has no rates of a machine (DESIGN.md, Leakage: a table with these is shown without them, too).
#pragma once

#include "features/encoding.h"

namespace graft::features {

// The pre-defined cost model as an encoding: a roofline, whose first column is the prediction and whose others
// are its parts.
//
// Version 1. Without a target, one without vectors and caches is assumed.
//
// Lines that a cache fetches for an access: those touched by the outermost loop whose whole footprint, over all
// buffers, fits into it, each time that this loop begins; one for each executed load or store if no loop fits (the
// footprint argument of Wolf and Lam 1991). Among one buffer's accesses in one store the largest number counts. A
// parallel loop divides all of it by the rounds that its iterations need on the target's threads.
Encoding analytic();

// The same columns and further ones: ratios to arithmetic, the lines of each large buffer (buffers.h), vector
// registers, single elements that vector loops move, lanes that stay empty, reuse inside of each cache; accumulations
// that wait for each other, pages, ends of loops, the work of one execution of the straight-line code, lines that
// share few sets of a cache, lines written; and of the target alone how wide its vectors are and how many. Page and
// table sizes, places and foreseen loops are rules of thumb, the same for all targets. It follows an encoding of the
// program alone, as input of learned models.
Encoding on_target();

}  // namespace graft::features
