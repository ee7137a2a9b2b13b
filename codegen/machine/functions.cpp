#include "codegen/machine/functions.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <numbers>
#include <vector>

namespace graft::codegen {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double ln2 = std::numbers::ln2, log2e = std::numbers::log2e;

bool is_single(const llvm::Value* x) {
  return x->getType()->getScalarType()->isFloatTy();
}
int mantissa_bits(const llvm::Value* x) {
  return is_single(x) ? 23 : 52;
}
int bias(const llvm::Value* x) {
  return is_single(x) ? 127 : 1023;
}
// From here on all numbers are integers; adding it rounds to one, which the low bits then hold. The half more
// leaves room for negative ones.
double integers_from(const llvm::Value* x) {
  return double(std::int64_t(1) << mantissa_bits(x));
}
double magic(const llvm::Value* x) {
  return 1.5 * integers_from(x);
}
// The same, with twice the exponent's bias added, so that the low bits are positive: see scaled.
double scaling_magic(const llvm::Value* x) {
  return magic(x) + 2 * bias(x);
}

llvm::Constant* number(const llvm::Value* like, double value) {
  return llvm::ConstantFP::get(like->getType(), value);
}
llvm::Type* bits_type(const llvm::Value* like) {
  llvm::Type* const element =
      llvm::Type::getIntNTy(like->getContext(), unsigned(like->getType()->getScalarSizeInBits()));
  if (const auto* vector = llvm::dyn_cast<llvm::VectorType>(like->getType()))
    return llvm::VectorType::get(element, vector->getElementCount());
  return element;
}
llvm::Constant* bits(const llvm::Value* like, std::int64_t value) {
  return llvm::ConstantInt::get(bits_type(like), std::uint64_t(value), true);
}
std::int64_t bits_of(const llvm::Value* like, double value) {
  return is_single(like) ? std::int64_t(std::bit_cast<std::int32_t>(float(value))) : std::bit_cast<std::int64_t>(value);
}

// 1 / n! for n from `first` on.
std::vector<double> inverse_factorials(int first, int last) {
  std::vector<double> result;
  double inverse = 1;
  for (int n = 0; n <= last; ++n) {
    if (n > 0) inverse /= n;
    if (n >= first) result.push_back(inverse);
  }
  return result;
}

// e^r for |r| <= ln 2 / 2, fitted so that the relative error is below 4e-9.
constexpr double exp_single[] = {1, 1, 0.5, 0.166665182, 0.041666206, 0.0083688898, 0.00139505405};

constexpr std::uint32_t current_rounding = 4;  // _MM_FROUND_CUR_DIRECTION

// ln erfc(1 + t) for t up to 3 and 5, fitted so that the error of erfc itself is below 1e-9 and 1e-17.
constexpr double log_erfc_single[] = {-1.84960552,   -2.63896678,    -0.843118556,  -0.0415002141,
                                      0.00989036532, -0.00182580418, 0.000185453399};
constexpr double log_erfc_double[] = {
    -1.8496055099332482,     -2.6389675142347877,     -0.8431072563586905,     -0.041561098041570585,
    0.010033825371938853,    -0.0019779025514092014,  0.0002373224077111255,   2.627810288971185e-05,
    -2.7159612399190486e-05, 9.609697598827968e-06,   -2.0607075729851056e-06, 1.436895109351228e-07,
    9.702157058176341e-08,   -5.1787527110565975e-08, 1.4824996746077435e-08,  -2.8430382134844465e-09,
    3.648531855850821e-10,   -2.8488410819733673e-11, 1.0249051244950037e-12};

}  // namespace

llvm::Value* Functions::extreme(bool greatest, llvm::Value* a, llvm::Value* b) {
  if (extremes_ == Extremes::number_instructions)
    return builder_.CreateBinaryIntrinsic(greatest ? llvm::Intrinsic::maxnum : llvm::Intrinsic::minnum, a, b);
  if (extremes_ == Extremes::instructions)
    return builder_.CreateBinaryIntrinsic(greatest ? llvm::Intrinsic::maximum : llvm::Intrinsic::minimum, a, b);
  // The comparison and selection are one instruction of x86, and give `b` if one of them is NaN. A constant is a
  // number.
  if (llvm::isa<llvm::Constant>(b)) std::swap(a, b);
  llvm::Value* const result =
      builder_.CreateSelect(greatest ? builder_.CreateFCmpOGT(a, b) : builder_.CreateFCmpOLT(a, b), a, b);
  const bool any = extremes_ == Extremes::selected_number || llvm::isa<llvm::Constant>(a);
  return any ? result : nan_kept(a, result);
}

