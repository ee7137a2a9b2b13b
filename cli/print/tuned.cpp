#include "cli/print/tuned.h"

#include <fmt/format.h>

#include "cli/print/best.h"
#include "cli/texts.h"
#include "study/knowledge/answer.h"
#include "study/flows/rounds.h"

namespace graft::cli {

namespace {

void print_search(const study::TuneResult& result, Table& table) {
  table.row({"trials", std::to_string(result.trials.size())});
  table.row({"of them", status_line(study::status_counts(result.trials))});
  const search::TimeSpent& time = result.time;
  if (time.measured > 0) {
    const auto share = [&](double part) { return 100 * part / time.all(); };
    table.row({"trials per second", fmt::format("{:.0f} ({:.0f} % measuring, {:.0f} % proposing, {:.0f} % learning)",
                                                double(time.measured) / time.all(), share(time.measuring),
                                                share(time.proposing), share(time.learning))});
  }
  if (result.answer && !result.answer->pipeline.empty()) {
    table.row(
        {"best built by", fmt::format("{} (the fastest of {} builds)", result.answer->pipeline, result.builds.size())});
  }
  table.row({"improvements", std::to_string(result.improvements())});
  table.row({"model", result.model});
  table.row({"run", result.folder.string()});
}

}  // namespace

void print(const study::TuneResult& result, Output& out) {
  const bool modelled = result.source == "modelled";
  out.line(fmt::format("{} on {} ({})", result.workload, result.platform, result.source));
  Table table({"", "value"});
  if (const auto& answer = result.answer) {
    table.row({fmt::format("best {}", seconds_word(result.source)), seconds_text(answer->seconds())});
    const std::string checked = checked_text(result.source, answer->measurement.check);
    if (!checked.empty()) table.row({"its results", checked});
    table.row({modelled ? "modelled GFLOP/s" : "GFLOP/s", number_text(answer->gflops(), 2)});
    if (result.peak_gflops) table.row({"of the peak", of_peak_text(answer->gflops(), *result.peak_gflops)});
  }
  if (!result.known_since.empty()) {
    table.row({"known since", result.known_since + " (--again searches)"});
    table.row({"trials then", std::to_string(result.curve.back().first)});
  } else {
    print_search(result, table);
  }
  out.table(table);
  if (!result.answer) return;
  out.line("\nbest schedule:");
  const base::Document schedule = study::schedule_document(result.answer->candidate);
  for (const base::Document& step : schedule.as_list()) out.line("  " + step.as_string());
}

}  // namespace graft::cli
