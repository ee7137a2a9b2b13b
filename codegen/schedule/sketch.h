// A sketch is a list of steps with named open arguments: the one concept behind a space's structure, a user's template
// and the way a dataset stores programs (workload, sketch, arguments). Text form, one step a line:
//
//   sketch vector_j
//   tile C i $i1 $i2 $i3
//   order C $outer{i.0 j.0|j.0 i.0} k.0 i.1 j.1
//   accumulate C above $where{k.0|k.1}
//   $packing{pack C B above k.0|}
//
// `$name` is filled by the argument's number, `$name{a|b|...}` by its alternative of that number; a line that is then
// empty is no step. One argument may occur in several lines. Arguments are numbered in order of first appearance.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "codegen/schedule/step.h"

namespace graft::codegen {

// Never changes once made, so that its hash is taken once.
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

  Sketch(std::string name, std::vector<Argument> arguments, std::vector<Line> lines);
  bool operator==(const Sketch& other) const;
  int argument_named(std::string_view argument) const;  // -1 if there is none

  const std::string name;
  const std::vector<Argument> arguments;
  const std::vector<Line> lines;
  const std::uint64_t hash;  // of the text
};

Sketch parse_sketch(std::string_view text, std::string_view place);  // throws UserError
// `sketch` and further lines; they may use its arguments.
Sketch with_lines(const Sketch& sketch, std::string_view text, std::string_view place);  // throws UserError
std::string to_text(const Sketch& sketch);
inline std::uint64_t hash(const Sketch& sketch) {
  return sketch.hash;
}

// All arguments put in; a Reason for a wrong number of arguments or an alternative that does not exist.
base::Result<Schedule> fill(const Sketch& sketch, std::span<const std::int64_t> arguments);

}  // namespace graft::codegen