// Without an instruction: to the nearest integer, then one less if that is above.
llvm::Value* Functions::floor(llvm::Value* x) {
  if (rounds_) return builder_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, x);
  llvm::Value* const nearest = round(x);
  llvm::Value* const less = builder_.CreateFSub(nearest, number(x, 1));
  return builder_.CreateSelect(builder_.CreateFCmpOGT(nearest, x), less, nearest);
}

// Without an instruction: adding a number from which on all are integers rounds. The intrinsic would be a call of libm.
llvm::Value* Functions::round(llvm::Value* x) {
  if (rounds_to_even_) return builder_.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, x);
  llvm::Constant* const from = number(x, integers_from(x));
  llvm::Value* const size = abs(x);
  llvm::Value* const nearest = copysign(builder_.CreateFSub(builder_.CreateFAdd(size, from), from), x);
  return builder_.CreateSelect(builder_.CreateFCmpOLT(size, from), nearest, x);
}

llvm::Value* Functions::abs(llvm::Value* x) {
  return builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
}

llvm::Value* Functions::sqrt(llvm::Value* x) {
  return builder_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x);
}

llvm::Value* Functions::rsqrt(llvm::Value* x) {
  return builder_.CreateFDiv(number(x, 1), sqrt(x));
}

// e^x = 2^n * e^r.
llvm::Value* Functions::exp(llvm::Value* x) {
  if (scales(x)) {
    // Beyond the exponents that there are, and of infinities, the rest is any number; n remains NaN if x is.
    const Reduced by = reduced(x, magic(x));
    return scaled_by(polynomial(within(by.r, 1), exp_single), by.n);
  }
  const bool single = is_single(x);
  x = extreme(false, x, number(x, single ? 89.0 : 710.0));
  x = extreme(true, x, number(x, single ? -104.0 : -746.0));
  return exp_of_bounded(x);
}

llvm::Value* Functions::exp_of_bounded(llvm::Value* x) {
  if (scales(x)) {
    const Reduced by = reduced(x, magic(x));
    return scaled_by(polynomial(by.r, exp_single), by.n);
  }
  const Reduced by = reduced(x, scaling_magic(x));
  return scaled(is_single(x) ? polynomial(by.r, exp_single) : exp_series(by.r, 13), by.shifted);
}

Functions::Reduced Functions::reduced(llvm::Value* x, double to_integer) {
  llvm::Value* const shifted = fused(x, number(x, log2e), number(x, to_integer));
  llvm::Value* const n = builder_.CreateFSub(shifted, number(x, to_integer));
  // ln 2 in two parts, the first short enough for n * ln2_high to be exact.
  const double ln2_high = is_single(x) ? 0.693359375 : 0.693147180369123816490;
  const double ln2_low = is_single(x) ? -2.12194440054690583e-4 : 1.90821492927058770002e-10;
  llvm::Value* r = fused(n, number(x, -ln2_high), x);
  r = fused(n, number(x, -ln2_low), r);
  return {shifted, n, r};
}

llvm::Value* Functions::exp_series(llvm::Value* r, int degree) {
  return polynomial(r, inverse_factorials(0, degree));
}

// x * 2^n in two factors, so that results beyond the normal numbers overflow to infinity and underflow gradually. The
// low bits of `shifted` are n + 2 * bias: its halves are the exponents of the factors, and the bits above them are
// shifted out.
llvm::Value* Functions::scaled(llvm::Value* x, llvm::Value* shifted) {
  llvm::Value* const exponents = builder_.CreateBitCast(shifted, bits_type(x));
  llvm::Value* const half = builder_.CreateLShr(exponents, bits(x, 1));
  llvm::Value* const rest = builder_.CreateSub(exponents, half);
  for (llvm::Value* part : {half, rest}) {
    llvm::Value* const power = builder_.CreateShl(part, bits(x, mantissa_bits(x)));
    x = builder_.CreateFMul(x, builder_.CreateBitCast(power, x->getType()));
  }
  return x;
}

