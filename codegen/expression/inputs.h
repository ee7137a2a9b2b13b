// The numbers that a computation's inputs and constants get when its programs are checked and timed: drawn by a seed,
// of values that they have where the computation is used, or else for which it is defined.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/monitor.h"
#include "codegen/expression/computation.h"
#include "codegen/expression/elements.h"

namespace graft::codegen {

// How many of some outputs are not finite for these operands (by tensor; as they were when it returns).
using Undefined = std::function<std::int64_t(std::vector<Elements>& operands)>;

// Numbers that a computation's inputs and constants have where it is used, such as within a network: a few of them, by
// the tensor's name.
using Seen = std::map<std::string, std::vector<double>>;

// What inputs are drawn from: `seed`, and by a workload's text what is seen of it.
struct InputSource {
  InputSource(std::uint64_t of = 1) : seed(of) {}  // NOLINT(google-explicit-constructor)
  std::uint64_t seed;
  std::shared_ptr<const std::map<std::string, Seen>> seen;
  bool operator==(const InputSource&) const = default;
  const Seen* of(const std::string& workload) const;  // nullptr: nothing is seen
};

// By tensor of the computation, empty for all but inputs and constants. Numbers that f32 represents exactly, within
// [-1, 1); integers -8..7, or all values of one byte; indices of a dimension, and one beyond each of its ends; any of
// the numbers that are seen of the tensor, if there are. If the computation has operations that are not defined
// everywhere (sqrt, log, a quotient, ...), or numbers that single precision hardly holds, and some outputs are not
// finite for these, tensors take other ranges instead (positive numbers, numbers from 1 on, negative ones, ...): as few
// tensors as make `undefined` 0, or as little as can be reached. Deterministic in (computation, seed); a tensor's
// numbers depend on the seed, its name and its range alone.
std::vector<Elements> made_inputs(const Computation& computation, std::uint64_t seed, const Seen* seen,
                                  const Undefined& undefined, base::Monitor& monitor);

// The extent of the shortest dimension that elements of the tensor are indices of; 0: they are used otherwise.
std::int64_t indexed_extent(const Computation& computation, int tensor);

}  // namespace graft::codegen
