// The one list of scheduling steps. A step is a comparable, printable value; a schedule is a list of steps. Loops of a
// stage are named "<axis>.<level>", outermost level first; before any tile an axis has one loop "<axis>.0".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace graft::codegen {

// Names of steps are versions: datasets and journals hold sketches as text and the hashes of the programs that they
// made, for good. What a step of a name does never changes; a step that is to do something else, even something better,
// gets a new name beside the old one, which stays. tests/datasets/frozen holds programs of every step against that.
//
// Text form of each (STAGE is the name of the tensor that it fills); absorb, rfactor, winograd, reciprocal and layout
// stand before all others, tile and order before a stage's other steps, the steps of a stage that is computed within
// another one behind that compute:
//   absorb STAGE PRODUCER                the stage PRODUCER, which reduces nothing, is written into STAGE's expression
//                                        (a padding copy: loops then keep its border apart, and skip what is zero)
//   rfactor STAGE AXIS FACTOR            the reduction over AXIS in FACTOR interleaved parts, added up behind
//   winograd STAGE M                     a 3x3 convolution of stride 1 by Winograd's algorithm, in tiles of M x M
//   reciprocal STAGE AXIS                the stage STAGE.reciprocal computes 1 / divisors that stay along AXIS, and
//                                        STAGE multiplies by it: for divisors whose reciprocals are normal numbers,
//                                        2^-126 to 2^126 in f32
//   layout TENSOR DIMENSION ...          the tensor is stored in these dimensions (expression/layout.h); who calls the
//                                        kernel hands a parameter over like this; `1 / 16` is `1/16`
//   block TENSOR DIMENSION ...           the same, and an axis that indexes a divided dimension always becomes one axis
//                                        for each part, also where a part is a single element
//   copy STAGE TENSOR AXIS SIZE ...      STAGE reads TENSOR through a copy of its own, the stage STAGE.TENSOR with axes
//                                        d0, d1, ...; with axes, which STAGE then has as two, it works in blocks of
//                                        these sizes; what a block reads lies side by side in the copy: AXIS ... d0 ...
//   compute STAGE PRODUCER above LOOP ...  what STAGE, and what it computes above the same loop, reads of PRODUCER
//                                        from the outermost of these loops on is computed there, into a tile
//   tile STAGE AXIS s1 s2 ...            splits the axis by tile sizes in elements, each a multiple of the next:
//                                        AXIS.0 steps by s1, AXIS.1 by s2, ..., the last level steps by 1
//   order STAGE LOOP LOOP ...            the loops of the stage, outermost first; every loop exactly once
//   vector STAGE LOOP                    the innermost loop becomes one vector operation
//   unroll STAGE LOOP ...                fully unrolled by the emitter
//   parallel STAGE LOOP ...              the outermost loops, in any order, are one range of tasks for the threads of
//                                        the target
//   bind STAGE KIND LOOP ...             loops of this kind of a GPU: block_x, thread_x, virtual_thread ... All that
//                                        threads do between two barriers is a nest of thread loops; one larger than
//                                        the block of threads is work that they share
//   lanes STAGE LOOP                     the innermost loop, which is reduced, becomes one vector operation with a
//                                        result of its own for each lane, a power of two of them; a remainder works on
//                                        the first lanes. They become one number when the tile is written back
//   accumulate STAGE above LOOP ...      from directly above the outermost of the named loops on, results are kept in
//                                        a tile of their own (registers if all its loops are unrolled or vector)
//   pack STAGE TENSOR [by N] above LOOP ...  what the stage reads of the tensor from there on is first copied into the
//                                        order in which it is read; above all loops and constant: in prepare. by N: in
//                                        blocks of N neighbours, transposed in registers
//   fuse STAGE CONSUMER                  the element-wise stage CONSUMER is applied when STAGE's tile is written back;
//                                        STAGE may itself be fused into another: chains from the first stage on
//   tensorize STAGE INTRINSIC LOOP       LOOP and all loops inside are what the intrinsic computes, and its code does
//                                        them (program/intrinsic.h); remainders stay plain loops
//   prefetch STAGE TENSOR LOOP DISTANCE  every iteration of LOOP asks the cache for those lines of TENSOR that the
//                                        iteration DISTANCE ahead is the first to touch. STAGE reads TENSOR (its packed
//                                        copy, if that is made outside of LOOP) or writes it (what is fused into it)
#define GRAFT_STEPS(X) \
  X(tile)              \
  X(order)             \
  X(vector)            \
  X(unroll)            \
  X(parallel)          \
  X(accumulate)        \
  X(pack)              \
  X(fuse)              \
  X(absorb)            \
  X(compute) X(rfactor) X(winograd) X(tensorize) X(prefetch) X(layout) X(block) X(copy) X(bind) X(lanes) X(reciprocal)

enum class StepKind {
#define X(name) name,
  GRAFT_STEPS(X)
#undef X
};
std::string_view name_of(StepKind kind);
std::vector<std::string> step_names();

struct Step {
  StepKind kind = StepKind::tile;
  std::string stage;
  // tile, rfactor, reciprocal: axis; pack, prefetch, copy: tensor; fuse: consumer; absorb, compute: producer;
  // tensorize: intrinsic; bind: kind; else empty
  std::string subject;
  // layout, block: stored dimensions; copy: axes; order, bind, vector, unroll, parallel, tensorize, prefetch, lanes;
  // accumulate, pack, compute: those behind "above"
  std::vector<std::string> loops;
  std::vector<std::int64_t> sizes;  // tile; copy: by axis; pack: N; rfactor, winograd, prefetch: one
  bool operator==(const Step&) const = default;
};
using Schedule = std::vector<Step>;

std::string to_text(const Step& step);
Step parse_step(std::string_view line, std::string_view place);                            // throws UserError
Step step_from_words(const std::vector<std::string_view>& words, std::string_view place);  // the same, already split
std::string to_text(const Schedule& schedule);                                             // a line a step

}  // namespace graft::codegen
