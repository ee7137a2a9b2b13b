// Steps that change stages, applied before any loop is planned: other steps name the stages of the result.
//
//   absorb S P      the producer P written into S's expression
//   rfactor S l f   S[x] reduces over l and further axes r. With l = f*l_o + l_i it becomes S.rf[x, l_i] over r, l_o,
//                   and S[x] over l_i of S.rf: l_i, often contiguous in memory, may be a vector
//   layout T ...    T stored in blocks or another order (relayout.h); block T ... the same
//   copy S T a n    T copied for S: S.T[d..] = T[d..], or S.T[a, d..] = T[what S reads for n of a, from d = 0 on]
//   reciprocal S l  what S divides by and what stays along l: S.reciprocal[x] = 1 / that, over the axes x that move it,
//                   and S multiplies
//   unsign S T      S sums products of T, of i8: S.T[d..] = T[d..] + 128 in u8, S.offset sums what T is multiplied
//   with,
//                   and 128 times that is subtracted from S where it is read (of an output: of S.sum, which S reads)
//   winograd S m    stages of Winograd's algorithm in S's place (winograd.h)
#pragma once

#include "base/error.h"
#include "codegen/expression/computation.h"
#include "codegen/schedule/step.h"

namespace graft::codegen {

bool is_restructuring(StepKind kind);

// `amplification`: factor on the error allowed (reference.h) for results of the computation; 1 unless a step says
// winograd.
//
// Winograd's error is bounded, element by element, by roundings * eps/2 * |A|(|G||w||G'| * |B||d||B'|)|A'|: Higham,
// "Accuracy and stability of numerical algorithms", section 3.1, for the three successive products; Barabasz
// et al., "Error analysis and improving the accuracy of Winograd convolution", ACM TOMS 46(4), 2020. For data and
// weights of one magnitude that is n^2 * sum|d||w|, n = max_i sum_f |A[i,f]| sum_u|G[f,u]| sum_p|B[f,p]| / 3: 2.7^2 for
// m = 2, 16^2 for m = 4. `roundings` is that of channels and transforms, less than the 9 * channels that reference.h
// counts; and a factor of 2 remains of the slack there (4 eps for eps/2).
struct Restructured {
  Computation computation;
  double amplification = 1;
};

// The computation with every such step of the schedule applied, in order. A Reason names the step that does not apply.
base::Result<Restructured> restructured(const Computation& computation, const Schedule& schedule);

}  // namespace graft::codegen
