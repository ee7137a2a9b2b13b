#include "cli/print/collected.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/statistics.h"
#include "base/text.h"
#include "cli/texts.h"

namespace graft::cli {

void print_collected(const study::CollectRequest& request, const study::CollectResult& result, Output& out) {
  Table table({"workload", "trials", "ok", fmt::format("best {}", seconds_word(result.source)), "median", "max/min",
               "variation", "gates"});
  for (const study::CollectResult::Row& row : result.rows) {
    std::vector<std::string> cells{row.workload.text(),
                                   std::to_string(row.trials.size()),
                                   std::to_string(row.seconds.size()),
                                   "-",
                                   "-",
                                   "-",
                                   "-",
                                   "-"};
    if (!row.seconds.empty()) {
      const auto [best, worst] = std::minmax_element(row.seconds.begin(), row.seconds.end());
      cells[3] = seconds_text(*best);
      cells[4] = seconds_text(base::median(row.seconds));
      cells[5] = number_text(*worst / *best, 1);
    }
    if (row.quality) {
      cells[6] = share_text(row.quality->variation);
      cells[7] = gates_text(*row.quality);
    }
    table.row(std::move(cells));
  }
  out.line(fmt::format("{} ({}): {} in {}", result.platform, result.source, base::counted(result.trials, "trial"),
                       request.out.string()));
  out.table(table);
}

}  // namespace graft::cli
