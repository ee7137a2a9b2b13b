// The elements of a tensor, held in its type, so that an i8 costs a byte: inputs of references. Results in double may
// be of a sample of a tensor's elements; a large one that is not looked at everywhere costs little then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codegen/expression/layout.h"
#include "codegen/expression/value.h"

namespace graft::codegen {

class Elements {
 public:
  Elements() = default;                  // none
  Elements(std::vector<double> numbers)  // NOLINT(google-explicit-constructor): as f64
      : count_(numbers.size()), numbers_(std::move(numbers)) {}
  Elements(std::initializer_list<double> numbers) : Elements(std::vector<double>(numbers)) {}
  // `count` zeros.
  Elements(DType type, std::int64_t count);
  // As they are stored; integers beyond 2^53 stay exact in `copy` and `bytes`.
  Elements(DType type, std::string bytes);
  // Those of these numbers (rising) out of `count`, in f64; `otherwise` is what all others read as.
  Elements(std::vector<std::int64_t> sample, std::vector<double> numbers, std::int64_t count, double otherwise);

  DType type() const { return type_; }
  std::size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  // The numbers of the elements that are held; empty: all of them.
  const std::vector<std::int64_t>& sample() const { return sample_; }
  bool is_sample() const { return !sample_.empty(); }
  double otherwise() const { return otherwise_; }

  double operator[](std::size_t element) const {
    if (is_sample()) return of_sample(element);
    return type_ == DType::f64 ? numbers_[element] : stored(element);
  }
  double& operator[](std::size_t element) { return numbers_[element]; }  // of f64, but of no sample
  // The n-th of those that are held.
  double held(std::size_t n) const { return type_ == DType::f64 ? numbers_[n] : stored(n); }
  // The number must be within the type's range.
  void set(std::size_t element, double number);
  // The element becomes the one of `from`, which has the same type; neither is a sample.
  void copy(std::size_t element, const Elements& from, std::size_t at);

  // Those at `first`, `first + stride`, ...
  void read(std::int64_t first, std::int64_t stride, std::span<double> to) const;
  // All of them, in f64 or as a type stores them.
  std::vector<double> numbers() const;
  std::string bytes(DType type) const&;
  std::string bytes(DType type) &&;

  bool operator==(const Elements& other) const;  // number by number, whatever the types

  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = double;
    using difference_type = std::ptrdiff_t;
    using pointer = const double*;
    using reference = double;
    Iterator() = default;
    Iterator(const Elements& of, std::size_t at) : of_(&of), at_(at) {}
    double operator*() const { return (*of_)[at_]; }
    Iterator& operator++() { return ++at_, *this; }
    Iterator operator++(int) { return {*of_, at_++}; }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    const Elements* of_ = nullptr;
    std::size_t at_ = 0;
  };
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, count_}; }

 private:
  double stored(std::size_t element) const;
  double of_sample(std::size_t element) const;

  DType type_ = DType::f64;
  std::size_t count_ = 0;
  std::vector<double> numbers_;  // f64
  std::string bytes_;            // other types
  std::vector<std::int64_t> sample_;
  double otherwise_ = 0;
};

// As for numbers (layout.h): to stored order.
Elements packed(const Layout& layout, std::span<const std::int64_t> stored, Elements logical);
// Where one element of the logical order is stored.
std::int64_t stored_place(const Layout& layout, std::span<const std::int64_t> stored, std::int64_t element);

}  // namespace graft::codegen
