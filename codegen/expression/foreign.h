// Kernels that no index expression says: functions of codegen/deployed/graft_foreign.h, or of a user, on whole tensors.
// They are right but not tuned.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "codegen/expression/computation.h"
#include "codegen/expression/elements.h"

namespace graft::codegen {

struct Foreign {
  std::string function;               // "graft_unique"
  std::vector<std::int64_t> numbers;  // its `n`
  // Empty but for a user's function: its code as LLVM's text without a target, and the types of the operands and then
  // the result, whose shapes are `numbers`: how many tensors there are, and of each the rank and the extents.
  std::string code = {};
  std::vector<DType> types = {};
  // What a user's function gives on this machine, as it stores it.
  using Run = std::function<std::string(const Foreign& foreign, const Computation& computation,
                                        const std::vector<Elements>& operands)>;
  Run run = nullptr;
  bool operator==(const Foreign& other) const {
    return function == other.function && numbers == other.numbers && code == other.code && types == other.types;
  }
};

// A computation that declares its operands x0, x1, ... and its result y, all of one dimension; its expression is a
// placeholder. A Reason for an unknown function, and for numbers with which the function must not be called.
base::Result<Computation> computation_of(const Foreign& foreign);

// New rows in a cache: graft_append, of its first five numbers and its elements' type.
Foreign append(const std::vector<std::int64_t>& extents, DType type);

// Whether the result may be the memory of the first operand.
bool may_overwrite_first(const Foreign& foreign);

// The result for these operands, by tensor of its computation.
Elements evaluated(const Foreign& foreign, const Computation& computation, const std::vector<Elements>& operands);

}  // namespace graft::codegen
