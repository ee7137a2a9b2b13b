// Constraints over the values of named parameters, as the spaces of kernel tuners have them: "tile_x * tile_y <= 1024
// and (layout == 'NHWC' or unroll in [1, 2, 4])", and as files of schedules forbid points: "$i3 * $j3 > 28 * lanes".
// Parsed here, never given to an interpreter.
//
// Operators as in Python, loosest first: a if c else b, or, and, not, comparisons (== != < <= > >= in, not in; also
// a < b < c), |, ^, &, << >>, + -, * / // %, - + ~, **; also || && !. Values are integers, fractions, booleans (True,
// true) and texts in quotes; lists in [] or (), ranges, and sums of them follow `in`; functions are min, max, abs, int,
// round (halves to even), floor, ceil, sqrt and log2, also as math.ceil.
// Sizes of the problem are numbers by their names. As in Python / makes a fraction, // and % round down, a boolean
// counts as 0 or 1, and `or` and `and` evaluate their right operand only if it matters.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace graft::codegen {

using Scalar = std::variant<bool, std::int64_t, double, std::string>;

// "16", "0.5", "true"; a text as it is. Whole fractions are written as integers.
std::string scalar_text(const Scalar& value);
// As a number; nullopt for a text.
std::optional<double> scalar_number(const Scalar& value);

// Whose operators an expression has where two languages write the same and mean something else.
enum class Operators {
  python,
  c  // of integers: / and % round to 0, < is tighter than ==, ! tighter than both, && and || are 1 or 0
};

class Constraint {
 public:
  // UserError at `place` if it is not an expression (with the position), an unknown name (did you mean), an expression
  // over no parameter, and one that is longer or deeper than people write.
  Constraint(std::string_view text, std::span<const std::string> parameters, std::string_view place,
             std::span<const std::pair<std::string, std::int64_t>> sizes = {}, Operators operators = Operators::python);

  const std::string& text() const { return text_; }
  const std::vector<int>& parameters() const { return parameters_; }       // that occur: positions, ascending
  std::int64_t operations() const { return std::int64_t(nodes_.size()); }  // what it costs at most to look at it
  // `values`: by parameter; those that do not occur are not read. False, too, if the expression has no value: a
  // division by zero, integers beyond 64 bits, a text compared with a number by order.
  bool holds(std::span<const Scalar* const> values) const { return truth(values).value_or(false); }
  // nullopt if it has no value.
  std::optional<bool> truth(std::span<const Scalar* const> values) const;
  std::uint64_t hash() const;
  // Constraints over fewer parameters that must hold where this one does: the operands of its `and`s, and N % a == 0
  // for N % (a * b) == 0 if all parameters are integers. For a search, which then sees early what cannot be.
  std::vector<Constraint> implied(bool all_integers) const;

  // An operand-before-user list; the last node is the root.
  struct Node {
    enum class Kind {
      constant,
      parameter,
      choice,
      either,
      both,
      negation,
      comparison,
      add,
      subtract,
      multiply,
      divide,
      truncate_divide,
      truncate_remainder,
      floor_divide,
      remainder,
      power,
      bit_or,
      bit_xor,
      bit_and,
      shift_left,
      shift_right,
      minus,
      complement,
      least,
      greatest,
      magnitude,
      integer,
      rounded,
      rounded_down,
      rounded_up,
      square_root,
      logarithm
    };
    Kind kind = Kind::constant;
    int constant = -1, parameter = -1;         // their positions
    std::vector<int> operands;                 // earlier nodes
    std::vector<std::string> words = {};       // of a comparison: the operator after each operand but the last
    std::vector<std::vector<int>> lists = {};  // of a comparison: the elements that follow its operator "in"
  };

 private:
  Constraint() = default;
  // The same for a node of a list as the root.
  Constraint part(const std::vector<Node>& nodes, int root) const;
  std::string text_;
  std::vector<Scalar> constants_;
  std::vector<Node> nodes_;
  std::vector<int> parameters_;
  Operators operators_ = Operators::python;
};

// The values of a list as files have it: "[1, 2, 4]", "['a', 'b']", "range(1, 9, 2)". UserError at `place`.
std::vector<Scalar> values_in(std::string_view text, std::string_view place);

}  // namespace graft::codegen
