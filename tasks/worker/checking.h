// Private to workers: whether outputs are right. `file` is the workload's, mapped whole.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/float16.h"
#include "base/within.h"
#include "tasks/worker/wire.h"

namespace graft::tasks::wire {

constexpr int unwritten = 0xff;  // each byte of a floating-point output before a run: a NaN that no operation gives

template <class T>
bool is_unwritten(const T& element) {
  if (std::is_integral_v<T>) return false;
  unsigned char bytes[sizeof(T)];
  memcpy(bytes, &element, sizeof bytes);
  for (const unsigned char byte : bytes)
    if (byte != unwritten) return false;
  return true;
}

template <class T>
double largest() {
  if constexpr (std::is_arithmetic_v<T>)
    return double(std::numeric_limits<T>::max());
  else
    return T::largest();
}

// False (and a message) at the first element that is not within `factor` times its tolerance, that was never written
// although NaN is right there, or that is NaN although it is not compared.
template <class T>
inline bool compare(const Part& part, const char* file, const char* data, double factor, Answer& answer) {
  const T* const got = reinterpret_cast<const T*>(data);
  const double* const expected = reinterpret_cast<const double*>(file + part.expected);
  const double* const tolerance = reinterpret_cast<const double*>(file + part.tolerance);
  const std::uint64_t* const numbers =
      part.numbers != 0 ? reinterpret_cast<const std::uint64_t*>(file + part.numbers) : nullptr;
  for (std::uint64_t c = 0; c < part.compared; ++c) {
    const std::uint64_t i = numbers != nullptr ? numbers[c] : c;
    const double value = double(got[i]);
    const double allowed = factor * tolerance[c];
    const bool written = !std::isnan(expected[c]) || !is_unwritten(got[i]);
    if (written && graft::base::within(value, expected[c], allowed, largest<T>())) continue;
    answer.outcome = Outcome::wrong_result;
    if (!written) {
      snprintf(answer.message, sizeof answer.message, "%s: element %llu is never written", part.name,
               static_cast<unsigned long long>(i));
      return false;
    }
    snprintf(answer.message, sizeof answer.message, "%s: element %llu is %.9g instead of %.9g (allowed error %.3g)",
             part.name, static_cast<unsigned long long>(i), value, expected[c], allowed);
    return false;
  }
  if (numbers == nullptr || part.others_are_numbers == 0) return true;
  for (std::uint64_t i = 0; i < part.elements; ++i) {
    if (!std::isnan(double(got[i]))) continue;
    answer.outcome = Outcome::wrong_result;
    snprintf(answer.message, sizeof answer.message, "%s: element %llu is nan instead of a number", part.name,
             static_cast<unsigned long long>(i));
    return false;
  }
  return true;
}

inline bool is_floating(Element element) {
  return element == Element::f32 || element == Element::f64 || element == Element::f16 || element == Element::bf16;
}

inline bool compare(const Part& part, const char* file, const char* data, double factor, Answer& answer) {
  switch (part.element) {
    case Element::f32:
      return compare<float>(part, file, data, factor, answer);
    case Element::f64:
      return compare<double>(part, file, data, factor, answer);
    case Element::i32:
      return compare<std::int32_t>(part, file, data, factor, answer);
    case Element::i8:
      return compare<std::int8_t>(part, file, data, factor, answer);
    case Element::u8:
      return compare<std::uint8_t>(part, file, data, factor, answer);
    case Element::i64:
      return compare<std::int64_t>(part, file, data, factor, answer);
    case Element::f16:
      return compare<graft::base::F16>(part, file, data, factor, answer);
    case Element::bf16:
      return compare<graft::base::BF16>(part, file, data, factor, answer);
  }
  return false;
}

}  // namespace graft::tasks::wire
