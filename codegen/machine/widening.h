// Private to this folder: products of bytes as RISC-V's vectors multiply them.
#pragma once

#include <llvm/IR/Module.h>

namespace graft::codegen {

// Products of vectors of bytes, or of one byte with a vector of them, that are converted to 32 bits become products of
// 16 bits that are as wide as that: vwmacc multiplies and adds these in one instruction. Code generation finds it for
// the first of several products that share an operand only, unless that is in 16 bits. Results are the same.
void widen_byte_products(llvm::Module& module);

}  // namespace graft::codegen
