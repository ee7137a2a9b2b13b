#include "codegen/expression/elements.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <type_traits>
#include <utility>

namespace graft::codegen {

Elements::Elements(DType type, std::int64_t count) : type_(type), count_(std::size_t(count)) {
  if (type == DType::f64)
    numbers_.resize(count_);
  else
    bytes_.resize(count_ * std::size_t(bytes_of(type)));
}

Elements::Elements(DType type, std::string bytes) : type_(type), count_(bytes.size() / std::size_t(bytes_of(type))) {
  if (type == DType::f64)
    numbers_ = numbers_from(bytes, type);
  else
    bytes_ = std::move(bytes);
}

Elements::Elements(std::vector<std::int64_t> sample, std::vector<double> numbers, std::int64_t count, double otherwise)
    : count_(std::size_t(count)), numbers_(std::move(numbers)), sample_(std::move(sample)), otherwise_(otherwise) {
  assert(!sample_.empty() && sample_.size() == numbers_.size() && std::is_sorted(sample_.begin(), sample_.end()));
}

double Elements::stored(std::size_t element) const {
  return with_element_of(type_, [&](auto value) {
    std::memcpy(&value, bytes_.data() + element * sizeof value, sizeof value);
    return double(value);
  });
}

void Elements::set(std::size_t element, double number) {
  if (type_ == DType::f64) {
    numbers_[element] = number;
    return;
  }
  with_element_of(type_, [&](auto zero) {
    const auto value = decltype(zero)(number);
    std::memcpy(bytes_.data() + element * sizeof value, &value, sizeof value);
  });
}

void Elements::copy(std::size_t element, const Elements& from, std::size_t at) {
  assert(type_ == from.type_);
  const auto size = std::size_t(bytes_of(type_));
  if (type_ == DType::f64)
    numbers_[element] = from.numbers_[at];
  else
    std::memcpy(bytes_.data() + element * size, from.bytes_.data() + at * size, size);
}

double Elements::of_sample(std::size_t element) const {
  const auto found = std::lower_bound(sample_.begin(), sample_.end(), std::int64_t(element));
  if (found == sample_.end() || *found != std::int64_t(element)) return otherwise_;
  return numbers_[std::size_t(found - sample_.begin())];
}

void Elements::read(std::int64_t first, std::int64_t stride, std::span<double> to) const {
  if (is_sample()) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = of_sample(std::size_t(first + std::int64_t(i) * stride));
    return;
  }
  with_element_of(type_, [&](auto value) {
    const char* const from = (type_ == DType::f64 ? reinterpret_cast<const char*>(numbers_.data()) : bytes_.data()) +
                             first * std::int64_t(sizeof value);
    const auto copy = [&](auto step) {
      for (std::size_t i = 0; i < to.size(); ++i) {
        std::memcpy(&value, from + std::int64_t(i) * step * std::int64_t(sizeof value), sizeof value);
        to[i] = double(value);
      }
    };
    if (stride == 1)
      copy(std::integral_constant<std::int64_t, 1>());
    else if (stride == 0)
      std::fill(to.begin(), to.end(), (*this)[std::size_t(first)]);
    else
      copy(stride);
  });
}

std::vector<double> Elements::numbers() const {
  if (type_ == DType::f64 && !is_sample()) return numbers_;
  return {begin(), end()};
}

std::string Elements::bytes(DType type) const& {
  return type == type_ && type != DType::f64 ? bytes_ : as_bytes(numbers(), type);
}
std::string Elements::bytes(DType type) && {
  return type == type_ && type != DType::f64 ? std::move(bytes_) : as_bytes(numbers(), type);
}

bool Elements::operator==(const Elements& other) const {
  return sample_ == other.sample_ && std::equal(begin(), end(), other.begin(), other.end());
}

}  // namespace graft::codegen
