// A sketch is a list of steps with named open arguments: the one concept behind a space's structure, a user's template
// and the way a dataset stores programs (workload, sketch, arguments). Text form, one step a line:
//
//   sketch vector_j
//   tile C i $i1 $i2 $i3
//   order C $outer{i.0 j.0|j.0 i.0} k.0 i.1 j.1
//   accumulate C above $where{k.0|k.1}
//   $packing{pack C B above k.0|}
//
// Intrinsics that the steps name (program/intrinsic.h) may follow them: a sketch is self-contained.
//
// `$name` is filled by the argument's number, `$name{a|b|...}` by its alternative of that number; a line that is then
// empty is not a step. One argument may occur in several lines. Arguments are numbered in order of first appearance.
//
// Imported sketches need not be lists of steps. A row of a table, with only arguments known:
//
//   sketch convolution
//   columns $block_size $order{ijk|ikj}
//
// and a program that our steps did not make, as its text form (program/forms.h), which is all that follows its first
// line:
//
//   sketch handwritten
//   program
//   buffer A f32 [512,512] input
//   ...
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "codegen/program/intrinsic.h"

namespace graft::codegen {

// Immutable, so that its hash is computed once.
struct Sketch {
  struct Argument {
    std::string name;
    std::int64_t alternatives = 0;  // 0: a plain number
    bool operator==(const Argument&) const = default;
  };
  struct Token {
    int argument = -1;  // -1: literal text
    std::string literal;
    std::vector<std::string> alternatives;  // of `$name{...}`
    bool operator==(const Token&) const = default;
  };
  using Line = std::vector<Token>;

  Sketch(std::string name, std::vector<Argument> arguments, std::vector<Line> lines,
         std::vector<IntrinsicPointer> intrinsics = {});
  bool operator==(const Sketch& other) const;
  int argument_named(std::string_view argument) const;  // -1 if there is none

  const std::string name;
  const std::vector<Argument> arguments;
  const std::vector<Line> lines;
  const std::vector<IntrinsicPointer> intrinsics;
  const Line columns;                                // the arguments of a row of a table; else empty
  const std::shared_ptr<const LoopProgram> program;  // the body, if it is not a list of steps; else null
  const std::uint64_t hash;                          // of the text

  // A table's row. Without alternatives a column holds plain numbers. Characters that the text form does not allow in
  // names and alternatives become '_', and a repeated name gets a number appended.
  struct Column {
    std::string name;
    std::vector<std::string> alternatives;
  };
  static Sketch of_columns(std::string_view name, const std::vector<Column>& columns);
  static Sketch of_program(std::string_view name, LoopProgram program);  // `program` must be well formed (check)

 private:
  friend Sketch parse_sketch(std::string_view text, std::string_view place);
  Sketch(std::string name, std::vector<Argument> arguments, std::vector<Line> lines,
         std::vector<IntrinsicPointer> intrinsics, Line columns, std::shared_ptr<const LoopProgram> program);
};

// The finite number that a table's value is, if it is one.
std::optional<double> number_in(std::string_view value);
// What the alternatives of a table's column are as numbers, if all of them are; else none. Those of schedules are none:
// they are numbered, and no more.
std::vector<double> numbers_of(const Sketch& sketch, std::size_t argument);

Sketch parse_sketch(std::string_view text, std::string_view place);  // throws UserError
// `sketch`, which must consist of steps, and further lines and intrinsics; they may use its arguments.
Sketch with_lines(const Sketch& sketch, std::string_view text, std::string_view place);  // throws UserError
std::string to_text(const Sketch& sketch);
inline std::uint64_t hash(const Sketch& sketch) {
  return sketch.hash;
}

}  // namespace graft::codegen
