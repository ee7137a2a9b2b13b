// Private to this folder: numbers of 16 bits, held as integers of 16 bits, to f32 and back, as LLVM IR. By the target's
// instructions where it has them, else by integer arithmetic on whole vectors: LLVM would call a function for each
// lane.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "codegen/expression/value.h"
#include "codegen/machine/emitter.h"

namespace graft::codegen {

// i16 -> f32, exact; scalars or vectors, as all here. `type`: f16 or bf16.
llvm::Value* loaded_from_storage(llvm::IRBuilder<>& builder, const CodeAttributes& attributes, llvm::Value* bits,
                                 DType type);
// f32 -> i16, to the nearest number, halves to even; finite numbers beyond the largest are the largest. Of bf16 an
// instruction may turn subnormal numbers into 0.
llvm::Value* rounded_for_storage(llvm::IRBuilder<>& builder, const CodeAttributes& attributes, llvm::Value* number,
                                 DType type);

}  // namespace graft::codegen