llvm::Value* Functions::scaled_to_normal(llvm::Value* x, llvm::Value* shifted) {
  llvm::Value* const n = builder_.CreateShl(builder_.CreateBitCast(shifted, bits_type(x)), bits(x, mantissa_bits(x)));
  return builder_.CreateBitCast(builder_.CreateAdd(builder_.CreateBitCast(x, bits_type(x)), n), x->getType());
}

bool Functions::scales(const llvm::Value* x) const {
  const auto* const vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  if (!scales_ || vector == nullptr || !is_single(x)) return false;
  const unsigned lanes = vector->getNumElements();
  return lanes == 4 || lanes == 8 || lanes == 16;
}

llvm::Value* Functions::within(llvm::Value* x, double most) {
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(x->getType())->getNumElements();
  llvm::Value* const all = llvm::ConstantInt::get(builder_.getIntNTy(std::max(8U, lanes)), ~std::uint64_t(0));
  constexpr std::uint32_t least_size_with_sign_of_first = 2;
  std::vector<llvm::Value*> operands = {x, number(x, most), builder_.getInt32(least_size_with_sign_of_first), x, all};
  if (lanes == 16) operands.push_back(builder_.getInt32(current_rounding));
  return builder_.CreateIntrinsic(lanes == 16  ? llvm::Intrinsic::x86_avx512_mask_range_ps_512
                                  : lanes == 8 ? llvm::Intrinsic::x86_avx512_mask_range_ps_256
                                               : llvm::Intrinsic::x86_avx512_mask_range_ps_128,
                                  {}, operands);
}

llvm::Value* Functions::scaled_by(llvm::Value* x, llvm::Value* n) {
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(x->getType())->getNumElements();
  llvm::Value* const all = llvm::ConstantInt::get(builder_.getIntNTy(std::max(8U, lanes)), ~std::uint64_t(0));
  std::vector<llvm::Value*> operands = {x, n, x, all};
  if (lanes == 16) operands.push_back(builder_.getInt32(current_rounding));
  return builder_.CreateIntrinsic(lanes == 16  ? llvm::Intrinsic::x86_avx512_mask_scalef_ps_512
                                  : lanes == 8 ? llvm::Intrinsic::x86_avx512_mask_scalef_ps_256
                                               : llvm::Intrinsic::x86_avx512_mask_scalef_ps_128,
                                  {}, operands);
}

Functions::Split Functions::split(llvm::Value* x) {
  llvm::Type* const integer = bits_type(x);
  const double least = is_single(x) ? double(std::numeric_limits<float>::min()) : std::numeric_limits<double>::min();
  llvm::Value* const denormal = builder_.CreateFCmpOLT(x, number(x, least));
  llvm::Value* const normal = builder_.CreateSelect(denormal, builder_.CreateFMul(x, number(x, integers_from(x))), x);
  llvm::Value* const all = builder_.CreateBitCast(normal, integer);
  llvm::Constant* const places = bits(x, mantissa_bits(x));
  const std::int64_t one = bits_of(x, 1);
  // With the bias it is positive: not every target shifts signs in.
  llvm::Value* const biased =
      builder_.CreateLShr(builder_.CreateAdd(all, bits(x, one - bits_of(x, std::numbers::sqrt2 / 2))), places);
  llvm::Value* const m = builder_.CreateBitCast(
      builder_.CreateSub(builder_.CreateAdd(all, bits(x, one)), builder_.CreateShl(biased, places)), x->getType());
  llvm::Value* const shifted =
      builder_.CreateBitCast(builder_.CreateAdd(biased, bits(x, bits_of(x, magic(x)))), x->getType());
  llvm::Value* const k = builder_.CreateFSub(shifted, number(x, magic(x) + bias(x)));
  llvm::Value* const moved = builder_.CreateSelect(denormal, number(x, mantissa_bits(x)), number(x, 0));
  return {builder_.CreateFSub(k, moved), m};
}

