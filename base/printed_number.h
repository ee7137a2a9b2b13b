// Numbers as programs print them for people: thousands in groups, decimal points and commas, exponents of C and of
// Fortran, hexadecimal floats, infinities and NaN.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace graft::base {

struct PrintedNumber {
  double value = 0;
  std::size_t length = 0;  // bytes
  std::string doubt = {};  // why it may be another number; "": it cannot
  bool has_decimal_comma = false;
};

// How numbers around this one are separated: "1,5" is one number and a half, unless commas separate.
//   words   text; "12 345" may be one number
//   list    numbers with blanks or commas between them
//   commas  cells, as in CSV
enum class Among { words, list, commas };

// The number that `text` begins with; nullopt for what only begins as a number does: times of day, dates, versions,
// ranges, fractions ("10:32", "2024-01-31", "1.2.3", "4-8", "1/2").
std::optional<PrintedNumber> number_at(std::string_view text, Among among = Among::words);

// The character there; 0 beyond the end.
char at_or_end(std::string_view text, std::size_t at);
bool is_digit(char c);

// Bytes of the blank that `text` begins with: spaces and tabs, and those of Unicode that do not break; 0: none.
std::size_t blank_at(std::string_view text);

}  // namespace graft::base
