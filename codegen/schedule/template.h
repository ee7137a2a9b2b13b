// A space as a user writes it: new sketches with domains, or the derived ones with parts fixed, knobs added
// and points forbidden. A file of lines; `#` begins a comment.
//
//   sketch blocked                              begins a sketch (sketch.h); the lines below are its steps
//   tile C i $i1 $i2 $i3
//   order C $outer{i.0 j.0|j.0 i.0} l.0 i.1 j.1 l.1 i.2 j.2 i.3 j.3
//   ...
//   domain i1 i2 i3 = splits(C.i; powers)       what the arguments may be, jointly
//   domain outer = all
//   forbid $i3 * $j3 > registers - 4            points with this are not schedules
//
//   from rules                                  begins with the derived sketches (all, or `from rules NAME`, one);
//   $spread{|parallel C i.0}                    steps below are added to them
//   fix C_pack_B = {pack C B above l.0}         keeps what has this value (or one of several)
//   forbid $C_i_3 < 4
//
// Values are integers or constants, `{text}` (the alternative of `$name{a|b|...}` with this text), rows of both in
// brackets where a domain has several arguments, `all` alternatives, or `splits(EXTENT; POLICY)`: chains of tile sizes,
// each a multiple of the next, by a policy of splits.h (usual, factors, powers, tails). Conditions are
// expressions of constraint.h with the operators of C. Constants are the extents STAGE.AXIS, `lanes` (of a vector of
// the first tensor's type) and `registers`. In `from rules`, a statement concerns the sketches that have its arguments.
//
// Intrinsics (program/intrinsic.h) are written among the steps of the sketches that name them.
//
// Without a domain, all alternatives are allowed, and for the sizes of a tile step all usual chains.
#pragma once

#include <span>
#include <string_view>

#include "codegen/expression/target.h"
#include "codegen/space/space.h"

namespace graft::codegen {

// Throws UserError ("<place>:<line>:<column>: ..."). Conditions on arguments of one domain are applied to its rows
// here; the space applies the others. `from rules` has sketches for these intrinsics.
Space parse_space(std::string_view text, std::string_view place, const Workload& workload, const Target& target,
                  std::span<const IntrinsicPointer> intrinsics = {});

}  // namespace graft::codegen
