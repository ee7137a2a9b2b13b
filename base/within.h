// Whether a computed number is right. Headers of the language alone: the process that runs candidates includes this one
// too.
#pragma once

#include <cmath>

namespace graft::base {

// Whether a number is accepted in place of the expected one, here and everywhere: NaN for NaN only, and an infinity
// also where the expected number, made in double precision, is beyond the largest of the number's type.
inline bool within(double number, double expected, double tolerance, double largest) {
  if (number == expected || (std::isnan(number) && std::isnan(expected))) return true;
  if (std::isinf(number))
    return std::signbit(number) == std::signbit(expected) && std::fabs(expected) + tolerance > largest;
  return std::fabs(number - expected) <= tolerance;
}

}  // namespace graft::base
