#include "cli/print/compared.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cli/texts.h"

namespace graft::cli {
namespace {

// Platforms have numbers in the heads of columns, so that many fit on a line.
template <class Cell, class Value>
void print_square(const datasets::Agreement& agreement, const datasets::Square<Cell>& cells, const std::string& corner,
                  Value value, Output& out) {
  std::vector<std::string> head{corner};
  for (std::size_t p = 0; p < agreement.platforms.size(); ++p) head.push_back(std::to_string(p + 1));
  Table table(head);
  for (std::size_t p = 0; p < agreement.platforms.size(); ++p) {
    std::vector<std::string> row{fmt::format("{} ({})", agreement.platforms[p].name, p + 1)};
    for (const Cell& cell : cells[p]) {
      const double number = value(cell);
      row.push_back(std::isfinite(number) ? fmt::format("{:.2f}", number) : "-");
    }
    table.row(std::move(row));
  }
  out.line("");
  out.table(table);
}

}  // namespace

void print(const datasets::Agreement& agreement, Output& out) {
  Table table({"platform", "source"});
  for (const datasets::Agreement::Platform& platform : agreement.platforms) table.row({platform.name, platform.source});
  out.table(table);
  for (const datasets::Agreement::Family& family : agreement.families) {
    print_square(
        agreement, family.spearman, fmt::format("Spearman: {} ({})", family.name, family.workloads.size()),
        [](const auto& cell) { return cell.value.mean; }, out);
  }
  print_square(
      agreement, agreement.regret, "regret: best of row on column", [](const auto& cell) { return cell.value.mean; },
      out);
  print_square(
      agreement, agreement.regret, "largest of a workload", [](const auto& cell) { return cell.worst; }, out);
}

void print(const study::CompareResult& result, Output& out) {
  std::vector<std::string> speed_head{"speed of the best after"},
      slower_head{"slower than " + result.against + " (negative: faster), % after"};
  for (const std::int64_t count : result.trials) {
    speed_head.push_back(base::counted(count, "trial"));
    slower_head.push_back(base::counted(count, "trial"));
  }
  Table speed(speed_head), slower(slower_head),
      near({"method", "searches", fmt::format("trials to {:g} % of the best speed", 100 * result.near),
            "times fewer than " + result.against, "never"});
  for (const search::MethodSearched& method : result.methods) {
    std::vector<std::string> speed_cells{method.method}, slower_cells{method.method};
    for (std::size_t c = 0; c < result.trials.size(); ++c) {
      const base::Interval &by = method.slower[c], per_cent{100 * by.mean, 100 * by.low, 100 * by.high};
      speed_cells.push_back(interval_text(method.speed[c]));
      slower_cells.push_back(interval_text(per_cent, "{:.1f}"));
    }
    speed.row(std::move(speed_cells));
    if (method.method != result.against) slower.row(std::move(slower_cells));
    near.row({method.method, std::to_string(method.searches), interval_text(method.trials_to_near, "{:.1f}"),
              interval_text(method.times_fewer, "{:.2f}"), std::to_string(method.never)});
  }
  out.line(
      fmt::format("1 is the fastest program that any of these searches found{}; geometric means, {}\n",
                  result.again > 0 ? fmt::format(", by the least of {} times that were taken again", result.again) : "",
                  result.methods.front().searches >= std::int64_t(base::least_for_interval)
                      ? "95 % intervals over searches"
                      : fmt::format("no intervals (they need {} searches)", base::least_for_interval)));
  out.table(speed);
  out.line("");
  if (!slower.empty()) {
    out.table(slower);
    out.line("");
  }
  out.table(near);
}

}  // namespace graft::cli