// ln((1 + s) / (1 - s)) / s - 2, which is s^2 * (2/3 + 2/5 s^2 + ...).
llvm::Value* Functions::log_series(llvm::Value* s, int terms) {
  std::vector<double> coefficients;
  for (int n = 0; n < terms; ++n) coefficients.push_back(2.0 / (2 * n + 3));
  llvm::Value* const square = builder_.CreateFMul(s, s);
  return builder_.CreateFMul(square, polynomial(square, coefficients));
}

// k ln 2 + ln(1 + f), of s = f / (2 + f), as f minus a correction: f is exact.
llvm::Value* Functions::log(llvm::Value* x) {
  const Split of = split(x);
  llvm::Value* const f = builder_.CreateFSub(of.m, number(x, 1));
  llvm::Value* const s = builder_.CreateFDiv(f, builder_.CreateFAdd(f, number(x, 2)));
  llvm::Value* const series = log_series(s, is_single(x) ? 4 : 10);
  llvm::Value* const half_square = builder_.CreateFMul(builder_.CreateFMul(f, number(x, 0.5)), f);
  // ln 2 in two parts, the first short enough for k * ln2_high to be exact.
  const double ln2_high = is_single(x) ? 0.693359375 : 0.693147180369123816490, ln2_low = ln2 - ln2_high;
  llvm::Value* correction =
      fused(of.k, number(x, ln2_low), builder_.CreateFMul(s, builder_.CreateFAdd(half_square, series)));
  correction = builder_.CreateFSub(half_square, correction);
  llvm::Value* result = fused(of.k, number(x, ln2_high), builder_.CreateFSub(f, correction));
  result = builder_.CreateSelect(builder_.CreateFCmpOLT(x, number(x, infinity)), result, x);
  result = builder_.CreateSelect(builder_.CreateFCmpOEQ(x, number(x, 0)), number(x, -infinity), result);
  return builder_.CreateSelect(builder_.CreateFCmpOLT(x, number(x, 0)), llvm::ConstantFP::getNaN(x->getType()), result);
}

// (e^2|x| - 1) / (e^2|x| + 1), from e^2|x| - 1 without the cancellation near 0.
llvm::Value* Functions::tanh(llvm::Value* x) {
  llvm::Value* const size = abs(x);
  llvm::Constant* const end = number(x, is_single(x) ? 10 : 20);  // 1 from here on
  llvm::Value* const bounded = builder_.CreateSelect(builder_.CreateFCmpOLT(size, end), size, end);
  const Reduced by = reduced(builder_.CreateFAdd(bounded, bounded), magic(x));
  llvm::Value* const tail = polynomial(by.r, inverse_factorials(2, is_single(x) ? 7 : 13));
  llvm::Value* const part = fused(builder_.CreateFMul(by.r, by.r), tail, by.r);  // e^r - 1
  llvm::Value* const power = scaled_to_normal(number(x, 1), by.shifted);
  llvm::Value* const less_one = fused(power, part, builder_.CreateFSub(power, number(x, 1)));
  llvm::Value* const result = builder_.CreateFDiv(less_one, builder_.CreateFAdd(less_one, number(x, 2)));
  return nan_kept(x, copysign(result, x));
}

// 1 / (1 + e^-x), for negative x as e^x / (1 + e^x), which underflows as e^x does.
llvm::Value* Functions::sigmoid(llvm::Value* x) {
  llvm::Value* const power = exp(builder_.CreateFNeg(abs(x)));
  llvm::Value* const above = builder_.CreateSelect(builder_.CreateFCmpOLT(x, number(x, 0)), power, number(x, 1));
  return builder_.CreateFDiv(above, builder_.CreateFAdd(power, number(x, 1)));
}

