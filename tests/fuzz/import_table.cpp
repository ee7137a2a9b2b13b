// Tables of others, in every form that options may name, with every column in turn as the one of times.
#include "base/text.h"
#include "datasets/formats/table.h"
#include "tests/fuzz/import.h"

namespace graft::fuzz {
namespace {

using datasets::formats::csv_cell;
using datasets::formats::csv_cells;

std::string written(const std::vector<std::string>& cells) {
  std::vector<std::string> quoted;
  for (const std::string& cell : cells) quoted.push_back(csv_cell(cell));
  return base::join(quoted, ",");
}

}  // namespace

void examine(std::string_view text) {
  import("table", text, "p", {{ "unit", "s" }});
  import("table", text, "*", {{ "unit", "ms" }});
  for (const char* separator : {"comma", "semicolon", "tab"}) {
    import("table", text, "p", {{"separator", separator}, {"decimal", "comma"}, {"head", "no"}, {"time", "column_2"}, {
                                  "unit",
                                  "us"
                                }});
  }
  // Lines that may be the head, whatever is in front.
  constexpr std::size_t most_columns = 6, most_lines = 2;
  for (std::size_t line = 0, begin = 0; line < most_lines && begin < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view head = text.substr(begin, end - begin);
    begin = end + 1;
    head.remove_prefix(std::min(head.find_first_not_of("# "), head.size()));
    const auto cells = accepted([&] { return csv_cells(head, "head"); });
    if (!cells) continue;
    const std::string again = written(*cells);
    promise(read_back(again, [&] { return csv_cells(again, "written"); }) == *cells, "cells stay what they are", head);
    for (std::size_t c = 0; c < std::min(cells->size(), most_columns); ++c) {
      const std::string workload = csv_cell(cells->at((c + 1) % cells->size()));
      import("table", text, "p", {{"time", cells->at(c)}, { "unit", "s" }});
      import("table", text, "p", {{"time", cells->at(c)}, {"higher-is-better", "yes"}, { "workload", workload }});
    }
  }
}

}  // namespace graft::fuzz
