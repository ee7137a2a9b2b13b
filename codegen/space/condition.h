// Conditions over a sketch's arguments, with which a user's space forbids points: "$i3 * $j3 > 28 * lanes".
//
// Operators as in C, loosest first: || && (== !=) (< <= > >=) (+ -) (* / %) (! -), brackets; on 64-bit integers, where
// true is 1. $NAME is an argument, other names are constants. For `$name{a|b}` it is the number of the alternative, but
// for a table's column of whole numbers the value itself.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/text.h"
#include "codegen/space/sketch.h"

namespace graft::codegen {

// An operand-before-user list, as codegen::Value; the last node is the root.
struct Condition {
  struct Node {
    std::string operation;    // "": a number; "$": an argument; else the operator
    int a = -1, b = -1;       // operands: positions of earlier nodes
    std::int64_t number = 0;  // a constant's value; an argument's position in `arguments`
    bool operator==(const Node&) const = default;
  };
  std::string text;  // as written
  std::vector<Node> nodes;
  std::vector<std::string> names;                 // names of the arguments that occur
  std::vector<int> arguments;                     // their positions in the sketch; empty until it is bound to one
  std::vector<std::vector<std::int64_t>> values;  // by name: of a column's alternatives; none: the argument itself
  bool operator==(const Condition&) const = default;
};

// Reads up to the end of the cursor's text. Throws UserError.
Condition parse_condition(base::Cursor& cursor, const std::map<std::string, std::int64_t>& constants);
// The condition on this sketch's arguments; nullopt if the sketch lacks one of them.
std::optional<Condition> bound(const Condition& condition, const Sketch& sketch);
// nullopt if it has no value: a division by zero, a number beyond 64 bits. && and || evaluate their right operand only
// if it matters.
std::optional<std::int64_t> value_of(const Condition& condition, std::span<const std::int64_t> arguments);
// A condition without a value at a point forbids it.
bool forbids(const Condition& condition, std::span<const std::int64_t> arguments);
std::uint64_t hash(const Condition& condition);

}  // namespace graft::codegen
