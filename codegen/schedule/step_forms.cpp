#include "codegen/schedule/step_forms.h"

#include <array>

namespace graft::codegen {
namespace {

using enum StepKind;

constexpr std::array forms = {
    StepForm{tile, "tile STAGE AXIS SIZE ...", "tile C i 64 8",
             "Splits the axis by tile sizes in elements, each a multiple of the next: AXIS.0 steps by the first size, "
             "AXIS.1 by the second, and so on; the last level steps by 1. Sizes need not divide the extent."},
    StepForm{order, "order STAGE LOOP ...", "order C i.0 j.0 l.0 i.1 j.1",
             "The loops of the stage, outermost first; every loop exactly once."},
    StepForm{vector, "vector STAGE LOOP", "vector C j.1", "The innermost loop becomes one vector operation."},
    StepForm{unroll, "unroll STAGE LOOP ...", "unroll C i.1 l.1",
             "These loops are fully unrolled in the machine code."},
    StepForm{parallel, "parallel STAGE LOOP ...", "parallel C i.0 j.0",
             "The outermost loops, in any order, become one range of tasks for the threads of the target."},
    StepForm{accumulate, "accumulate STAGE above LOOP ...", "accumulate C above l.0",
             "From directly above the outermost of the named loops on, results are kept in a tile of their own: in "
             "registers if all its loops are unrolled or vector."},
    StepForm{pack, "pack STAGE TENSOR [by N] above LOOP ...", "pack C B by 16 above l.0",
             "What the stage reads of the tensor from there on is first copied into the order in which it is read. A "
             "constant that is packed above all loops is packed in `prepare`, which is not timed. `by N`: in blocks of "
             "N neighbours, transposed in registers."},
    StepForm{fuse, "fuse STAGE CONSUMER", "fuse C Y",
             "The element-wise stage CONSUMER is applied when STAGE's tile is written back. STAGE may itself be fused "
             "into another one: chains start at the first stage. A stage computed within another one takes a CONSUMER "
             "that is computed above the same loop."},
    StepForm{absorb, "absorb STAGE PRODUCER", "absorb Y P",
             "The stage PRODUCER, which reduces nothing, is written into STAGE's expression. Of a padding copy, loops "
             "then keep the border apart, and skip what is zero."},
    StepForm{
        compute, "compute STAGE PRODUCER above LOOP ...", "compute Y P above y.0",
        "What STAGE, and what it computes above the same loop, reads of the stage PRODUCER from directly above the "
        "outermost of these loops of STAGE on is computed there, into a tile."},
    StepForm{rfactor, "rfactor STAGE AXIS FACTOR", "rfactor S l 8",
             "The reduction over AXIS is done in FACTOR interleaved parts, which are added up afterwards."},
    StepForm{winograd, "winograd STAGE M", "winograd Y 4",
             "A 3x3 convolution of stride 1 by Winograd's algorithm, in tiles of M x M results."},
    StepForm{tensorize, "tensorize STAGE INTRINSIC LOOP", "tensorize C fma16 j.1",
             "LOOP and all loops inside it are what the intrinsic computes, and the intrinsic's code does them. "
             "Remainders stay plain loops."},
    StepForm{
        prefetch, "prefetch STAGE TENSOR LOOP DISTANCE", "prefetch C B l.0 2",
        "Every iteration of LOOP asks the cache for those lines of TENSOR that the iteration DISTANCE ahead is the "
        "first to touch. STAGE reads TENSOR (its packed copy, if that is made outside of LOOP) or writes it (the "
        "result of what is fused into it)."},
    StepForm{
        layout, "layout TENSOR DIMENSION ...", "layout B 1/16 0 1%16",
        "The tensor is stored in these dimensions: a number is a dimension of the tensor, `1/16` its blocks of 16, "
        "`1%16` the place in a block. Callers of the kernel pass a parameter in this order. `1 / 16` "
        "with spaces is the same as `1/16`."},
    StepForm{block, "block TENSOR DIMENSION ...", "block T 0 1/16 2 3 1%16",
             "The same as layout, and an axis that indexes a divided dimension always becomes one axis for each part, "
             "also where a part is a single element."},
    StepForm{copy, "copy STAGE TENSOR [AXIS SIZE ...]", "copy C A i 32 l 16",
             "STAGE reads TENSOR through a copy of its own, the stage STAGE.TENSOR with axes d0, d1, and so on. With "
             "axes, each of which STAGE then has as two, it works in blocks of these sizes, and what a block reads is "
             "contiguous in the copy: AXIS ... d0 ..."},
    StepForm{
        bind, "bind STAGE KIND LOOP ...", "bind C block_x i.0 j.0",
        "Loops of this kind of a GPU: block_x, thread_x, virtual_thread and so on. All that threads do between two "
        "barriers is a nest of thread loops; one larger than the block of threads is work that they share."},
    StepForm{
        lanes, "lanes STAGE LOOP", "lanes S l.1",
        "The innermost loop, which is reduced, becomes one vector operation with a result of its own for each lane, "
        "a power of two of them; a remainder works on the first lanes. They become one number when the tile is written "
        "back."},
    StepForm{reciprocal, "reciprocal STAGE AXIS", "reciprocal Y j",
             "The stage STAGE.reciprocal computes 1 / divisors that stay along AXIS, and STAGE multiplies by it: for "
             "divisors whose reciprocals are normal numbers, 2^-126 to 2^126 in f32."},
    StepForm{
        unsign, "unsign STAGE TENSOR", "unsign C A",
        "STAGE, a sum of products, reads TENSOR, of i8, as the stage STAGE.TENSOR of u8 that is 128 more. The stage "
        "STAGE.offset sums what TENSOR is multiplied with, and 128 times that is subtracted again: where STAGE is "
        "read, or, of an output, where STAGE writes what the stage STAGE.sum has."},
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < forms.size(); ++i)
    if (std::size_t(forms[i].kind) != i) return false;
  return true;
}
#define X(name) +1
static_assert(forms.size() == 0 GRAFT_STEPS(X) && in_order(), "one form for each kind of step, in their order");
#undef X

}  // namespace

std::span<const StepForm> step_forms() {
  return forms;
}

}  // namespace graft::codegen
