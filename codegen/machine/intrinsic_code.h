// Private to this folder: the machine code of intrinsics, from the text of their bodies.
#pragma once

#include <llvm/IR/Module.h>

#include "codegen/program/intrinsic.h"

namespace graft::codegen {

// Adds the function of the body to the module. Throws UserError naming the intrinsic for a body that is not LLVM IR, or
// not one function of one block that takes and returns what the intrinsic's expression says.
llvm::Function* add_intrinsic(llvm::Module& module, const Intrinsic& intrinsic);

// Replaces every call by the code itself, and removes the function.
void inline_everywhere(llvm::Function& function);

}  // namespace graft::codegen