// Up to 1 the series of erf, beyond 1 - erfc.
llvm::Value* Functions::erf(llvm::Value* x) {
  const bool single = is_single(x);
  std::vector<double> coefficients;  // of erf(x) / x - 1 in x^2
  double term = 2 * std::numbers::inv_sqrtpi;
  for (int n = 0; n <= (single ? 10 : 18); ++n) {
    if (n > 0) term /= -n;
    coefficients.push_back(term / (2 * n + 1) - (n == 0 ? 1 : 0));
  }
  llvm::Value* const inner = fused(x, polynomial(builder_.CreateFMul(x, x), coefficients), x);
  llvm::Value* const size = abs(x);
  llvm::Constant* const end = number(x, single ? 4 : 6);  // 1 from here on
  llvm::Value* const bounded = builder_.CreateSelect(builder_.CreateFCmpOLT(size, end), size, end);
  const llvm::ArrayRef<double> fitted =
      single ? llvm::ArrayRef<double>(log_erfc_single) : llvm::ArrayRef<double>(log_erfc_double);
  llvm::Value* const log_erfc = polynomial(builder_.CreateFSub(bounded, number(x, 1)), fitted);
  llvm::Value* const outer = copysign(builder_.CreateFSub(number(x, 1), exp_of_bounded(log_erfc)), x);
  return nan_kept(x, builder_.CreateSelect(builder_.CreateFCmpOLT(size, number(x, 1)), inner, outer));
}

llvm::Value* Functions::sin(llvm::Value* x) {
  return sine(x, 0);
}
llvm::Value* Functions::cos(llvm::Value* x) {
  return sine(x, 1);
}

// x = n * pi / 2 + r, |r| <= pi / 4: by n the series of the sine of r or of its cosine, or one of them with the other
// sign. Pi / 2 is subtracted in three parts, the first two so short that n * part is exact, and from f32 in double.
llvm::Value* Functions::sine(llvm::Value* x, int quarters) {
  constexpr double parts[] = {0x1.921fb54400000p+0, 0x1.0b4611a600000p-34, 0x1.3198a2e037073p-69};
  const bool single = is_single(x);
  llvm::Value* const wide = single ? builder_.CreateFPExt(x, doubles_like(x)) : x;
  llvm::Value* const shifted = fused(wide, number(wide, 2 * std::numbers::inv_pi), number(wide, magic(wide)));
  llvm::Value* const n = builder_.CreateFSub(shifted, number(wide, magic(wide)));
  llvm::Value* r = wide;
  for (const double part : parts) r = fused(n, number(wide, -part), r);
  r = nan_kept(r, clamped(r, 1));  // n of more than 51 bits is none
  llvm::Value* quadrant = builder_.CreateAdd(builder_.CreateBitCast(shifted, bits_type(wide)), bits(wide, quarters));
  if (single) {
    r = builder_.CreateFPTrunc(r, x->getType());
    quadrant = builder_.CreateTrunc(quadrant, bits_type(x));
  }
  llvm::Value* const square = builder_.CreateFMul(r, r);
  std::vector<double> of_sine, of_cosine;
  const std::vector<double> inverses = inverse_factorials(0, single ? 11 : 19);
  for (std::size_t k = 0; k < inverses.size(); ++k)
    (k % 2 == 0 ? of_cosine : of_sine).push_back(k / 2 % 2 == 0 ? inverses[k] : -inverses[k]);
  llvm::Value* const sine = builder_.CreateFMul(r, polynomial(square, of_sine));
  llvm::Value* const cosine = polynomial(square, of_cosine);
  llvm::Value* const odd = builder_.CreateICmpNE(builder_.CreateAnd(quadrant, bits(x, 1)), bits(x, 0));
  llvm::Value* const result = builder_.CreateBitCast(builder_.CreateSelect(odd, cosine, sine), bits_type(x));
  const int to_sign = int(bits_type(x)->getScalarSizeInBits()) - 2;  // from the bit that says the other half
  llvm::Value* const sign = builder_.CreateShl(builder_.CreateAnd(quadrant, bits(x, 2)), bits(x, to_sign));
  return builder_.CreateBitCast(builder_.CreateXor(result, sign), x->getType());
}

