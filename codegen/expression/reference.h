// What the outputs of a computation must be: inputs made from a seed, expected outputs computed in double by evaluating
// the index expressions directly, and per element the sum of absolute values that bounds rounding errors.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/expression/computation.h"

namespace graft::codegen {

struct Reference {
  // By tensor of the computation: inputs and constants filled with values exactly representable in f32, in [-1, 1]
  // (integers: -8..7, or all values of one byte); expected values of outputs (empty for temporaries).
  std::vector<std::vector<double>> tensors;
  // By tensor: for outputs, sum |a||b| of everything that was added up into the element (through all stages); else
  // empty.
  std::vector<std::vector<double>> magnitude;
  // By tensor: for outputs, how many terms the longest chain of additions has (the k of the bound); else 0.
  std::vector<std::int64_t> reduction_length;
};

// Fast for sums of products (strided inner loops); any computation works. Deterministic in (computation, seed).
Reference reference(const Computation& computation, std::uint64_t seed);
// With these inputs and constants, by tensor of the computation; what stands for other tensors counts nothing.
Reference reference(const Computation& computation, std::vector<std::vector<double>> operands);

// Allowed |error| of an element: 4 * eps(dtype) * k * magnitude (DESIGN rule), at least the smallest normal number;
// 0 for integer types.
double tolerance(DType dtype, std::int64_t reduction_length, double magnitude);

}  // namespace graft::codegen
