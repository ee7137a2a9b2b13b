// Winograd's algorithm for 3x3 convolutions of stride 1, as stages instead of one (Lavin and Gray, "Fast algorithms for
// convolutional neural networks", CVPR 2016). Private to this folder: restructure.h says what the step does.
//
// A stage S[.., y, x] += D[.., y + u, x + v] * W[.., u, v] qualifies, with u, v of extent 3 and any other axes in any
// layout. Tiles of m x m results (ty, tx; results iy, ix in a tile) come from (m+2) x (m+2) products (fy, fx); G, B and
// A are literals:
//   S.U.rows[fy, v, ..]   = G[fy, u] * W               S.U[fy, fx, ..] = G[fx, v] * S.U.rows
//   S.V.rows[fy, .., x]   = B[fy, p] * D[m*ty + p, x]  S.V[fy, fx, ..] = B[fx, p] * S.V.rows[.., m*tx + p]
//   S.M[fy, fx, ..]       = S.V * S.U over all axes that S reduced but u and v
//   S.rows[iy, fx, ..]    = A[iy, fy] * S.M            S[.., m*ty + iy, m*tx + ix] = A[ix, fx] * S.rows
// U depends on constants only if W does: lowering computes it in `prepare`. Where m does not divide an extent, zeros
// are read after D's end, and S.tiles, of whole tiles, is copied to S. The innermost dimensions are channels: those of
// results in U and M, those of data in V.
#pragma once

#include "base/error.h"
#include "codegen/expression/computation.h"
#include "codegen/schedule/step.h"

namespace graft::codegen {

// Changes the computation; returns the factor on the allowed error (restructure.h, amplification). A Reason, and the
// computation unchanged, if the step does not apply.
base::Result<double> winograd(Computation& computation, const Step& step);

}  // namespace graft::codegen
