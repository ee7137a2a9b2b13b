// Numbers with the units that are printed with them: "1.5 ms", "950us", "10.0 ms ± 0.5 ms", "[1.1 ms 1.2 ms]",
// "1m30.5s", "25 ns/op", "35.2 GFLOP/s".
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/printed_number.h"
#include "base/units.h"

namespace graft::base {

struct PrintedValue {
  double number = 0;
  std::optional<Unit> unit = {};
  std::size_t end = 0;  // in the text
  std::string doubt = {};
  bool has_decimal_comma = false;
};

// The value at this place; nullopt if there is no number. `quantity`: what is looked for ("s"); words of other
// quantities may be the name of the next value, as in "time 1.5 GFLOPS 32".
std::optional<PrintedValue> value_at(std::string_view text, std::size_t at, std::string_view quantity, Among among);

struct PrintedList {
  std::vector<PrintedValue> values;
  std::size_t end = 0;
  std::string doubt = {};
};
// From the bracket at this place to the one that closes it.
PrintedList list_at(std::string_view text, std::size_t at, std::string_view quantity);

// The unit that the text is, with words around it ("in ms", "ms, lower is better"); nullopt for other texts.
std::optional<Unit> unit_in(std::string_view text);

// Where the word ends that begins here: letters, "%", and a '/' between them.
std::size_t unit_end(std::string_view text, std::size_t at);

}  // namespace graft::base
