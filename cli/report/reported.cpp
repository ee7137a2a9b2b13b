#include "cli/report/reported.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/files.h"

namespace graft::cli {
namespace {

namespace fs = std::filesystem;

// The folder's own name, without the way to it.
std::string name_of(const fs::path& path) {
  const fs::path plain = path.lexically_normal();
  return (plain.has_filename() ? plain : plain.parent_path()).filename().string();
}

base::Document read_result(const fs::path& path) {
  base::Document result = base::parse_json(base::read_file(path), path.string());
  const base::Document* const schema = result.find("schema");
  if (schema == nullptr)
    throw base::UserError(path.string(),
                          "no result of graft (key 'schema' is missing); give a run's folder or what a command printed "
                          "with --json");
  if (schema->as_integer() != 1)
    throw base::UserError(path.string(), fmt::format("schema {}; this graft reads 1", schema->as_integer()));
  return result;
}

ReportedRun read_reported_run(const fs::path& folder, std::string name) {
  ReportedRun run{std::move(name), folder.string(), search::read_run(folder), {}, {}};
  for (const datasets::Trial& trial : run.content.journal.trials) {
    const codegen::Workload& workload = trial.candidate.workload;
    if (trial.measurement.status != datasets::Status::ok || run.best.contains(workload.text())) continue;
    if (const auto answer = study::answer_of(run.content, workload))
      run.best.emplace(workload.text(), ReportedBest{*answer, study::explained(run.content, *answer)});
  }
  if (fs::exists(folder / "bench.json")) run.bench = read_result(folder / "bench.json");
  return run;
}

std::vector<ReportedRun> read_runs(const fs::path& folder) {
  std::vector<ReportedRun> runs;
  if (search::recorded_request(folder)) {
    runs.push_back(read_reported_run(folder, name_of(folder)));
    return runs;
  }
  if (fs::exists(folder / "experiment.yaml"))
    throw base::UserError(folder.string(), "an experiment's folder; graft experiment render writes its page.md");
  std::vector<fs::path> inside;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && search::recorded_request(entry.path())) inside.push_back(entry.path());
  }
  if (inside.empty())
    throw base::UserError(folder.string(),
                          "no run of graft (run.json is missing), and no folder in it is one; give a folder that graft "
                          "tune or collect wrote");
  std::sort(inside.begin(), inside.end());
  for (const fs::path& each : inside) runs.push_back(read_reported_run(each, name_of(each)));
  return runs;
}

}  // namespace

Reported read_reported(const std::vector<std::string>& inputs) {
  Reported reported;
  bool any = false;
  for (const std::string& input : inputs) {
    if (!fs::is_directory(input)) {
      reported.results.push_back({name_of(input), read_result(input)});
      continue;
    }
    for (ReportedRun& run : read_runs(input)) {
      any = any || !run.content.journal.trials.empty();
      reported.runs.push_back(std::move(run));
    }
  }
  if (!reported.runs.empty() && !any && reported.results.empty())
    throw base::UserError(inputs.front(), "no trial is recorded yet; continue the run with the command that began it");
  return reported;
}

}  // namespace graft::cli