// x^y of a known y that is a multiple of 1/4 within -4 and 4, by products and square roots; null for others.
llvm::Value* Functions::power_of_quarters(llvm::Value* x, llvm::Value* y) {
  const auto* known = llvm::dyn_cast<llvm::Constant>(y);
  if (known != nullptr && known->getType()->isVectorTy()) known = known->getSplatValue();
  const auto* const exponent = llvm::dyn_cast_or_null<llvm::ConstantFP>(known);
  if (exponent == nullptr) return nullptr;
  constexpr double most = 4;
  const double quarters = 4 * exponent->getValueAPF().convertToDouble();
  if (!(std::abs(quarters) <= 4 * most) || quarters != std::floor(quarters)) return nullptr;
  const int count = std::abs(int(quarters)), whole = count / 4;
  // As C's pow: of negative numbers -0 and -infinity have roots, those of their size.
  llvm::Value* outside = nullptr;
  if (count % 4 != 0) {
    outside =
        builder_.CreateAnd(builder_.CreateFCmpOLT(x, number(x, 0)), builder_.CreateFCmpOGT(x, number(x, -infinity)));
    x = abs(x);
  }
  llvm::Value *result = nullptr, *roots = nullptr;
  const auto times = [&](llvm::Value*& product, llvm::Value* factor) {
    product = product != nullptr ? builder_.CreateFMul(product, factor) : factor;
  };
  const auto inverse = [&](llvm::Value* of) { return builder_.CreateFDiv(number(x, 1), of); };
  if (count % 4 != 0) {
    llvm::Value* const root = sqrt(x);
    if (count % 4 != 1) times(roots, root);
    if (count % 4 != 2) times(roots, sqrt(root));
    result = quarters < 0 ? inverse(roots) : roots;
  }
  // Powers of 1/x, since a product that is too small for a normal number has lost bits.
  llvm::Value* power = quarters < 0 && whole > 0 ? inverse(x) : x;  // then its square, ...
  for (int left = whole; left > 0; left /= 2) {
    if (left % 2 != 0) times(result, power);
    if (left > 1) power = builder_.CreateFMul(power, power);
  }
  if (outside != nullptr) result = builder_.CreateSelect(outside, llvm::ConstantFP::getNaN(x->getType()), result);
  return result != nullptr ? result : number(x, 1);
}

// As C's pow: x^0 and 1^y are 1 even for NaN, negative x have powers of whole y only.
llvm::Value* Functions::pow(llvm::Value* x, llvm::Value* y) {
  if (llvm::Value* const simple = power_of_quarters(x, y)) return simple;
  llvm::Value* const size = abs(x);
  llvm::Value* result = is_single(x) ? power_of_float(size, y) : power_of_double(size, y);
  llvm::Constant *const zero = number(x, 0), *const one = number(x, 1);
  llvm::Constant* const none = llvm::ConstantFP::getNaN(x->getType());
  result = builder_.CreateSelect(builder_.CreateFCmpOEQ(size, one), one, result);
  llvm::Value* const half = builder_.CreateFMul(y, number(y, 0.5));
  llvm::Value* const whole = builder_.CreateFCmpOEQ(floor(y), y);
  llvm::Value* const odd = builder_.CreateAnd(whole, builder_.CreateFCmpONE(floor(half), half));
  result = builder_.CreateSelect(odd, copysign(result, x), result);
  llvm::Value* const outside = builder_.CreateAnd(
      builder_.CreateAnd(builder_.CreateFCmpOLT(x, zero), builder_.CreateFCmpOLT(size, number(x, infinity))),
      builder_.CreateNot(whole));
  result = builder_.CreateSelect(builder_.CreateOr(outside, builder_.CreateFCmpUNO(x, y)), none, result);
  const auto exactly = [&](llvm::Value* value, llvm::Constant* other) { return builder_.CreateFCmpOEQ(value, other); };
  return builder_.CreateSelect(builder_.CreateOr(exactly(y, zero), exactly(x, one)), one, result);
}

