// Kernels that no index expression says: functions of codegen/deployed/graft_foreign.h on whole tensors. They are right
// but not tuned.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "codegen/expression/computation.h"
#include "codegen/expression/elements.h"

namespace graft::codegen {

struct Foreign {
  std::string function;               // "graft_unique"
  std::vector<std::int64_t> numbers;  // its `n`
  bool operator==(const Foreign&) const = default;
};

// A computation that declares its operands x0, x1, ... and its result y, all of one dimension; its expression is a
// placeholder. A Reason for an unknown function, and for numbers with which the function must not be called.
base::Result<Computation> computation_of(const Foreign& foreign);

// The result for these operands, by tensor of its computation.
Elements evaluated(const Foreign& foreign, const Computation& computation, const std::vector<Elements>& operands);

}  // namespace graft::codegen
