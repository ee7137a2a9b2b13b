#include "codegen/expression/elements.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace graft::codegen {

Elements::Elements(DType type, std::int64_t count) : type_(type), count_(std::size_t(count)) {
  if (type == DType::f64)
    numbers_.resize(count_);
  else
    bytes_.resize(count_ * std::size_t(bytes_of(type)));
}

Elements::Elements(std::vector<std::int64_t> sample, std::int64_t count, double otherwise)
    : count_(std::size_t(count)), numbers_(sample.size()), sample_(std::move(sample)), otherwise_(otherwise) {
  assert(!sample_.empty() && std::is_sorted(sample_.begin(), sample_.end()));
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

std::size_t Elements::place(std::size_t element) const {
  const auto found = std::lower_bound(sample_.begin(), sample_.end(), std::int64_t(element));
  assert(found != sample_.end() && *found == std::int64_t(element));
  return std::size_t(found - sample_.begin());
}

double Elements::of_sample(std::size_t element) const {
  const auto found = std::lower_bound(sample_.begin(), sample_.end(), std::int64_t(element));
  if (found == sample_.end() || *found != std::int64_t(element)) return otherwise_;
  return numbers_[std::size_t(found - sample_.begin())];
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
