// Sketches for any computation and target, from the shape of its index expressions alone: no operator is named here.
#pragma once

#include <span>
#include <vector>

#include "codegen/expression/computation.h"
#include "codegen/expression/target.h"
#include "codegen/program/intrinsic.h"
#include "codegen/space/space.h"

namespace graft::codegen {

// How a kernel's parameters are stored: as in the index expression, or as schedules choose (the step `layout`; the
// signature then has the layout).
enum class Layouts { given, free };

// One sketch per spatial axis that can be vectorised (one scalar sketch if none can be, or the target has no vectors).
// Each tiles the stage that reduces (the last stage if none does) as
//
//   S0 S1 R0 S2 R1 R2 S3 v       S: spatial axes in 4 levels, R: reduction axes in 3, S3 and R2 unrolled, v the vector
//
// with the order within S0, S1, R0, S2 and R1 open, the first, the first two or all loops of S0 parallel where the
// target has threads, results kept from above R0 or above R1, operands packed or not, and an element-wise
// consumer fused if the whole reduction is inside. Packing needs every dimension of the operand to follow one
// axis; constants are packed ahead of time. An axis is vectorised when each operand moves by 0, 1 or 2 elements along
// it, or is a constant that packing can transpose. Producers without a reduction (padding) run separately, are
// absorbed, or are computed in tiles. Spatial axes along which every operand moves are not tiled.
//
// Further sketches: sums along memory factored, so that vectors run along them; Winograd's stages (restructure.h),
// run separately or computed within their readers; and one for each way in which a stage that reduces contains an
// intrinsic: S0 S1 R0 R1 S2, and the intrinsic's loops; operands whose order differs from the intrinsic's are packed.
// Where packing cannot make what the intrinsic sums contiguous, as in the windows of a convolution, a copy of
// the input is stored in groups of it. Signed bytes lose their sign (unsign) for an intrinsic that wants this. Sums of
// integers whose inputs lie in memory as an intrinsic wants them have no sketches without intrinsics.
//
// A chain of stages over the same rows that begins and ends with products (attention) has one sketch: all stages for a
// block of rows before the next (product_rows.h). So has a sum of products over windows alone followed by a product of
// what it gives, such as a depthwise convolution before one of 1x1 (window_rows.h); and a sum over blocks of sums
// within them that read bytes of constants, such as a product with weights of few bits (block_sums.h).
//
// With free layouts, the same sketches again for every way in which a spatial axis that is not the innermost one of
// its result can be stored in blocks of a vector's lanes, innermost, in all tensors that it indexes; operands that it
// does not index are stored in blocks of an axis that is summed over.
std::vector<SketchSpace> derive_sketches(const Computation& computation, const Target& target,
                                         std::span<const IntrinsicPointer> intrinsics = {},
                                         Layouts layouts = Layouts::given);

// The space of these sketches.
Space derive_space(const Workload& workload, const Target& target, std::span<const IntrinsicPointer> intrinsics = {},
                   Layouts layouts = Layouts::given);

// Whether the sketches above can take all stages together, so that no result between them need go through memory as a
// whole. They can if there is a single stage, which reduces nothing; or one stage that reduces, earlier stages that it
// can absorb, and later ones that can be applied at its write-back; or several stages over the same rows,
// products among them if a chain begins and ends with one, or the first one sums windows. `computation` is
// with_padding_stages (expression/padding.h); copies that pad count as absorbed.
bool schedules_together(const Computation& computation, const Target& target);

// Whether the stages of a computation that schedules together may be faster as several kernels, so that times should
// decide. They may where several of them are sums of products: a block of rows leaves each less to choose.
bool is_fused_by_choice(const Computation& computation, const Target& target);

}  // namespace graft::codegen
