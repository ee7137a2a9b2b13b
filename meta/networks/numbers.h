// The numbers of networks: arrays of real numbers, or of dual numbers (value and slope along a direction). A network
// that is written once over either has exact derivatives along a direction for free: its forward pass on dual numbers
// is J v, its backward pass on dual numbers is the Hessian-vector product. Private to networks/ and the losses.
#pragma once

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "meta/networks/gemm.h"
#include "meta/networks/wide.h"

namespace graft::meta {

template <class T>
struct Dual {
  T value = 0, slope = 0;
  GRAFT_INLINE friend Dual operator+(Dual a, Dual b) { return {a.value + b.value, a.slope + b.slope}; }
  GRAFT_INLINE friend Dual operator-(Dual a, Dual b) { return {a.value - b.value, a.slope - b.slope}; }
  GRAFT_INLINE friend Dual operator*(Dual a, Dual b) {
    return {a.value * b.value, a.slope * b.value + a.value * b.slope};
  }
};

template <class N>
struct RealOf {
  using type = N;
};
template <class T>
struct RealOf<Dual<T>> {
  using type = T;
};
template <class N>
using Real = typename RealOf<N>::type;  // float or double
template <class N>
constexpr bool is_dual = !std::is_same_v<N, Real<N>>;

template <class N>
GRAFT_INLINE Real<N> value_of(N x) {
  if constexpr (is_dual<N>) {
    return x.value;
  } else {
    return x;
  }
}
// A constant.
template <class N>
GRAFT_INLINE N number(Real<N> value) {
  if constexpr (is_dual<N>) {
    return {value, 0};
  } else {
    return value;
  }
}

// e^x within 2e-7 of its value, without a call, so that loops of it are vectorised: 2^n times a polynomial (Taylor's)
// on half an octave to either side.
GRAFT_INLINE float exponential(float x) {
  // Within +-87, by the bits of its magnitude: with a comparison the compiler would emit a branch, and no vectors.
  std::uint32_t bits_of_x;
  std::memcpy(&bits_of_x, &x, sizeof x);
  bits_of_x = (bits_of_x & 0x80000000u) | std::min(bits_of_x & 0x7fffffffu, 0x42ae0000u);
  std::memcpy(&x, &bits_of_x, sizeof x);
  const float octaves = x * 1.44269504f, rounder = 12582912.0f;  // 1.5 * 2^23: adding it rounds to a whole number
  const float whole = (octaves + rounder) - rounder;
  // ln 2 in two parts, so that the rest is exact.
  const float rest = (x - whole * 0.693145752f) - whole * 1.42860677e-6f;
  float power = 1.0f / 720;
  power = power * rest + 1.0f / 120;
  power = power * rest + 1.0f / 24;
  power = power * rest + 1.0f / 6;
  power = power * rest + 0.5f;
  power = power * rest + 1.0f;
  power = power * rest + 1.0f;
  const std::int32_t bits = (std::int32_t(whole) + 127) << 23;
  float scale;
  std::memcpy(&scale, &bits, sizeof scale);
  return power * scale;
}
GRAFT_INLINE double exponential(double x) {
  return std::exp(x);
}

// The natural logarithm of a positive normal number within 2e-7 of its magnitude, in the same way: of 2^n m, m around
// 1, n ln 2 + 2 artanh((m - 1) / (m + 1)), the latter by its series.
GRAFT_INLINE float logarithm(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof x);
  const std::uint32_t above = bits - 0x3f3504f3u;  // sqrt(1/2)
  const float octaves = float(std::int32_t(above) >> 23);
  const std::uint32_t mantissa_bits = (above & 0x007fffffu) + 0x3f3504f3u;
  float m;
  std::memcpy(&m, &mantissa_bits, sizeof m);
  const float s = (m - 1) / (m + 1), square = s * s;
  float series = 2.0f / 9;
  series = series * square + 2.0f / 7;
  series = series * square + 2.0f / 5;
  series = series * square + 2.0f / 3;
  series = series * square + 2.0f;
  return octaves * 0.693147181f + s * series;
}
GRAFT_INLINE double logarithm(double x) {
  return std::log(x);
}

