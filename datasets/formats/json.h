// Reads JSON as a stream, without a tree: logs of millions of records, documents of a hundred megabytes. The caller
// asks for what it expects and skips the rest; skipped values are checked, too. Nothing is copied except strings with
// escapes.
//
//   reader.begin_map();
//   for (std::string_view key; reader.next_key(key);) {
//     if (key == "seconds") {
//       for (reader.begin_list(); reader.next_item();) seconds.push_back(reader.number());
//     } else {
//       reader.skip();
//     }
//   }
//   reader.end();
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace graft::datasets::formats {

class JsonReader {
 public:
  enum class Kind { null, boolean, number, string, list, map };

  // `file` and the number of the text's first line begin every error's place. The text must outlive the reader.
  JsonReader(std::string_view text, std::string_view file, std::int64_t first_line = 1);

  // All throw UserError "<file>:<line>:<column>: ..." for text that is not JSON, for a value of another kind, for
  // numbers that do not fit, for duplicate keys of maps (except skipped ones), and for more than 200 levels. NaN and
  // infinities, which many programs write although JSON has no word for them, are numbers: `number` refuses them,
  // what is skipped may hold them.
  Kind kind();  // of the next value
  bool at(Kind kind) { return this->kind() == kind; }
  void begin_list();
  bool next_item();  // false: the list has ended, and is left
  // The same where another item must be there; `otherwise` says what is wrong.
  void expect_item(std::string_view otherwise);
  void begin_map();
  bool next_key(std::string_view& key);  // valid until the next string or key
  // The same for a map in which a duplicate key invalidates only one entry.
  bool next_key(std::string_view& key, bool& is_twice);
  std::string_view string();  // valid until the next string or key
  double number();
  double any_number();  // NaN and infinite, too; infinite and 0 for those beyond what a double holds
  std::int64_t integer();
  bool boolean();
  void null();
  void skip();             // the next value, whatever it is
  std::string_view raw();  // the same, with its text
  void end();              // only white space is left
  // A reader of the next value alone, which this one skips by its brackets and quotes: other faults
  // in the value are found by that reader only. Valid as long as the text.
  JsonReader apart();

  std::int64_t line() const { return first_line_; }        // of the text's beginning
  std::string place() const;                               // "<file>:<line>:<column>", counted from the beginning
  [[noreturn]] void fail(std::string_view message) const;  // UserError at the present place

 private:
  struct Level {
    bool is_map = false, is_first = true;
    std::vector<std::uint64_t> keys;              // hashes, while there are few
    std::unordered_set<std::uint64_t> more_keys;  // afterwards
  };
  void skip_space();
  void expect(char c, std::string_view what);
  void literal(std::string_view word);
  void open(bool is_map);
  bool next(char close);
  std::string_view quoted();
  std::string_view number_text();
  std::size_t word_for_number(std::size_t at) const;  // its length; 0 if there is none

  std::string_view text_;
  std::string file_;
  std::int64_t first_line_, first_column_ = 1;  // of the text
  std::size_t counted_ = 0, last_line_ = 0;     // where `apart` stopped counting lines, and the start of the last line
  std::int64_t counted_lines_ = 0;
  std::size_t position_ = 0, depth_ = 0;
  std::vector<Level> levels_;  // those below depth_ are in use
  std::string unescaped_;
};

}  // namespace graft::datasets::formats
