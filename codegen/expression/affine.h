// Affine integer forms over numbered variables (axes of a stage, or loops of a program) and integer intervals: all that
// graft knows about an index. No division or modulus: a tile is a variable of its own.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace graft::codegen {

struct Term {
  int variable = 0;
  std::int64_t coefficient = 0;
  bool operator==(const Term&) const = default;
};

// A list of terms. Thousands of forms are made and dropped for each program that a search looks at, and nearly all
// are short: short ones are stored in the object itself, without heap memory.
class Terms {
 public:
  Terms() = default;
  Terms(const Terms& other) { *this = other; }
  Terms(Terms&& other) noexcept { *this = std::move(other); }
  Terms& operator=(const Terms& other) {
    if (this == &other) return *this;
    reserve_empty(other.size_);
    std::copy(other.begin(), other.end(), begin());
    size_ = other.size_;
    return *this;
  }
  Terms& operator=(Terms&& other) noexcept {
    if (this == &other) return *this;
    if (other.far_ != nullptr) {
      far_ = std::move(other.far_);
      capacity_ = std::exchange(other.capacity_, most_near);
    } else {
      far_.reset();
      capacity_ = most_near;
      std::copy(other.near_, other.near_ + other.size_, near_);
    }
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const Term* begin() const { return far_ != nullptr ? far_.get() : near_; }
  const Term* end() const { return begin() + size_; }
  Term* begin() { return far_ != nullptr ? far_.get() : near_; }
  Term* end() { return begin() + size_; }
  const Term& operator[](std::size_t i) const { return begin()[i]; }
  Term& operator[](std::size_t i) { return begin()[i]; }
  const Term& back() const { return begin()[size_ - 1]; }

  void insert(std::size_t at, Term term) {
    assert(at <= size_);
    if (size_ == capacity_) grow();
    std::copy_backward(begin() + at, end(), end() + 1);
    begin()[at] = term;
    ++size_;
  }
  void push_back(Term term) { insert(size_, term); }
  void erase(std::size_t at) {
    assert(at < size_);
    std::copy(begin() + at + 1, end(), begin() + at);
    --size_;
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  bool operator==(const Terms& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }

 private:
  static constexpr std::uint32_t most_near = 5;

  void grow() {
    auto larger = std::make_unique<Term[]>(2 * capacity_);
    std::copy(begin(), end(), larger.get());
    far_ = std::move(larger);
    capacity_ *= 2;
  }
  void reserve_empty(std::uint32_t size) {
    size_ = 0;
    while (capacity_ < size) grow();
  }

  Term near_[most_near];
  std::unique_ptr<Term[]> far_;  // null while all terms fit into near_
  std::uint32_t size_ = 0, capacity_ = most_near;
};

// constant + sum of coefficient * variable; terms sorted by variable, no zero coefficients.
struct Affine {
  std::int64_t constant = 0;
  Terms terms;

  Affine() = default;
  Affine(std::int64_t c) : constant(c) {}
  static Affine variable(int variable, std::int64_t coefficient = 1);

  std::int64_t coefficient(int variable) const;  // 0 where the variable does not occur
  bool is_constant() const { return terms.empty(); }
  Affine& operator+=(const Affine& other);
  Affine& operator*=(std::int64_t factor);
  void add(const Affine& other, std::int64_t factor);  // += other * factor
  bool operator==(const Affine&) const = default;
};
Affine operator+(Affine a, const Affine& b);
Affine operator*(Affine a, std::int64_t factor);

// Each variable v replaced by by[v].
Affine substitute(const Affine& form, std::span<const Affine> by);

struct Interval {  // both ends inside; empty when high < low
  std::int64_t low = 0, high = 0;
  std::int64_t width() const { return high - low + 1; }
  bool operator==(const Interval&) const = default;
};
// Range of the form when variable v runs through ranges[v].
Interval range(const Affine& form, std::span<const Interval> ranges);

std::int64_t evaluate(const Affine& form, std::span<const std::int64_t> values);

// "4*i.0 + i.1 - 1" with names[v]; "0" when empty.
std::string to_text(const Affine& form, std::span<const std::string> names);

}  // namespace graft::codegen
