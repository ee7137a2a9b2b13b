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

// Its operands x0, x1, ... and its result y, all of one dimension, as a computation whose expression says nothing. A
// Reason for a function that is not known, and for numbers that it does not take: with others it is safe to call.
base::Result<Computation> computation_of(const Foreign& foreign);

// The result for these operands, by tensor of its computation.
Elements evaluated(const Foreign& foreign, const Computation& computation, const std::vector<Elements>& operands);

}  // namespace graft::codegen
