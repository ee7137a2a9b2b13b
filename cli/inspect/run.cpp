#include <fmt/format.h>

#include <optional>

#include "base/error.h"
#include "base/shortened.h"
#include "base/text.h"
#include "cli/inspect/inspect.h"
#include "cli/print/best.h"
#include "cli/texts.h"
#include "codegen/expression/parse.h"
#include "datasets/journal.h"
#include "study/flows/rounds.h"
#include "study/inputs/request.h"
#include "study/knowledge/answer.h"

namespace graft::cli {
namespace {

Summary summary_of(const std::vector<datasets::Trial>& trials) {
  Summary summary;
  for (const datasets::Trial& trial : trials) summary.add(trial.candidate.workload, trial.measurement);
  return summary;
}

// The first trial of the workload that failed with a program, where none is ok.
const datasets::Trial& failed_trial(const search::RunContent& run, const codegen::Workload& workload,
                                    const std::string& what) {
  for (const datasets::Trial& trial : run.journal.trials)
    if (trial.program_hash != 0 && trial.candidate.workload == workload) return trial;
  throw base::UserError(what, fmt::format("no trial of {} has a program", base::shortened(workload.text())));
}

// The best program of a workload, or else one that failed.
int inspect_program(const search::RunContent& run, const Summary& summary, const InspectFlags& flags,
                    Session& session) {
  if (summary.workloads.empty()) throw base::UserError(flags.what, "no trial is recorded yet");
  if (search::is_of_command(run.request))
    throw base::UserError(flags.what, "the run of a command: its programs are not graft's, and cannot be shown");
  const codegen::Workload workload =
      flags.workload.empty() ? summary.workloads.front() : codegen::parse_workload(flags.workload);
  const std::optional<study::Answer> best = study::answer_of(run, workload);
  const tasks::Platform platform =
      flags.platform.empty() ? search::platform_of(run) : tasks::platform_named(flags.platform);
  if (study::platform_hash(platform) != run.request.at("platform_hash").as_string()) {
    session.progress.note(fmt::format("{} is described differently today than when this run was made", platform.name));
  }
  Output& out = session.output;
  out.json().set("workload", workload.text());
  if (!best) {
    const datasets::Trial& trial = failed_trial(run, workload, flags.what);
    const std::string_view status = datasets::name_of(trial.measurement.status);
    out.line(fmt::format("no trial of {} on {} is ok; trial {}, {}: {}", workload.text(), platform.name, trial.index,
                         status, trial.measurement.reason));
    out.json().set("trial", trial.index).set("status", std::string(status)).set("reason", trial.measurement.reason);
    print_program(trial.candidate, "", platform.target, flags, session);
    return done;
  }
  const bool built = !best->pipeline.empty();
  out.line(fmt::format("best of {} on {}: {}{}", workload.text(), platform.name,
                       time_text(best->seconds(), run.request.at("source").as_string()),
                       built ? ", built by " + best->pipeline : ""));
  out.json().set("seconds", best->seconds());
  if (built) out.json().set("pipeline", best->pipeline);
  print_program(best->candidate, best->pipeline, platform.target, flags, session);
  return done;
}

}  // namespace

int inspect_journal(const InspectFlags& flags, Session& session) {
  const datasets::JournalContent journal = datasets::read_journal(flags.what);
  Output& out = session.output;
  out.line(fmt::format("{}: journal, {} ({})\n", flags.what, base::counted(journal.trials.size(), "trial"),
                       status_line(study::status_counts(journal.trials))));
  out.json()
      .set("kind", "journal")
      .set("head", journal.head)
      .set("trials", journal.trials.size())
      .set("statuses", study::status_counts(journal.trials));
  const base::Document* request = journal.head.find("request");
  const base::Document* source = request == nullptr ? nullptr : request->find("source");
  print_summary(summary_of(journal.trials), source == nullptr ? "" : source->as_string(), out);
  out.line("");
  print_fields(journal.head, out);
  return done;
}

int inspect_run(const InspectFlags& flags, Session& session) {
  const search::RunContent run = search::read_run(flags.what);
  const Summary summary = summary_of(run.journal.trials);
  const std::string source = run.request.at("source").as_string();
  Output& out = session.output;
  out.json()
      .set("kind", "run")
      .set("request", run.request)
      .set("trials", run.journal.trials.size())
      .set("statuses", study::status_counts(run.journal.trials));
  if (flags.wants_program()) return inspect_program(run, summary, flags, session);
  out.line(fmt::format("{}: run of graft {}, {} ({})\n", flags.what, run.request.at("command").as_string(),
                       base::counted(run.journal.trials.size(), "trial"),
                       status_line(study::status_counts(run.journal.trials))));
  print_fields(run.request, out);
  out.line("");
  print_summary(summary, source, out, &run.request);
  base::Document best = base::Document::list();
  for (const codegen::Workload& workload : summary.workloads) {
    const std::optional<study::Answer> answer = study::answer_of(run, workload);
    if (!answer) continue;
    const double seconds = answer->seconds(), gflops = answer->gflops();
    const bool built = !answer->pipeline.empty();
    const auto peak = peak_gflops(run.request.at("platform").as_string(), workload);
    const std::string checked = checked_text(source, answer->measurement.check);
    out.line(fmt::format("\nbest of {}: {}{}", workload.text(), measured_text(run.request, seconds, source),
                         built ? ", built by " + answer->pipeline : ""));
    if (codegen::names_computation(workload))
      out.line(fmt::format("{} GFLOP/s{}{}", number_text(gflops, 2), peak ? ", " + of_peak_text(*answer, *peak) : "",
                           checked.empty() ? "" : ", results " + checked));
    const base::Document schedule = study::schedule_document(answer->candidate);
    for (const base::Document& step : schedule.as_list()) out.line("  " + step.as_string());
    base::Document entry = base::Document::map();
    entry.set("workload", workload.text()).set("seconds", seconds).set("gflops", gflops).set("schedule", schedule);
    if (peak) entry.set("peak_gflops", *peak);
    if (built) entry.set("pipeline", answer->pipeline);
    best.push(std::move(entry));
  }
  out.json().set("best", std::move(best));
  return done;
}

}  // namespace graft::cli
