// The expected outputs of a computation: inputs made from a seed (inputs.h), expected outputs computed in double by
// evaluating the index expressions directly, and per element the sum of absolute values that bounds rounding errors.
#pragma once

#include <cstdint>
#include <vector>

#include "base/monitor.h"
#include "codegen/expression/computation.h"
#include "codegen/expression/elements.h"
#include "codegen/expression/inputs.h"

namespace graft::codegen {

struct Reference {
  // By tensor of the computation: inputs and constants in their types, as inputs.h has them; expected values of outputs
  // (empty for temporaries), of a large computation only for a sample of their elements.
  std::vector<Elements> tensors;
  // By tensor: for outputs, sum |a||b| of everything that was added up into the element (through all stages); else
  // empty. Of integers the largest difference that is right: 0, but where the rounding of a floating-point number
  // decides which integer it becomes. Infinite for an element whose expected value was not computed: its tolerance is
  // infinite, too, so that any number passes and NaN does not.
  std::vector<Elements> magnitude;
  // By tensor: for outputs, the number of terms of the longest chain of additions (the k of the bound); else 0.
  std::vector<std::int64_t> reduction_length;
  // Elements of all outputs, and the number of them that were computed: all, or a sample of a large computation.
  std::int64_t elements = 0, computed = 0;
};

// Elements of an output in a sample, at most.
inline constexpr std::int64_t most_sampled = (1 << 20) + (1 << 10);

// What a reference may cost. Work is counted in multiply-adds of the fast path; one node of any other expression counts
// as several.
struct ReferenceSettings {
  int threads = 1;         // changes only the time
  bool magnitudes = true;  // false: only values
  // A computation of more work is evaluated at a sample of its outputs only: the ends of every axis in all combinations
  // (up to 1024 of them) and points drawn by the seed, as many as `sampled_work` pays for, at least 16 and at most
  // 2^20. Stages in between are computed as far as these points need them.
  double most_work = 0x1p32, sampled_work = 0x1p30;
  // The same for a computation with an output of more elements: expected values take 16 bytes each.
  std::int64_t most_elements = 1 << 25;
  const Seen* seen = nullptr;  // what inputs are drawn from, if it is known (inputs.h)
};

// Fastest for sums of products. Deterministic in (computation, seed).
Reference reference(const Computation& computation, std::uint64_t seed);
// The same, or a sample; reports progress if it takes long. Throws base::Stopped within a fraction of a second when
// the monitor asks for it.
Reference reference(const Computation& computation, std::uint64_t seed, const ReferenceSettings& settings,
                    base::Monitor& monitor);
// With these inputs and constants, by tensor of the computation; entries for other tensors are ignored. All of it.
Reference reference(const Computation& computation, std::vector<Elements> operands);
Reference reference(const Computation& computation, std::vector<Elements> operands, const ReferenceSettings& settings,
                    base::Monitor& monitor);

// Allowed |error| of an element: 4 * eps(dtype) * k * magnitude (DESIGN rule), at least the smallest normal number;
// the magnitude itself for integer types, infinite if the magnitude is.
double tolerance(DType dtype, std::int64_t reduction_length, double magnitude);

}  // namespace graft::codegen
