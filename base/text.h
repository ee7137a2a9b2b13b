// Small parsers without a generator: a cursor over text that knows its line and column, and a few string helpers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace graft::base {

class Cursor {
 public:
  // `name` begins every error's place: "<name>:<line>:<column>: <message>".
  Cursor(std::string_view text, std::string_view name);

  bool at_end();                        // after skipping spaces (and newlines)
  char peek();                          // next non-space character, 0 at the end
  bool accept(std::string_view token);  // consumes it if it is next (after spaces)
  void expect(std::string_view token);  // or throws "expected 'x', got 'y'"
  bool at_identifier();
  std::string identifier();  // [A-Za-z_][A-Za-z0-9_.]*, at most 256 characters
  bool at_number();
  std::int64_t integer();  // optional minus sign; throws on overflow
  double number();
  // For languages in which lines count: a cursor over the rest of this line, up to `comment` (0: none), with the same
  // places; this one moves past the line.
  Cursor line(char comment = '\0');
  [[noreturn]] void fail(std::string_view message) const;  // throws UserError at the present place
  std::size_t position() const { return position_; }
  std::string_view rest() const { return text_.substr(position_); }

 private:
  void skip_space();
  std::string_view text_;
  std::string name_;
  std::size_t position_ = 0;
};

std::vector<std::string_view> split(std::string_view text, char separator);  // "" gives {""}
std::vector<std::string_view> words(std::string_view text);                  // by white space, empty ones dropped
std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::string_view trim(std::string_view text);
// "1 run", "2 runs", "2 sketches", "2 entries".
std::string counted(std::int64_t count, std::string_view word);
inline std::string counted(std::size_t count, std::string_view word) {
  return counted(std::int64_t(count), word);
}
// Each number, with its sign, as "#": messages that differ in their numbers only have one count. "element 4 is
// -1.5e-07" gives "element # is #", "v3" gives "v#".
std::string without_numbers(std::string_view text);

}  // namespace graft::base
