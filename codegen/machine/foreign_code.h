// Functions that no index expression says as kernels of a target: their code is LLVM's, as clang made it of the C, of
// graft's own (codegen/deployed/graft_foreign.h) when graft was built.
#pragma once

#include <string>

#include "base/error.h"
#include "codegen/expression/foreign.h"
#include "codegen/expression/target.h"
#include "codegen/machine/code.h"

namespace graft::codegen {

// `foreign` is known, and takes its numbers (computation_of). A Reason as compile.
base::Result<Code> compile(const Foreign& foreign, const Target& target, const std::string& symbol);

}  // namespace graft::codegen
