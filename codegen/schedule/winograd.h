// Steps that put other stages in a stage's place: what happens to a computation before loops are planned. All other
// steps of a schedule name the stages of the result.
//
// `rfactor S l f`: S[x] sums over l and further axes r. With l = f*l_o + l_i it becomes
//   S.rf[x, l_i]  over r and l_o        so that l_i, often contiguous in memory, may be a vector
//   S[x]          over l_i, of S.rf     works for max and min alike
//
// `winograd S m`, m = 2 or 4, for a stage S[.., y, x] += D[.., y + u, x + v] * W[.., u, v] with u, v of extent 3 and
// any other axes in any layout (Lavin and Gray, "Fast algorithms for convolutional neural networks", CVPR 2016). Tiles
// of m x m results (ty, tx; results iy, ix in a tile) come from (m+2) x (m+2) products (fy, fx); G, B, A are literals:
//   S.U.rows[fy, v, ..]  = G[fy, u] * W              S.U[fy, fx, ..] = G[fx, v] * S.U.rows     constants: in prepare
//   S.V.rows[fy, .., x]  = B[fy, p] * D[m*ty + p, x]  S.V[fy, fx, ..] = B[fx, p] * S.V.rows[.., m*tx + p]
//   S.M[fy, fx, ..]      = S.V * S.U over all axes that S reduced but u and v
//   S.rows[iy, fx, ..]   = A[iy, fy] * S.M            S[.., m*ty + iy, m*tx + ix] = A[ix, fx] * S.rows
// Where m does not divide an extent, D is read as zero behind its end, and S.tiles with whole tiles is copied to S.
// The innermost dimensions are channels: of U and M those of results, of V those of data.
#pragma once

#include "base/error.h"
#include "codegen/expression/computation.h"
#include "codegen/schedule/step.h"

namespace graft::codegen {

bool restructures(const Schedule& schedule);  // whether it has any such step

// The computation, with padding in stages of its own (lower.h), under the steps of `schedule` that restructure. A
// Reason for one that does not apply, or that stands behind a step of another kind.
base::Result<Computation> restructured(const Computation& computation, const Schedule& schedule);

// Factor on the error allowed (reference.h) for results under `schedule`; 1 unless it says winograd.
//
// Winograd's error is bounded, element by element, by roundings * eps/2 * |A|(|G||w||G'| * |B||d||B'|)|A'| (Higham,
// "Accuracy and stability of numerical algorithms", section 3.1, applied to the three products; Barabasz et al., "Error
// analysis and improving the accuracy of Winograd convolution", ACM TOMS 46(4), 2020). For data and weights of one
// magnitude that is n^2 * sum|d||w|, n = max_i sum_f |A[i,f]| sum_u|G[f,u]| sum_p|B[f,p]| / 3: 2.7^2 for m = 2, 16^2
// for m = 4. `roundings` is that of the channels and the transforms, shorter than the chain of 9 * channels that
// reference.h counts; and of the slack there (4 eps for eps/2) a factor of 2 stays.
double amplification(const Computation& computation, const Schedule& schedule);

}  // namespace graft::codegen
