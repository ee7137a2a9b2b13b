// Private to this folder: elementary functions of numbers and of vectors as LLVM IR, the same on every target: the code
// has no calls and uses only basic operations, square roots and selections. Within 4 ulp in f32, with fused
// multiply-add or without; IEEE 754 results for zeros, denormal numbers, infinities and NaN, of
// extremes but for the sign of zeros. Series are Taylor's, to below half an ulp, unless a table of coefficients is
// given.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "codegen/machine/emitter.h"

namespace graft::codegen {

class Functions {
 public:
  // `rounds`: the target has an instruction that rounds down to an integer; `rounds_to_even`: one that rounds to the
  // nearest, halves to even; `scales`: AVX-512's VRANGEPS and VSCALEFPS, of all lengths of vectors.
  Functions(llvm::IRBuilder<>& builder, bool rounds, bool rounds_to_even, bool scales, Extremes extremes)
      : builder_(builder), rounds_(rounds), rounds_to_even_(rounds_to_even), scales_(scales), extremes_(extremes) {}

  // Arguments are f32 or f64, scalars or vectors; two of them have one type.
  llvm::Value* extreme(bool greatest, llvm::Value* a, llvm::Value* b);  // NaN if one of them is; fastest for a late `b`
  llvm::Value* floor(llvm::Value* x);
  llvm::Value* round(llvm::Value* x);  // halves to even
  llvm::Value* abs(llvm::Value* x);
  llvm::Value* sqrt(llvm::Value* x);
  llvm::Value* rsqrt(llvm::Value* x);
  llvm::Value* exp(llvm::Value* x);
  llvm::Value* log(llvm::Value* x);
  llvm::Value* pow(llvm::Value* x, llvm::Value* y);
  llvm::Value* tanh(llvm::Value* x);
  llvm::Value* sigmoid(llvm::Value* x);
  llvm::Value* erf(llvm::Value* x);
  // For numbers up to 2^20 in size; for larger ones the error grows with them, and the result stays within -1 and 1.
  llvm::Value* sin(llvm::Value* x);
  llvm::Value* cos(llvm::Value* x);

 private:
  // x = n * ln 2 + r, |r| <= ln 2 / 2; `shifted` is n + to_integer, so that its low bits hold n.
  struct Reduced {
    llvm::Value *shifted, *n, *r;
  };
  // A positive number = 2^k * m, sqrt(1/2) <= m < sqrt(2).
  struct Split {
    llvm::Value *k, *m;
  };
  // A number as the sum of two parts, the second below the rounding error of the first.
  struct Pair {
    llvm::Value *high, *low;
  };

  Reduced reduced(llvm::Value* x, double to_integer);  // magic or scaling_magic
  llvm::Value* exp_of_bounded(llvm::Value* x);
  llvm::Value* sine(llvm::Value* x, int quarters);  // sin(x + quarters * pi / 2)
  llvm::Value* exp_series(llvm::Value* r, int degree);
  // x * 2^n, of shifted = n + scaling_magic; the second takes n + magic, for results that are normal numbers.
  llvm::Value* scaled(llvm::Value* x, llvm::Value* shifted);
  llvm::Value* scaled_to_normal(llvm::Value* x, llvm::Value* shifted);
  // Whether there are instructions for vectors of this type; then x between -most and most, and x * 2^n for a whole n,
  // with the right results beyond normal numbers.
  bool scales(const llvm::Value* x) const;
  llvm::Value* within(llvm::Value* x, double most);
  llvm::Value* scaled_by(llvm::Value* x, llvm::Value* n);
  Split split(llvm::Value* x);
  llvm::Value* log_series(llvm::Value* s, int terms);
  llvm::Value* power_of_quarters(llvm::Value* x, llvm::Value* y);
  llvm::Value* power_of_float(llvm::Value* size, llvm::Value* y);
  llvm::Value* power_of_double(llvm::Value* size, llvm::Value* y);
  Pair log2(llvm::Value* x);
  llvm::Value* log2_of_ends(llvm::Value* size, llvm::Value* log);
  llvm::Value* clamped(llvm::Value* x, double most);
  llvm::Value* truncated(llvm::Value* x);

  static llvm::Type* doubles_like(const llvm::Value* x);
  llvm::Value* fused(llvm::Value* a, llvm::Value* b, llvm::Value* c);
  llvm::Value* polynomial(llvm::Value* x, llvm::ArrayRef<double> coefficients);  // the constant term first
  llvm::Value* nan_kept(llvm::Value* x, llvm::Value* result);
  llvm::Value* copysign(llvm::Value* size, llvm::Value* sign);

  llvm::IRBuilder<>& builder_;
  const bool rounds_, rounds_to_even_, scales_;
  const Extremes extremes_;
};

}  // namespace graft::codegen
