// Functions in double without branches, for loops that compilers make vectors of. Rounding to whole numbers is exact;
// the others have a relative error below 1e-11, far below the rounding of f32 and not of f64.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace graft::codegen::quick {

inline double round(double x) {     // half to even
  constexpr double whole = 0x1p52;  // no fractions from here on
  const double size = std::abs(x);
  return size < whole ? std::copysign((size + whole) - whole, x) : x;
}
inline double floor(double x) {
  const double nearest = round(x);
  return nearest > x ? nearest - 1 : nearest;
}
inline double trunc(double x) {
  return std::copysign(floor(std::abs(x)), x);
}

// ((first * x + next) * x + ...): written out, since loops with an inner loop do not become vectors.
template <class... Next>
double polynomial(double x, double first, Next... next) {
  ((first = first * x + next), ...);
  return first;
}

// x == whole * log(2) + rest, |rest| <= log(2) / 2, for |x| < 2000; e^rest - 1.
struct Exponent {
  explicit Exponent(double x) {
    constexpr double high = 0x1.62e42fp-1, low = 0x1.df473de6af279p-26;  // log(2): whole * high is exact
    whole = round(x * std::numbers::log2e);
    const double r = (x - whole * high) - whole * low;
    rest = r * polynomial(r, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
                          1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 1.0 / 2, 1.0);
  }
  double whole, rest;
};
// 2^n for whole numbers -1022 .. 1023. The bits of n + 2^52 + 2^51 end with those of n.
inline double power_of_two(double n) {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(n + 0x1.8p52);
  return std::bit_cast<double>((bits + 1023) << 52);
}

inline double exp(double x) {
  const double most = 710, least = -746;  // infinity, 0
  const double within = x > most ? most : x < least ? least : x;
  const Exponent e(within);
  const double half = floor(e.whole * 0.5);  // the power itself may be beyond the range of normal numbers
  return (1 + e.rest) * power_of_two(half) * power_of_two(e.whole - half);
}

inline double tanh(double x) {
  const double twice = std::abs(x) > 20 ? -40 : -2 * std::abs(x);  // 1 from there on
  const Exponent e(twice);
  const double power = power_of_two(e.whole), less_one = power * e.rest + (power - 1);
  return std::copysign(-less_one / (2 + less_one), x);
}

inline double erf(double x) {
  constexpr double near = 0.5, far = 6;  // 1 from there on
  const double size = std::abs(x) > far ? far : std::abs(x), square = size * size;
  // Near 0 Taylor's series, up to x^20 / (10! 21).
  const double series = polynomial(square, 1.0 / 76204800, -1.0 / 6894720, 1.0 / 685440, -1.0 / 75600, 1.0 / 9360,
                                   -1.0 / 1320, 1.0 / 216, -1.0 / 42, 1.0 / 10, -1.0 / 3, 1.0);
  // Farther on a polynomial that is exp(x^2) (x + 2) (1 - erf(x)), with an error of 4e-13 in erf(x): fitted at
  // Chebyshev's points of t.
  const double t = (size - 2) / (size + 2);
  const double fitted = polynomial(t, -1.3977368408469174e-05, 2.2782981717140855e-05, 0.00013832618570777335,
                                   3.7721117642297895e-05, -0.0006612796679171999, -0.0008377877277924518,
                                   0.0030903711646463983, 0.0064792214450155655, -0.02151064728625628,
                                   -0.036442232714610855, 0.2794720922335217, -0.6871606844016764, 1.0215827052431679);
  const double value =
      size < near ? 2 * std::numbers::inv_sqrtpi * size * series : 1 - quick::exp(-square) * fitted / (size + 2);
  return std::copysign(value, x);
}

}  // namespace graft::codegen::quick
