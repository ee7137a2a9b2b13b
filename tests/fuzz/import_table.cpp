// Tables of others, with every column in turn as the one of times.
#include "datasets/formats/table.h"
#include "tests/fuzz/import.h"

namespace graft::fuzz {

void examine(std::string_view text) {
  import("table", text);
  import("table", text, "*", {{ "unit", "ms" }});
  // Lines that may be the head, whatever is in front.
  constexpr std::size_t most_columns = 6, most_lines = 2;
  for (std::size_t line = 0, begin = 0; line < most_lines && begin < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view head = text.substr(begin, end - begin);
    begin = end + 1;
    head.remove_prefix(std::min(head.find_first_not_of("# "), head.size()));
    const auto cells = accepted([&] { return datasets::formats::csv_cells(head, "head"); });
    if (!cells) continue;
    for (std::size_t c = 0; c < std::min(cells->size(), most_columns); ++c) {
      const std::string workload = datasets::formats::csv_cell(cells->at((c + 1) % cells->size()));
      import("table", text, "p", {{ "time", cells->at(c) }});
      import("table", text, "p", {{"time", cells->at(c)}, {"higher-is-better", "yes"}, { "workload", workload }});
    }
  }
}

}  // namespace graft::fuzz