// 2^(y log2 size) in double, so that only one rounding to f32 is visible.
llvm::Value* Functions::power_of_float(llvm::Value* size, llvm::Value* y) {
  llvm::Type *const single = size->getType(), *const wide = doubles_like(size);
  size = builder_.CreateFPExt(size, wide);
  y = builder_.CreateFPExt(y, wide);
  const Split of = split(size);
  llvm::Value* const f = builder_.CreateFSub(of.m, number(y, 1));
  llvm::Value* const s = builder_.CreateFDiv(f, builder_.CreateFAdd(f, number(y, 2)));
  llvm::Value* const log = fused(s, log_series(s, 6), builder_.CreateFAdd(s, s));
  llvm::Value* const log2 = log2_of_ends(size, fused(log, number(y, log2e), of.k));
  llvm::Value* const exponent = clamped(builder_.CreateFMul(y, log2), 200);  // beyond f32
  llvm::Value* const shifted = builder_.CreateFAdd(exponent, number(y, magic(y)));
  llvm::Value* const rest = builder_.CreateFSub(exponent, builder_.CreateFSub(shifted, number(y, magic(y))));
  llvm::Value* const power = exp_series(builder_.CreateFMul(rest, number(y, ln2)), 8);
  return builder_.CreateFPTrunc(scaled_to_normal(power, shifted), single);
}

// The same with a logarithm of more than 60 bits: the product has up to 10 bits in front of the point.
llvm::Value* Functions::power_of_double(llvm::Value* size, llvm::Value* y) {
  llvm::IRBuilderBase::FastMathFlagGuard guard(builder_);
  builder_.clearFastMathFlags();  // rounding errors are computed: nothing may be fused
  const Pair log = log2(size);
  llvm::Value* const high = log2_of_ends(size, log.high);
  llvm::Value* const y_high = truncated(y);
  llvm::Value* const log_high = truncated(high);
  llvm::Value* const log_rest = builder_.CreateFAdd(builder_.CreateFSub(high, log_high), log.low);
  llvm::Value* const rounded = builder_.CreateFMul(y, high);
  llvm::Value* const low = builder_.CreateFAdd(builder_.CreateFMul(builder_.CreateFSub(y, y_high), high),
                                               builder_.CreateFMul(y_high, log_rest));
  constexpr double most = 1100;  // beyond f64
  llvm::Value* const inside = builder_.CreateFCmpOLT(abs(rounded), number(y, most));
  llvm::Value* const exponent =
      builder_.CreateSelect(inside, builder_.CreateFMul(y_high, log_high), clamped(rounded, most));
  llvm::Value* const shifted = builder_.CreateFAdd(exponent, number(y, scaling_magic(y)));
  llvm::Value* rest = builder_.CreateFSub(exponent, builder_.CreateFSub(shifted, number(y, scaling_magic(y))));
  rest = builder_.CreateFAdd(rest, builder_.CreateSelect(inside, low, number(y, 0)));
  return scaled(exp_series(builder_.CreateFMul(rest, number(y, ln2)), 13), shifted);
}

