// The numbers that a computation's inputs and constants get when its programs are checked and timed: drawn by a seed,
// of values for which the computation is defined.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/monitor.h"
#include "codegen/expression/computation.h"
#include "codegen/expression/elements.h"

namespace graft::codegen {

// How many of some outputs are not finite for these operands (by tensor; as they were when it returns).
using Undefined = std::function<std::int64_t(std::vector<Elements>& operands)>;

// By tensor of the computation, empty for all but inputs and constants. Numbers that f32 represents exactly, within
// [-1, 1); integers -8..7, or all values of one byte; indices of a dimension, and one beyond each of its ends. If the
// computation has operations that are not defined everywhere (sqrt, log, a quotient, ...) and some outputs are not
// finite for these, tensors take other ranges instead (positive numbers, numbers from 1 on, negative ones, ...): as few
// tensors as make `undefined` 0, or as little as can be reached. Deterministic in (computation, seed); a tensor's
// numbers depend on the seed, its name and its range alone.
std::vector<Elements> made_inputs(const Computation& computation, std::uint64_t seed, const Undefined& undefined,
                                  base::Monitor& monitor);

}  // namespace graft::codegen
