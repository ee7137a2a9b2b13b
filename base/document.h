// A strict tree read from JSON or YAML: every node knows its place, and every accessor refuses what does not fit
// with a UserError that names place, value and remedy. Also the tree from which JSON is written. No schema: a reader
// asks for the keys that it knows and calls `only_keys`.
//
// Places: YAML is written by people and read in an editor, so a node's place is "board.yaml:7:3" (for a map's value,
// that of its key). JSON is written by programs, often on one line, so a node's place is "run.json: best.seconds[2]".
#pragma once

#include <cstdint>
#include <initializer_list>
#include <list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace graft::base {

class Document {
 public:
  using List = std::vector<Document>;
  // In the order of insertion or of the file. A list of pairs, not a vector: code that reads a record and adds to it
  // (`set`) may keep references to earlier values.
  using Map = std::list<std::pair<std::string, Document>>;

  Document() = default;  // null
  Document(bool value);
  Document(std::int64_t value);
  Document(int value) : Document(std::int64_t(value)) {}
  Document(std::size_t value);  // from 2^63 on (hashes) it becomes the string "0x...", which as_u64 reads
  Document(double value);
  Document(std::string value);
  Document(const char* value) : Document(std::string(value)) {}
  Document(List value);
  Document(Map value);
  static Document list() { return Document(List{}); }
  static Document map() { return Document(Map{}); }

  bool is_null() const, is_bool() const, is_integer() const, is_number() const, is_string() const, is_list() const,
      is_map() const;

  // Values; throw UserError "<place>: expected an integer, got '<value>'". A number may be an integer; an integer may
  // not be a fraction (1e3 is one). as_u64 takes 0x... and decimal strings too (hashes).
  bool as_bool() const;
  std::int64_t as_integer() const;
  std::uint64_t as_u64() const;
  double as_number() const;
  const std::string& as_string() const&;
  const List& as_list() const&;
  const Map& as_map() const&;

  // Map access; refused for nodes that are not maps. `at` throws "<place>: missing key 'k'"; `find` gives nullptr.
  const Document& at(std::string_view key) const&;
  const Document* find(std::string_view key) const&;

  // For a temporary they return the value itself: nothing refers to a document that no longer exists.
  std::string as_string() &&;
  List as_list() &&;
  Map as_map() &&;
  Document at(std::string_view key) &&;
  const Document* find(std::string_view key) && = delete;

  // Throws "<place>: unknown key 'vectr_bits'; did you mean 'vector_bits'?" for a key that is not listed.
  void only_keys(std::initializer_list<std::string_view> known) const;
  void only_keys(const std::vector<std::string_view>& known) const;

  // Building. `set` replaces or appends in a map (a null document becomes one): references to values of other keys stay
  // valid. `push` appends to a list (or null) and ends all references to the list's elements.
  Document& set(std::string key, Document value) &;
  Document& push(Document value) &;
  Document set(std::string key, Document value) &&;
  Document push(Document value) &&;

  const std::string& place() const { return place_; }
  void set_place(std::string place) { place_ = std::move(place); }

  // Compact JSON on one line; doubles in the shortest form that reads back equal; NaN and infinities become null.
  std::string to_json() const;
  // Indented JSON.
  std::string to_pretty_json() const;
  // Equality of content; places are ignored.
  bool operator==(const Document& other) const;

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, List, Map> value_;
  std::string place_;
};

// Places begin with `name`: a file name, or a file name and line ("trials.jsonl:17"). Both throw UserError with
// line and column for text that does not parse, and refuse duplicate keys, trees deeper than 200 levels, numbers that a
// double cannot hold (JSON), aliases that stand for more than a million nodes and files of several documents (YAML).
// Integers beyond 64 bits with sign become doubles, in YAML's 0x form strings. YAML's plain scalars follow the core
// schema of YAML 1.2: `yes` is a string. An empty YAML file is null.
Document parse_json(std::string_view text, std::string_view name);
Document parse_yaml(std::string_view text, std::string_view name);

}  // namespace graft::base