template <class T>
GRAFT_INLINE T sigmoid(T x) {
  return T(1) / (T(1) + exponential(-x));
}
template <class T>
GRAFT_INLINE Dual<T> sigmoid(Dual<T> x) {
  const T y = sigmoid(x.value);
  return {y, y * (T(1) - y) * x.slope};
}
template <class T>
GRAFT_INLINE T hyperbolic_tangent(T x) {
  return T(1) - T(2) / (T(1) + exponential(T(2) * x));
}
template <class T>
GRAFT_INLINE Dual<T> hyperbolic_tangent(Dual<T> x) {
  const T y = hyperbolic_tangent(x.value);
  return {y, (T(1) - y * y) * x.slope};
}
// The derivative of ReLU is taken as 0 at 0.
template <class N>
GRAFT_INLINE N rectified(N x) {
  return value_of<N>(x) > 0 ? x : number<N>(0);
}

// Rows of numbers in memory: values, and slopes in a separate array. No slopes: constants.
template <class N>
struct ConstView {
  const Real<N>* value = nullptr;
  const Real<N>* slope = nullptr;
  std::int64_t stride = 0;  // between rows

  ConstView from(std::int64_t row, std::int64_t column) const {
    const std::int64_t by = row * stride + column;
    return {value + by, slope == nullptr ? nullptr : slope + by, stride};
  }
  GRAFT_INLINE N at(std::int64_t j) const {  // of the first row
    if constexpr (is_dual<N>) {
      return {value[j], slope[j]};
    } else {
      return value[j];
    }
  }
};
template <class N>
struct View {
  Real<N>* value = nullptr;  // null: the values (of a gradient) are not needed
  Real<N>* slope = nullptr;
  std::int64_t stride = 0;

  operator ConstView<N>() const { return {value, slope, stride}; }
  View from(std::int64_t row, std::int64_t column) const {
    const std::int64_t by = row * stride + column;
    return {value == nullptr ? nullptr : value + by, slope == nullptr ? nullptr : slope + by, stride};
  }
  GRAFT_INLINE N at(std::int64_t j) const { return ConstView<N>(*this).at(j); }
  GRAFT_INLINE void put(std::int64_t j, N x) const {
    if constexpr (is_dual<N>) {
      value[j] = x.value;
      slope[j] = x.slope;
    } else {
      value[j] = x;
    }
  }
};

// Uninitialised memory. A thread keeps released memory for its next pass: fresh pages would cost more than the
// arithmetic on them.
void* borrow(std::size_t bytes);
void give_back(void* memory, std::size_t bytes) noexcept;

template <class T>
class Scratch {
 public:
  Scratch() = default;
  explicit Scratch(std::int64_t count)
      : data_(static_cast<T*>(borrow(sizeof(T) * std::size_t(count)))), count_(count) {}
  Scratch(Scratch&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  Scratch& operator=(Scratch&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }
  ~Scratch() {
    if (data_ != nullptr) give_back(data_, sizeof(T) * std::size_t(count_));
  }
  T* data() const { return data_; }
  std::int64_t size() const { return count_; }
  T& operator[](std::int64_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
  std::int64_t count_ = 0;
};

// An uninitialised matrix.
template <class N>
class Values {
 public:
  Values() = default;
  Values(std::int64_t rows, std::int64_t columns)
      : numbers_(rows * columns * (is_dual<N> ? 2 : 1)), rows_(rows), columns_(columns) {}
  std::int64_t rows() const { return rows_; }
  View<N> view() const {
    return {numbers_.data(), is_dual<N> ? numbers_.data() + rows_ * columns_ : nullptr, columns_};
  }
  View<N> row(std::int64_t i) const { return view().from(i, 0); }
  void clear() const { std::memset(numbers_.data(), 0, sizeof(Real<N>) * std::size_t(numbers_.size())); }

 private:
  Scratch<Real<N>> numbers_;
  std::int64_t rows_ = 0, columns_ = 0;
};

// gemm of gemm.h on numbers.
template <class N>
void multiply(Transposed a_form, Transposed b_form, std::int64_t m, std::int64_t n, std::int64_t k, ConstView<N> a,
              ConstView<N> b, std::type_identity_t<Real<N>> beta, View<N> c) {
  if (m == 0 || n == 0) return;
  if (c.value != nullptr) gemm(a_form, b_form, m, n, k, a.value, a.stride, b.value, b.stride, beta, c.value, c.stride);
  if constexpr (is_dual<N>) {
    assert(a.slope != nullptr || b.slope != nullptr);
    if (a.slope != nullptr) {
      gemm(a_form, b_form, m, n, k, a.slope, a.stride, b.value, b.stride, beta, c.slope, c.stride);
      beta = 1;
    }
    if (b.slope != nullptr) {
      gemm(a_form, b_form, m, n, k, a.value, a.stride, b.slope, b.stride, beta, c.slope, c.stride);
    }
  }
}

}  // namespace graft::meta
