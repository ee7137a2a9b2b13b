// computation + schedule -> loop program. A schedule that does not apply gives a Reason (the step, the place, the
// value).
//
// Parallel loops are outermost, each the only child of the one before: their remainders are nests of their own, with
// tiles of their own. Loops whose tile does not divide their range become a main part and a remainder, never a guard;
// loops of extent 1 vanish, but for the outermost parallel one. A stage that pads becomes a fill and a copy of its
// inside. A reduction without `accumulate` starts from a fill. Temporaries that depend on constants only are computed
// in `prepare`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "base/error.h"
#include "codegen/expression/computation.h"
#include "codegen/expression/padding.h"
#include "codegen/program/intrinsic.h"
#include "codegen/program/program.h"
#include "codegen/schedule/step.h"

namespace graft::codegen {

// Called for every store of `run` as soon as it is written, with the loops around it (positions in program.loops,
// outermost first); its Reason ends lowering there. The part of the program before the store is final.
using StoreWatch = std::function<std::optional<base::Reason>(const LoopProgram& program, const Store& store,
                                                             std::span<const int> loops)>;

// `computation` with_padding_stages (expression/padding.h); steps of the schedule that restructure are applied to it
// first. `lanes`: vector width of the simple nests that no step names (fills, copies, epilogues); 1 leaves them scalar.
// The program's parameters are the computation's inputs, constants and outputs in order of tensors. For more than one
// of `threads`, simple nests and copies of whole operands run in parallel where they are large enough, and a stage
// whose parallel loops make fewer tasks than threads is refused. `intrinsics`: those that `tensorize` may name.
base::Result<LoopProgram> lower(const Computation& computation, const Schedule& schedule, std::int64_t lanes,
                                std::int64_t threads = 1, const StoreWatch& watch = {},
                                std::span<const IntrinsicPointer> intrinsics = {});

// The program of the empty schedule: plain nests in axis order, scalar. Any computation.
LoopProgram naive_program(const Computation& computation);

}  // namespace graft::codegen
