#include "cli/print/tuned.h"

#include <fmt/format.h>

#include "cli/print/best.h"
#include "cli/texts.h"
#include "study/flows/rounds.h"
#include "study/knowledge/answer.h"

namespace graft::cli {

namespace {

void print_trials(const std::vector<datasets::Trial>& trials, const search::TimeSpent& time, Table& table) {
  table.row({"trials", std::to_string(trials.size())});
  table.row({"of them", status_line(study::status_counts(trials))});
  if (time.measured > 0) {
    const auto share = [&](double part) { return 100 * part / time.all(); };
    table.row({"trials per second", fmt::format("{:.0f} ({:.0f} % measuring, {:.0f} % proposing, {:.0f} % learning)",
                                                double(time.measured) / time.all(), share(time.measuring),
                                                share(time.proposing), share(time.learning))});
  }
}

void print_search(const study::TuneResult& result, Table& table) {
  print_trials(result.trials, result.time, table);
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
  out.line(fmt::format("{} on {} ({})", result.workload, result.platform, result.source));
  Table table({"", "value"});
  if (const auto& answer = result.answer) {
    table.row({fmt::format("best {}", seconds_word(result.source)), seconds_text(answer->seconds())});
    const std::string checked = checked_text(result.source, answer->measurement.check);
    if (!checked.empty()) table.row({"its results", checked});
    table.row({kind_of_times(result.source) + "GFLOP/s", number_text(answer->gflops(), 2)});
    if (result.peak_gflops) table.row({"of the peak", of_peak_text(*answer, *result.peak_gflops)});
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

void print(const study::OwnResult& result, Output& out) {
  const std::string points = result.points ? fmt::format("{:.6g} points", *result.points)
                                           : fmt::format("{:.3g} combinations", result.combinations);
  out.line(fmt::format("{} on {}, {}", result.workload, result.platform, points));
  Table table({"", "value"});
  if (result.best) {
    const std::optional<tasks::Goal>& goal = result.best->goal;
    if (goal)
      table.row({"best " + goal->name, goal_text(*goal)});
    else
      table.row({"best seconds", seconds_text(result.best->seconds)});
    for (const auto& [name, value] : result.best->measurement.also)
      table.row({"its " + name, fmt::format("{:.6g}", value)});
    if (result.standard_seconds && goal)
      table.row(
          {"than the default", fmt::format("{:.2f} times better", *result.standard_seconds / result.best->seconds)});
    else if (result.standard_seconds)
      table.row({"the default", fmt::format("{} ({:.2f} times the best)", seconds_text(*result.standard_seconds),
                                            *result.standard_seconds / result.best->seconds)});
  }
  if (result.known_since.empty()) {
    print_trials(result.trials, result.time, table);
    table.row({"model", result.model});
    table.row({"run", result.folder.string()});
  } else {
    table.row({"known since", result.known_since + " (--again searches)"});
  }
  out.table(table);
  if (!result.importance.empty()) {
    out.line("");
    Table shares({"parameter", "alone, % of what the model expects to vary"});
    for (const auto& [parameter, share] : result.importance)
      shares.row({parameter, fmt::format("{:.1f}", 100 * share)});
    out.table(shares);
  }
  if (!result.best) return;
  out.line("\nbest configuration:");
  out.line("  " + result.best->configuration.to_json());
  out.line("  " + result.best->command);
}

void print(const study::OwnResults& results, Output& out) {
  for (const study::OwnResult& device : results.devices) {
    if (&device != &results.devices.front()) out.line("");
    print(device, out);
  }
}

}  // namespace graft::cli
