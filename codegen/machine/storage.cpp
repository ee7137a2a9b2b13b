#include "codegen/machine/storage.h"

#include <bit>
#include <cassert>
#include <cstdint>

namespace graft::codegen {
namespace {

// `like`'s type with other elements.
llvm::Type* with_element(const llvm::Value* like, llvm::Type* element) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(like->getType());
  return vector ? llvm::FixedVectorType::get(element, vector->getNumElements()) : element;
}

// The conversions without an instruction, on the bits of f32 in integers of 32 bits.
class ByIntegers {
 public:
  ByIntegers(llvm::IRBuilder<>& builder, const llvm::Value* like)
      : builder_(builder),
        floats_(with_element(like, builder.getFloatTy())),
        words_(with_element(like, builder.getInt32Ty())) {}

  llvm::Value* from_bf16(llvm::Value* bits) {
    return as_float(builder_.CreateShl(builder_.CreateZExt(bits, words_), word(16)));
  }

  // The fraction and exponent move to their places, and a product corrects the exponent's bias; this makes subnormal
  // numbers normal ones.
  llvm::Value* from_f16(llvm::Value* bits) {
    llvm::Value* const wide = builder_.CreateZExt(bits, words_);
    llvm::Value* const size = builder_.CreateShl(builder_.CreateAnd(wide, word(0x7fff)), word(13));
    llvm::Value* const finite = as_word(builder_.CreateFMul(as_float(size), llvm::ConstantFP::get(floats_, 0x1p112)));
    llvm::Value* const beyond = builder_.CreateOr(size, word(0x7f800000));
    llvm::Value* const is_beyond = builder_.CreateICmpUGE(size, word(0x7c00u << 13));
    return as_float(builder_.CreateOr(builder_.CreateSelect(is_beyond, beyond, finite), sign(wide, 16)));
  }

  // Half a unit in the last place is added, and a bit less to even numbers; a carry reaches the exponent.
  llvm::Value* to_bf16(llvm::Value* number) {
    llvm::Value* const bits = as_word(number);
    llvm::Value* const quiet = builder_.CreateOr(upper(bits), word(0x40));
    llvm::Value* const is_nan = builder_.CreateFCmpUNO(number, number);
    return narrow(builder_.CreateSelect(is_nan, quiet, upper(rounded(bits, 16))));
  }

  llvm::Value* to_f16(llvm::Value* number) {
    llvm::Value* const bits = as_word(number);
    llvm::Value* const size = builder_.CreateAnd(bits, word(0x7fffffff));
    // Normal: the bias of the exponent changes by 112, 13 bits of fraction go.
    llvm::Value* const normal = builder_.CreateLShr(rounded(builder_.CreateSub(size, word(112u << 23)), 13), word(13));
    // Subnormal: added to 1/2, whose last place is the least number of f16, the sum rounds as it should.
    llvm::Value* const half = llvm::ConstantFP::get(floats_, 0.5);
    llvm::Value* const least = builder_.CreateSub(as_word(builder_.CreateFAdd(as_float(size), half)),
                                                  word(std::bit_cast<std::uint32_t>(0.5F)));
    llvm::Value* result = builder_.CreateSelect(
        builder_.CreateICmpULT(size, word(std::bit_cast<std::uint32_t>(0x1p-14F))), least, normal);
    result = builder_.CreateSelect(builder_.CreateICmpUGE(size, word(std::bit_cast<std::uint32_t>(0x1p16F))),
                                   word(0x7c00), result);
    result = builder_.CreateSelect(builder_.CreateFCmpUNO(number, number), word(0x7e00), result);
    return narrow(builder_.CreateOr(result, builder_.CreateLShr(sign(bits, 0), word(16))));
  }

 private:
  llvm::Constant* word(std::uint32_t value) { return llvm::ConstantInt::get(words_, value); }
  llvm::Value* as_word(llvm::Value* number) { return builder_.CreateBitCast(number, words_); }
  llvm::Value* as_float(llvm::Value* bits) { return builder_.CreateBitCast(bits, floats_); }
  llvm::Value* upper(llvm::Value* bits) { return builder_.CreateLShr(bits, word(16)); }
  // The sign of a number whose bits were moved down by `moved` places.
  llvm::Value* sign(llvm::Value* bits, std::uint32_t moved) {
    return builder_.CreateAnd(moved == 0 ? bits : builder_.CreateShl(bits, word(moved)), word(0x80000000));
  }
  // So that the bits without the last `dropped` ones are the nearest number's, halves to even.
  llvm::Value* rounded(llvm::Value* bits, std::uint32_t dropped) {
    llvm::Value* const last = builder_.CreateAnd(builder_.CreateLShr(bits, word(dropped)), word(1));
    return builder_.CreateAdd(builder_.CreateAdd(bits, word((1u << (dropped - 1)) - 1)), last);
  }
  llvm::Value* narrow(llvm::Value* bits) {
    return builder_.CreateTrunc(bits, with_element(bits, builder_.getInt16Ty()));
  }

  llvm::IRBuilder<>& builder_;
  llvm::Type *floats_, *words_;
};

// Finite numbers beyond the largest of the type as that one, as base/float16.h has them.
llvm::Value* kept_finite(llvm::IRBuilder<>& builder, llvm::Value* number, double largest) {
  llvm::Type* const type = number->getType();
  llvm::Constant* const most = llvm::ConstantFP::get(type, largest);
  llvm::Value* const size = builder.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, number);
  llvm::Value* const is_beyond = builder.CreateAnd(builder.CreateFCmpOGT(size, most),
                                                   builder.CreateFCmpOLT(size, llvm::ConstantFP::getInfinity(type)));
  return builder.CreateSelect(is_beyond, builder.CreateCopySign(most, number), number);
}

}  // namespace

llvm::Value* loaded_from_storage(llvm::IRBuilder<>& builder, const CodeAttributes& attributes, llvm::Value* bits,
                                 DType type) {
  ByIntegers integers(builder, bits);
  if (type == DType::bf16) return integers.from_bf16(bits);  // a shift: no instruction is better
  assert(type == DType::f16);
  if (!attributes.converts_f16) return integers.from_f16(bits);
  llvm::Value* const half = builder.CreateBitCast(bits, with_element(bits, builder.getHalfTy()));
  return builder.CreateFPExt(half, with_element(bits, builder.getFloatTy()));
}

llvm::Value* rounded_for_storage(llvm::IRBuilder<>& builder, const CodeAttributes& attributes, llvm::Value* number,
                                 DType type) {
  assert(type == DType::f16 || type == DType::bf16);
  const bool is_f16 = type == DType::f16;
  number = kept_finite(builder, number, is_f16 ? 65504 : 0x1.fep127);
  ByIntegers integers(builder, number);
  if (!(is_f16 ? attributes.converts_f16 : attributes.converts_bf16))
    return is_f16 ? integers.to_f16(number) : integers.to_bf16(number);
  llvm::Type* const short_type = is_f16 ? builder.getHalfTy() : builder.getBFloatTy();
  llvm::Value* const rounded = builder.CreateFPTrunc(number, with_element(number, short_type));
  return builder.CreateBitCast(rounded, with_element(number, builder.getInt16Ty()));
}

}  // namespace graft::codegen
