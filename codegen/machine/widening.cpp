#include "codegen/machine/widening.h"

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

#include <vector>

namespace graft::codegen {
namespace {

bool converts_bytes(const llvm::Value* value) {
  const auto* cast = llvm::dyn_cast<llvm::CastInst>(value);
  return cast != nullptr && (llvm::isa<llvm::SExtInst>(cast) || llvm::isa<llvm::ZExtInst>(cast)) &&
         cast->getSrcTy()->getScalarType()->isIntegerTy(8);
}

// The conversion of bytes that an operand is, or that all its lanes are; null if it is none, and if it is in another
// block: code generation looks at one block at a time, and numbers that are 32 bits wide there already stay so.
llvm::CastInst* conversion_of(const llvm::BinaryOperator& product, unsigned operand) {
  llvm::Value* value = product.getOperand(operand);
  if (!converts_bytes(value)) value = llvm::getSplatValue(value);
  if (value == nullptr || !converts_bytes(value)) return nullptr;
  auto* const conversion = llvm::cast<llvm::CastInst>(value);
  return conversion->getParent() == product.getParent() ? conversion : nullptr;
}

// The same number in 16 bits, and from there in those of `type`.
llvm::Value* by_16_bits(llvm::IRBuilder<>& builder, llvm::CastInst& conversion, llvm::VectorType& type) {
  llvm::Type* const half = builder.getInt16Ty();
  const bool is_vector = conversion.getType()->isVectorTy();
  llvm::Type* const to = is_vector ? llvm::VectorType::get(half, type.getElementCount()) : half;
  llvm::Value* value = builder.CreateCast(conversion.getOpcode(), conversion.getOperand(0), to);
  if (!is_vector) value = builder.CreateVectorSplat(type.getElementCount(), value);
  return builder.CreateSExt(value, &type);
}

}  // namespace

void widen_byte_products(llvm::Module& module) {
  std::vector<llvm::BinaryOperator*> products;
  for (llvm::Function& function : module)
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      auto* const product = llvm::dyn_cast<llvm::BinaryOperator>(&instruction);
      if (product != nullptr && product->getOpcode() == llvm::Instruction::Mul && product->getType()->isVectorTy() &&
          product->getType()->getScalarType()->isIntegerTy(32) && conversion_of(*product, 0) != nullptr &&
          conversion_of(*product, 1) != nullptr)
        products.push_back(product);
    }
  for (llvm::BinaryOperator* const product : products) {
    llvm::IRBuilder<> builder(product);
    auto& type = *llvm::cast<llvm::VectorType>(product->getType());
    for (unsigned operand = 0; operand < 2; ++operand)
      product->setOperand(operand, by_16_bits(builder, *conversion_of(*product, operand), type));
  }
}

}  // namespace graft::codegen
