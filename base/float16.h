// Floating-point numbers of 16 bits as they are stored: f16 (binary16 of IEEE 754) and bf16 (a float's upper half).
// Nothing is computed in them. Headers of the language alone: the process that runs candidates includes this one too.
#pragma once

#include <bit>
#include <cstdint>

namespace graft::base {

// A sign, `exponent_bits` of exponent and the rest of fraction, with infinities, NaNs and subnormal numbers.
template <int exponent_bits>
struct Float16 {
  static constexpr int fraction_bits = 15 - exponent_bits;
  static constexpr int bias = (1 << (exponent_bits - 1)) - 1;
  static constexpr int all_exponent = (1 << exponent_bits) - 1;

  std::uint16_t bits = 0;

  static constexpr double largest() { return double(Float16(0x1p1000)); }  // that is finite

  constexpr Float16() = default;
  // The nearest number, halves to the one with an even last bit. Finite numbers stay finite: beyond the largest number
  // they become it, so that a mask of -3.4e38 does not become an infinity, whose difference from itself is NaN.
  constexpr explicit Float16(double number) {
    constexpr int dropped = 52 - fraction_bits;
    constexpr std::uint16_t infinity = all_exponent << fraction_bits;
    const std::uint64_t all = std::bit_cast<std::uint64_t>(number), size = all & (~std::uint64_t(0) >> 1);
    const int exponent = int(size >> 52) - 1023;
    if (exponent == 1024) {
      bits = size << 12 == 0 ? infinity : std::uint16_t(infinity | 1 << (fraction_bits - 1));
    } else if (exponent < 1 - bias) {  // subnormal: as many units of the least number
      const int by = dropped + 1 - bias - exponent;
      const std::uint64_t fraction = (size & (~std::uint64_t(0) >> 12)) | std::uint64_t(1) << 52;
      bits = by > 53 ? 0 : std::uint16_t(shifted(fraction, by));
    } else {
      const std::uint64_t rounded = shifted(size - (std::uint64_t(1023 - bias) << 52), dropped);
      bits = rounded < infinity ? std::uint16_t(rounded) : std::uint16_t(infinity - 1);
    }
    bits = std::uint16_t(bits | (all >> 63) << 15);
  }

  constexpr explicit operator double() const {
    const std::uint64_t sign = std::uint64_t(bits >> 15) << 63;
    const int exponent = (bits >> fraction_bits) & all_exponent;
    const std::uint64_t fraction = bits & ((1u << fraction_bits) - 1);
    if (exponent == 0) {
      constexpr double least = std::bit_cast<double>(std::uint64_t(1023 + 1 - bias - fraction_bits) << 52);
      const double size = double(fraction) * least;
      return sign != 0 ? -size : size;
    }
    const std::uint64_t wide = exponent == all_exponent ? 2047 : std::uint64_t(exponent - bias + 1023);
    return std::bit_cast<double>(sign | wide << 52 | fraction << (52 - fraction_bits));
  }
  constexpr explicit operator float() const { return float(double(*this)); }

 private:
  // value / 2^by, by from 1 to 63, rounded as above.
  static constexpr std::uint64_t shifted(std::uint64_t value, int by) {
    const std::uint64_t half = std::uint64_t(1) << (by - 1);
    return (value + half - 1 + ((value >> by) & 1)) >> by;
  }
};

using F16 = Float16<5>;
using BF16 = Float16<8>;

}  // namespace graft::base
