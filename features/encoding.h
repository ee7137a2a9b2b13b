// Loop program -> numbers. An encoding is a declared list of features (name, unit, definition) and a function; vectors,
// CSV heads, documentation and the version hash derive from the list. Labels, cycles and modelled misses are never
// features.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/arrays.h"
#include "codegen/expression/target.h"
#include "codegen/program/program.h"
#include "codegen/space/candidate.h"
#include "codegen/space/table_schema.h"

namespace graft::features {

// The unit of features whose meaning is a hash: different words may share one.
inline constexpr std::string_view hashed_unit = "hash";

struct Feature {
  std::string name;  // "b0.touched>reuse.t07"
  std::string unit;  // "log2", "1", "elements"
  std::string definition;
  bool of_target = false;  // of the target alone, and used by models to compare targets (target_facts.h's are not)
};

// The inputs of an encoding; never measured or modelled times.
struct Subject {
  const codegen::LoopProgram* program = nullptr;  // only `run` is used; null for a row of a table
  const codegen::Candidate* candidate = nullptr;  // null for a program that no schedule of ours made
  const codegen::Target* target = nullptr;        // null if there is none
};

// Programs as numbers: each has one or several rows, in the programs' order.
struct Encoded {
  base::Matrix rows;
  std::vector<std::int64_t> begins{0};  // program p has the rows [begins[p], begins[p + 1])
  std::vector<std::int32_t> parents;    // of trees, by row: the parent's row less the program's first, -1 at a root
  // By program: which row of the joined tables it is (codegen::row_identity), equal on all platforms; empty without
  // tables.
  std::vector<std::uint64_t> identities;

  std::int64_t programs() const { return std::int64_t(begins.size()) - 1; }
  bool operator==(const Encoded&) const = default;
  template <class Bytes, class Self>
  static void fields(Bytes& bytes, Self& self) {  // base/bytes.h
    bytes(self.rows), bytes(self.begins), bytes(self.parents), bytes(self.identities);
  }
};
Encoded one_row_each(base::Matrix rows);
// Appends `more` to `all`, which may be empty, without columns.
void append(Encoded& all, const Encoded& more);
// The sum of each program's rows.
base::Matrix summed(const Encoded& programs);
Encoded chosen(const Encoded& from, std::span<const std::int64_t> programs);

// The rows that a program has.
enum class Shape {
  row,   // one
  rows,  // one for each of its parts, in no meaningful order
  tree,  // one for each node, parents before their children, the first is the root of all
};
std::string_view name_of(Shape shape);

struct Encoding {
  std::string name;  // "context_relation"
  std::string description;
  Shape shape = Shape::row;
  std::vector<Feature> features;  // one per column; the number of columns is the same for every program
  std::uint64_t hash = 0;         // of name, version and the list
  std::function<Encoded(const Subject& subject)> encode;  // of one program
  bool needs_program = true;  // false: uses only the candidate, so rows of tables have this encoding, too
  // For rows of tables: the schema that it was made for (made_for), null while it is for none.
  bool of_tables = false;
  std::shared_ptr<const codegen::TableSchema> schema;
};
// The same encoding of tables with the columns and values of these.
Encoding made_for(const Encoding& encoding, codegen::TableSchema schema);
// Two encodings of one row per program as one, NAME+OTHER: the other's columns follow.
Encoding joined(const Encoding& encoding, const Encoding& other);

// Hash of an encoding's name, the version of its values (raised when values change but the list does not) and
// its list. A model keeps it, and is refused if it differs.
std::uint64_t hash_of(std::string_view name, int version, std::span<const Feature> features);

const std::vector<Encoding>& encodings();
const Encoding& encoding_named(std::string_view name);  // throws UserError (did you mean)

// Encodes programs alone, without candidate and target. Deterministic; independent of threads.
Encoded encode(const Encoding& encoding, std::span<const codegen::LoopProgram> programs, int threads = 1);

}  // namespace graft::features
