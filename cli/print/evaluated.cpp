#include "cli/print/evaluated.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cli/texts.h"

namespace graft::cli {
namespace {

using study::EvaluationTable;
using study::Metric;

const char* title_of(Metric metric) {
  switch (metric) {
    case Metric::spearman:
      return "Spearman (1 is a perfect ranking)";
    case Metric::top1:
      return "top-1 (best time / time of the program predicted fastest; 1 is perfect)";
    case Metric::top5:
      return "top-5 (best time / best time among the 5 predicted fastest)";
  }
  return "";
}

// One row a method, one column a number.
void print_table(const std::string& title, const std::vector<std::string>& methods,
                 const std::vector<std::int64_t>& counts, const std::string& unit,
                 const std::function<std::string(const std::string& method, std::int64_t count)>& cell, Output& out) {
  std::vector<std::string> head{"method"};
  for (const std::int64_t count : counts)
    head.push_back(unit.empty() ? fmt::format("after {}", count) : fmt::format("{} {}", count, unit));
  Table table(head);
  for (const std::string& method : methods) {
    std::vector<std::string> cells{method};
    for (const std::int64_t count : counts) cells.push_back(cell(method, count));
    table.row(std::move(cells));
  }
  out.line(fmt::format("\n{}", title));
  out.table(table);
}

std::string mean_text(const base::Interval& value) {
  const std::string mean = number_text(value.mean);
  return std::isfinite(value.low) ? fmt::format("{} ±{:.3f}", mean, (value.high - value.low) / 2) : mean;
}

// One target, or the means over all.
void print_searches(const study::Searches& searches, const std::string& target, const study::EvaluateRequest& request,
                    Output& out) {
  const auto first =
      std::find_if(searches.begin(), searches.end(), [&](const auto& each) { return each.target == target; });
  if (first == searches.end()) return;
  const auto cell = [&](const std::string& method, std::int64_t trials) -> std::string {
    const EvaluationTable::Search* const search = study::search_of(searches, target, method, trials);
    return search == nullptr ? "-" : mean_text(search->found);
  };
  print_table(fmt::format("searches among what was recorded, rounds of {}, {}: speed of the best so far (1 is the "
                          "fastest recorded)",
                          request.search_batch, base::counted(std::int64_t(first->by_seed.size()), "seed")),
              study::searched_methods(request), request.search_counts, "", cell, out);
}

void print_metrics(const study::Rows& rows, const std::string& target, const study::EvaluateRequest& request,
                   Output& out) {
  std::vector<std::string> totals;
  for (const std::int64_t shots : request.shots) {
    std::int64_t most = 0;
    for (const EvaluationTable::Row& row : rows) {
      if (row.target == target && row.shots == shots) most = std::max(most, row.measurements.value_or(0));
    }
    totals.push_back(fmt::format("{} at {} shots", most, shots));
  }
  out.line("target measurements in all: " + base::join(totals, ", "));
  for (const Metric metric : study::metrics) {
    const auto cell = [&](const std::string& method, std::int64_t shots) -> std::string {
      const EvaluationTable::Row* const row = study::row_of(rows, target, method, shots);
      if (row == nullptr) return "-";
      return mean_text(row->means[metric]);
    };
    print_table(title_of(metric), request.methods, request.shots, "shots", cell, out);
  }
}

void print_differences(const EvaluationTable& table, const std::string& target, const study::EvaluateRequest& request,
                       Output& out) {
  for (const Metric metric : {Metric::spearman, Metric::top1}) {
    const auto cell = [&](const std::string& method, std::int64_t shots) -> std::string {
      const auto found = std::find_if(table.differences.begin(), table.differences.end(), [&](const auto& each) {
        return each.target == target && each.method == method && each.shots == shots;
      });
      return found == table.differences.end() ? "-" : interval_text(found->means[metric], "{:+.3f}");
    };
    print_table(fmt::format("{} less that of {}, paired by draw", study::key_of(metric), study::against_of(request)),
                request.methods, request.shots, "shots", cell, out);
  }
}

void print_search_differences(const EvaluationTable& table, const std::string& target,
                              const study::EvaluateRequest& request, Output& out) {
  const auto cell = [&](const std::string& method, std::int64_t trials) -> std::string {
    const auto found = std::find_if(
        table.search_differences.begin(), table.search_differences.end(),
        [&](const auto& each) { return each.target == target && each.method == method && each.trials == trials; });
    return found == table.search_differences.end() ? "-" : interval_text(found->found, "{:+.3f}");
  };
  print_table(fmt::format("searches: speed of the best so far less that of {}, paired by seed",
                          study::search_against_of(request)),
              study::searched_methods(request), request.search_counts, "", cell, out);
}

std::string draws_text(std::int64_t draws) {
  if (draws >= std::int64_t(base::least_for_interval)) return fmt::format("{} draws, 95 % intervals over draws", draws);
  return fmt::format("{}, no intervals (they need {})", base::counted(draws, "draw"), base::least_for_interval);
}

std::string said(meta::Regime regime) {
  if (regime == meta::Regime::in_domain) return "trained on it alone";
  if (regime == meta::Regime::alone) return "trained on other platforms, each workload by its own support";
  return fmt::format("trained on other platforms, {} workloads", study::name_of(regime));
}

}  // namespace

void print_target(const EvaluationTable& table, const std::string& target, const study::EvaluateRequest& request,
                  Output& out) {
  const EvaluationTable::Row& first = *table.find(target, request.methods.front(), request.shots.front());
  out.line(fmt::format("\n{} ({}), {}; {} judged, {}", target, first.source, said(request.regime),
                       base::counted(first.workloads, "workload"), draws_text(request.draws)));
  print_metrics(table.rows, target, request, out);
  print_searches(table.searches, target, request, out);
  Table best({"winner by", "shots", "method"});
  const auto winners = study::winners_of(table.rows, study::compared_in(request, {target}));
  for (const auto& winner : winners) best.row({"spearman", std::to_string(winner.shots), winner.by_spearman});
  for (const auto& winner : winners) best.row({"top1", std::to_string(winner.shots), winner.by_top1});
  out.line("");
  out.table(best);
}

void print_comparison(const EvaluationTable& table, const study::EvaluateRequest& request, Output& out) {
  std::string judged = table.rows.front().target;
  if (!table.means.empty()) {
    judged = table.means.front().target;
    out.line(fmt::format("\n{} targets; {}", judged, draws_text(request.draws)));
    print_metrics(table.means, judged, request, out);
    print_searches(table.search_means, judged, request, out);
  }
  if (!table.differences.empty()) print_differences(table, judged, request, out);
  if (!table.search_differences.empty()) print_search_differences(table, judged, request, out);
}

}  // namespace graft::cli