// k + 2 (s + s^3/3 + s^5/5 + ...) / ln 2. Large terms are kept in two parts, the first of 26 bits.
Functions::Pair Functions::log2(llvm::Value* x) {
  const auto add = [&](llvm::Value* a, llvm::Value* b) { return builder_.CreateFAdd(a, b); };
  const auto sub = [&](llvm::Value* a, llvm::Value* b) { return builder_.CreateFSub(a, b); };
  const auto mul = [&](llvm::Value* a, llvm::Value* b) { return builder_.CreateFMul(a, b); };
  const auto c = [&](double value) { return number(x, value); };
  const Split of = split(x);
  llvm::Value* const f = sub(of.m, c(1));

  // s = f / (2 + f): the low part is the remainder of the division, divided.
  llvm::Value* const divisor = add(f, c(2));
  llvm::Value* const divisor_high = truncated(divisor);
  llvm::Value* const divisor_low = add(sub(divisor, divisor_high), sub(f, sub(divisor, c(2))));
  llvm::Value* const s = builder_.CreateFDiv(f, divisor);
  llvm::Value* const s_high = truncated(s);
  llvm::Value* const remainder = sub(sub(f, mul(s_high, divisor_high)), mul(s_high, divisor_low));
  llvm::Value* const s_low = builder_.CreateFDiv(remainder, divisor);

  // 2/3 s^2 + 2/5 s^4 + ..., the first term in two parts.
  constexpr double third_high = 0.6666666567325592, third_low = 9.934107462565104e-09;
  llvm::Value* const square = mul(s_high, s_high);
  llvm::Value* const square_low = mul(s_low, add(s, s_high));
  llvm::Value* const square_high = truncated(square);
  llvm::Value* const term = mul(square_high, c(third_high));
  llvm::Value* tail = add(mul(add(sub(square, square_high), square_low), c(2.0 / 3)), mul(square_high, c(third_low)));
  std::vector<double> coefficients;
  for (int n = 0; n < 10; ++n) coefficients.push_back(2.0 / (2 * n + 5));
  llvm::Value* const rounded_square = mul(s, s);
  tail = add(tail, mul(rounded_square, mul(rounded_square, polynomial(rounded_square, coefficients))));

  // Times s, and 2 s in front: the natural logarithm of m.
  llvm::Value* const term_high = truncated(term);
  llvm::Value* const cube = mul(s_high, term_high);
  llvm::Value* rest = add(add(mul(s_high, sub(term, term_high)), mul(s_low, term)), mul(s, tail));
  llvm::Value* const twice = add(s_high, s_high);
  llvm::Value* const log = add(twice, cube);
  rest = add(add(sub(cube, sub(log, twice)), rest), add(s_low, s_low));
  llvm::Value* const log_high = truncated(log);
  rest = add(sub(log, log_high), rest);

  constexpr double log2e_high = 1.4426950216293335, log2e_low = 1.9259629911266175e-08;
  llvm::Value* const main = mul(log_high, c(log2e_high));
  llvm::Value* low = add(mul(log_high, c(log2e_low)), mul(rest, c(log2e)));
  llvm::Value* const sum = add(of.k, main);
  low = add(sub(main, sub(sum, of.k)), low);
  llvm::Value* const high = add(sum, low);
  return {high, sub(low, sub(high, sum))};
}

llvm::Value* Functions::log2_of_ends(llvm::Value* size, llvm::Value* log) {
  log = builder_.CreateSelect(builder_.CreateFCmpOEQ(size, number(size, 0)), number(size, -infinity), log);
  return builder_.CreateSelect(builder_.CreateFCmpOEQ(size, number(size, infinity)), number(size, infinity), log);
}

// Within -most and most, NaN as one of them.
llvm::Value* Functions::clamped(llvm::Value* x, double most) {
  x = builder_.CreateSelect(builder_.CreateFCmpOLT(x, number(x, most)), x, number(x, most));
  return builder_.CreateSelect(builder_.CreateFCmpOGT(x, number(x, -most)), x, number(x, -most));
}

// The first 26 bits of a double: products of two such are exact.
llvm::Value* Functions::truncated(llvm::Value* x) {
  llvm::Value* const high =
      builder_.CreateAnd(builder_.CreateBitCast(x, bits_type(x)), bits(x, -(std::int64_t(1) << 27)));
  return builder_.CreateBitCast(high, x->getType());
}

llvm::Type* Functions::doubles_like(const llvm::Value* x) {
  llvm::Type* const element = llvm::Type::getDoubleTy(x->getContext());
  if (const auto* vector = llvm::dyn_cast<llvm::VectorType>(x->getType()))
    return llvm::VectorType::get(element, vector->getElementCount());
  return element;
}

llvm::Value* Functions::fused(llvm::Value* a, llvm::Value* b, llvm::Value* c) {
  return builder_.CreateIntrinsic(llvm::Intrinsic::fmuladd, {a->getType()}, {a, b, c});
}

llvm::Value* Functions::polynomial(llvm::Value* x, llvm::ArrayRef<double> coefficients) {
  llvm::Value* sum = number(x, coefficients.back());
  for (std::size_t k = coefficients.size() - 1; k-- > 0;) sum = fused(sum, x, number(x, coefficients[k]));
  return sum;
}

llvm::Value* Functions::nan_kept(llvm::Value* x, llvm::Value* result) {
  return builder_.CreateSelect(builder_.CreateFCmpUNO(x, x), x, result);
}

llvm::Value* Functions::copysign(llvm::Value* size, llvm::Value* sign) {
  return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, size, sign);
}

}  // namespace graft::codegen
