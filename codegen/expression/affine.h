// Affine integer forms over numbered variables (axes of a stage, or loops of a program) and integer intervals: all that
// graft knows about an index. No division or modulus: a tile is a variable of its own.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace graft::codegen {

struct Term {
  int variable = 0;
  std::int64_t coefficient = 0;
  bool operator==(const Term&) const = default;
};

// constant + sum of coefficient * variable; terms sorted by variable, no zero coefficients.
struct Affine {
  std::int64_t constant = 0;
  std::vector<Term> terms;

  Affine() = default;
  Affine(std::int64_t c) : constant(c) {}
  static Affine variable(int variable, std::int64_t coefficient = 1);

  std::int64_t coefficient(int variable) const;  // 0 where the variable does not occur
  bool is_constant() const { return terms.empty(); }
  Affine& operator+=(const Affine& other);
  Affine& operator*=(std::int64_t factor);
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
