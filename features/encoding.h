// Loop program -> numbers. An encoding is a declared list of features (name, unit, definition) and a function; vectors,
// CSV heads, documentation and the version hash derive from the list. Labels, cycles, modelled misses never get in
// here.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/arrays.h"
#include "codegen/expression/target.h"
#include "codegen/program/program.h"
#include "codegen/schedule/candidate.h"

namespace graft::features {

struct Feature {
  std::string name;  // "b0.touched>reuse.t07"
  std::string unit;  // "log2", "1", "elements"
  std::string definition;
  bool of_target =
      false;  // of the target alone, and what models tell by which targets are alike (not so target_facts.h's)
};

// What an encoding may look at; never what was measured or modelled.
struct Subject {
  const codegen::LoopProgram* program = nullptr;  // `run` only is looked at; null for a row of a table
  const codegen::Candidate* candidate = nullptr;  // null for a program that no schedule of ours made
  const codegen::Target* target = nullptr;        // null where there is none
};

// Programs as numbers: each is one row or several, in the programs' order.
struct Encoded {
  base::Matrix rows;
  std::vector<std::int64_t> begins{0};  // program p has the rows [begins[p], begins[p + 1])
  std::vector<std::int32_t> parents;    // of trees, by row: the parent's row less the program's first, -1 at a root

  std::int64_t programs() const { return std::int64_t(begins.size()) - 1; }
  bool operator==(const Encoded&) const = default;
  template <class Bytes, class Self>
  static void fields(Bytes& bytes, Self& self) {  // base/bytes.h
    bytes(self.rows), bytes(self.begins), bytes(self.parents);
  }
};
Encoded one_row_each(base::Matrix rows);
// `more` behind what is there. `all` may be empty, of no columns.
void append(Encoded& all, const Encoded& more);
// The sum of each program's rows.
base::Matrix summed(const Encoded& programs);
Encoded chosen(const Encoded& from, std::span<const std::int64_t> programs);

// How many rows a program has.
enum class Shape {
  row,   // one
  rows,  // one for each of its parts, whose order means nothing
  tree,  // one for each node, parents in front of their children, the first is the root of all
};
std::string_view name_of(Shape shape);

struct Encoding {
  std::string name;  // "context_relation"
  std::string description;
  Shape shape = Shape::row;
  std::vector<Feature> features;  // one per column; the number of columns is the same for every program
  std::uint64_t hash = 0;         // of name, version and the list
  std::function<Encoded(const Subject& subject)> encode;  // of one program
  bool needs_program = true;  // false: looks at nothing but the candidate, so rows of tables have this encoding, too
};
// Two encodings of one row a program as one, NAME+OTHER: the other's columns behind.
Encoding joined(const Encoding& encoding, const Encoding& other);

// Of an encoding's name, the version of what it computes (raised when values change though the list does not) and its
// list. A model keeps it, and is refused where it is another one.
std::uint64_t hash_of(std::string_view name, int version, std::span<const Feature> features);

const std::vector<Encoding>& encodings();
const Encoding& encoding_named(std::string_view name);  // throws UserError (did you mean)

// Of programs alone, without candidate and target. Deterministic; threads change nothing.
Encoded encode(const Encoding& encoding, std::span<const codegen::LoopProgram> programs, int threads = 1);

}  // namespace graft::features
