#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/shortened.h"
#include "base/statistics.h"
#include "base/text.h"
#include "cli/inspect/inspect.h"
#include "cli/print/best.h"
#include "cli/texts.h"

namespace graft::cli {
namespace {

void print_fields(const base::Document& map, const std::string& prefix, Table& table) {
  for (const auto& [key, value] : map.as_map()) {
    if (value.is_map()) {
      print_fields(value, prefix + key + ".", table);
    } else {
      constexpr std::size_t widest = 100;
      std::string text = value.is_string() ? value.as_string() : value.to_json();
      if (value.is_list() && text.size() > widest)
        text = fmt::format("{} (--json shows them)", base::counted(value.as_list().size(), "entry"));
      else if (text.size() > widest && text.find('\n') == std::string::npos)
        text = base::shortened(text);
      std::string field = prefix + key;
      for (const std::string_view line : base::split(base::trim(text), '\n'))
        table.row({std::exchange(field, ""), std::string(line)});
    }
  }
}

}  // namespace

void Summary::add(const codegen::Workload& workload, const datasets::Measurement& measurement) {
  auto found = std::find(workloads.begin(), workloads.end(), workload);
  if (found == workloads.end()) {
    workloads.push_back(workload);
    times.emplace_back();
    found = workloads.end() - 1;
  }
  Times& own = times[std::size_t(found - workloads.begin())];
  ++own.rows;
  failures.add(measurement);
  if (measurement.status == datasets::Status::ok) own.seconds.push_back(datasets::seconds_of(measurement));
}

void print_summary(const Summary& summary, std::string_view source, Output& out, const base::Document* request) {
  const std::optional<tasks::Goal> goal = request ? goal_of(*request, 1) : std::nullopt;
  const auto text = [&](double seconds) { return goal ? measured_text(*request, seconds) : seconds_text(seconds); };
  Table table({"workload", "rows", "ok", "best " + (goal ? goal->name : seconds_word(source)), "median", "max/min"});
  base::Document rows = base::Document::list();
  for (std::size_t w = 0; w < summary.workloads.size(); ++w) {
    const Times& times = summary.times[w];
    base::Document row = base::Document::map();
    row.set("workload", summary.workloads[w].text()).set("rows", times.rows).set("ok", times.seconds.size());
    if (times.seconds.empty()) {
      table.row({summary.workloads[w].text(), std::to_string(times.rows), "0", "-", "-", "-"});
    } else {
      const auto [best, worst] = std::minmax_element(times.seconds.begin(), times.seconds.end());
      const double median = base::median(times.seconds);
      table.row({summary.workloads[w].text(), std::to_string(times.rows), std::to_string(times.seconds.size()),
                 text(*best), text(median), number_text(*worst / *best, 1)});
      row.set("best_seconds", *best).set("median_seconds", median).set("worst_seconds", *worst);
    }
    rows.push(std::move(row));
  }
  out.table(table);
  out.json().set("workloads", std::move(rows));
  print_failures(summary.failures, out);
}

void print_fields(const base::Document& map, Output& out) {
  Table table({"field", "value"});
  print_fields(map, "", table);
  if (!table.empty()) out.table(table);
}

}  // namespace graft::cli
