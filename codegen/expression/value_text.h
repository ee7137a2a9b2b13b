// Text of values, both ways: infix + - * / % << >> with brackets where the order of operations needs them, comparisons
// as the first operand of select(a < b, c, d), all other operations as calls. Index expressions (parse.h) and loop
// programs (program/forms.h) share it; they differ in their leaves, which each defines itself.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "codegen/expression/value.h"

namespace graft::codegen {

// The texts of leaves: of an access, with the texts of the indices that it gathers by, and of a form over axes or
// loops.
struct LeafTexts {
  std::function<std::string(const Access&, std::span<const std::string> gathered)> load;
  std::function<std::string(const Affine&)> position;
};
// `comma` separates the operands of a call.
std::string to_text(const Value& value, const LeafTexts& leaves, std::string_view comma);
// "X[2*i,T[j]]": the forms of an access over variables of these names, and where it gathers, those texts.
std::string access_text(std::string_view tensor, const Access& access, std::span<const std::string> names,
                        std::span<const std::string> gathered);
// A form in place of a number: the name of its variable if it is one, else "position(2*i + 1)".
std::string position_text(const Affine& form, std::span<const std::string> names);

// Recursive descent over its own cursor. Deeper nesting and longer values than any real one are refused: the text
// may come from anywhere.
class ValueReader {
 protected:
  explicit ValueReader(base::Cursor cursor) : cursor_(std::move(cursor)) {}
  ~ValueReader() = default;

  // A factor other than a bracket: a number, a load, a call, or what else the language has.
  virtual Value leaf(int depth) = 0;

  Value sum(int depth);     // any value: shifts bind less than sums, as in C
  Value factor(int depth);  // a leaf, or a sum in brackets
  // The operation `op` of operands in brackets, the opening one already read.
  Value operation(Op op, int depth);
  // The operation called `name`; Op::load (never written as a call) if there is none.
  static Op function_named(std::string_view name);
  // "unknown function 'sqr'; did you mean 'sqrt'? known: ...": all operations that are called, and `others`.
  static std::string unknown_function(std::string_view name, std::vector<std::string> others = {});
  void guard(int depth) const;

  base::Cursor cursor_;

 private:
  Value terms(int depth);
  Value product(int depth);
  Value selection(int depth);
  Value condition(int depth);
  void limit(std::size_t operands) const;
  Value joined(Op op, Value a, Value b) const;
};

}  // namespace graft::codegen
