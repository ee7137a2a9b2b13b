// Numbers of 16 bits: every one of them, and the rounding to them.
#include "base/float16.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace graft::base {
namespace {

template <class T>
T of_bits(std::uint32_t bits) {
  T number;
  number.bits = std::uint16_t(bits);
  return number;
}

// By IEEE 754's definition: sign, exponent, fraction.
double defined(std::uint32_t bits, int fraction_bits, int bias, int all) {
  const int exponent = int(bits >> fraction_bits) & all;
  const double fraction = std::ldexp(double(bits & ((1u << fraction_bits) - 1)), -fraction_bits);
  const double size = exponent == all ? (fraction == 0 ? INFINITY : NAN)
                      : exponent == 0 ? std::ldexp(fraction, 1 - bias)
                                      : std::ldexp(1 + fraction, exponent - bias);
  return bits >> 15 != 0 ? -size : size;
}

template <class T>
void expect_every_number(int fraction_bits, int bias, int all) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const double wanted = defined(bits, fraction_bits, bias, all), got = double(of_bits<T>(bits));
    if (std::isnan(wanted)) {
      EXPECT_TRUE(std::isnan(got)) << bits;
      EXPECT_TRUE(std::isnan(double(T(got)))) << bits;
      continue;
    }
    ASSERT_EQ(got, wanted) << bits;
    ASSERT_EQ(std::signbit(got), std::signbit(wanted)) << bits;
    ASSERT_EQ(T(got).bits, bits);
    ASSERT_EQ(float(of_bits<T>(bits)), float(wanted));
  }
}

TEST(Float16, EveryNumberIsThatOfTheDefinition) {
  expect_every_number<F16>(10, 15, 31);
  expect_every_number<BF16>(7, 127, 255);
}

// Between each number and the next one: the middle goes to the even one, and what is next to the middle to the nearer.
template <class T>
void expect_nearest(std::uint32_t infinity) {
  const auto below = [](double x) { return std::nextafter(x, -INFINITY); };
  const auto above = [](double x) { return std::nextafter(x, INFINITY); };
  for (std::uint32_t low = 0; low + 1 < infinity; ++low) {
    const double a = double(of_bits<T>(low)), b = double(of_bits<T>(low + 1)), middle = a / 2 + b / 2;
    for (const std::uint32_t sign : {0u, 0x8000u}) {
      const double s = sign != 0 ? -1 : 1;
      ASSERT_EQ(T(s * middle).bits, (low % 2 == 0 ? low : low + 1) | sign) << middle;
      ASSERT_EQ(T(s * below(middle)).bits, low | sign) << middle;
      ASSERT_EQ(T(s * above(middle)).bits, (low + 1) | sign) << middle;
    }
  }
  const double largest = double(of_bits<T>(infinity - 1)), before = double(of_bits<T>(infinity - 2));
  const double first_beyond = largest + (largest - before) / 2;
  EXPECT_EQ(T(below(first_beyond)).bits, infinity - 1);
  for (const double beyond : {first_beyond, 2 * largest, std::numeric_limits<double>::max()}) {
    EXPECT_EQ(T(beyond).bits, infinity - 1);
    EXPECT_EQ(T(-beyond).bits, (infinity - 1) | 0x8000);
  }
  EXPECT_EQ(T(std::numeric_limits<double>::infinity()).bits, infinity);
  EXPECT_EQ(T(-std::numeric_limits<double>::infinity()).bits, infinity | 0x8000);
  EXPECT_EQ(T(1e-300).bits, 0);
  EXPECT_EQ(T(-1e-300).bits, 0x8000);
}

TEST(Float16, RoundsToTheNearestHalvesToEven) {
  expect_nearest<F16>(0x7c00);
  expect_nearest<BF16>(0x7f80);
}

}  // namespace
}  // namespace graft::base
