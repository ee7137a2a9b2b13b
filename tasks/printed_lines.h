// The output of a program in lines, as a terminal shows them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace graft::tasks {

// A line without escape sequences, the last of what was written over itself; or an entry of a JSON document as
// "path.key: value unit", where another key of its map says the unit.
struct PrintedLine {
  std::string text;
  std::size_t origin = 0;          // lines of one origin were printed in one line
  std::size_t key = 0, value = 0;  // of an entry: where its key and its value begin; 0 and 0 otherwise
  bool is_entry() const { return value > 0; }
};

// Where `output` is JSON as a whole, or a line of it is: its entries, if `with_entries`.
std::vector<PrintedLine> printed_lines(std::string_view output, bool with_entries = true);

}  // namespace graft::tasks
