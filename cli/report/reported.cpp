#include "cli/report/reported.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "base/error.h"
#include "base/files.h"
#include "study/flows/network_program.h"
#include "study/flows/network_shapes.h"
#include "study/inputs/request.h"

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

std::optional<base::Document> result_in(const fs::path& folder, const char* file) {
  return fs::exists(folder / file) ? std::optional(read_result(folder / file)) : std::nullopt;
}

ReportedRun read_reported_run(const fs::path& folder, std::string name) {
  ReportedRun run{std::move(name), folder.string(), search::read_run(folder), {}, {}, {}};
  for (const datasets::Trial& trial : run.content.journal.trials) {
    const codegen::Workload& workload = trial.candidate.workload;
    if (trial.measurement.status != datasets::Status::ok || run.best.contains(workload.text())) continue;
    if (const auto answer = study::answer_of(run.content, workload))
      run.best.emplace(workload.text(), ReportedBest{*answer, search::is_of_command(run.content.request)
                                                                  ? study::Explained()
                                                                  : study::explained(run.content, *answer)});
  }
  run.bench = result_in(folder, "bench.json");
  if (search::is_of_command(run.content.request)) run.result = result_in(folder, "best.json");
  return run;
}

// Nothing that is missing today ends a report of what was found.
template <class Read>
void try_to(const Read& read, std::string& why_not) {
  try {
    read();
  } catch (const base::Stopped&) {
    throw;
  } catch (const base::UserError& error) {
    why_not = error.what();
  } catch (const base::Failure& error) {
    why_not = error.what();
  }
}

ReportedNetwork read_network(const fs::path& folder, base::Monitor& monitor) {
  ReportedNetwork out;
  out.name = name_of(folder);
  out.tuned = study::read_tuned_network(folder);
  out.bench = result_in(folder, "bench.json");
  out.check = result_in(folder, "check.json");
  try_to(
      [&] {
        out.plan = study::plan_of(out.tuned);
        const study::NetworkProgram program = study::program_of(out.tuned, *out.plan, "network", monitor);
        out.memory = {std::int64_t(program.sequence.weights.size()), program.sequence.arena_bytes, program.peak_bytes};
      },
      out.unknown);
  return out;
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

Reported read_reported(const std::vector<std::string>& inputs, base::Monitor& monitor) {
  Reported reported;
  bool any = false;
  for (const std::string& input : inputs) {
    if (!fs::is_directory(input)) {
      reported.results.push_back({name_of(input), read_result(input)});
      continue;
    }
    if (study::is_network_folder(input)) {
      for (const fs::path& network : study::networks_in(input))
        reported.networks.push_back(read_network(network, monitor));
      continue;
    }
    for (ReportedRun& run : read_runs(input)) {
      any = any || !run.content.journal.trials.empty();
      reported.runs.push_back(std::move(run));
    }
  }
  if (!reported.runs.empty() && !any && reported.results.empty() && reported.networks.empty())
    throw base::UserError(inputs.front(), "no trial is recorded yet; continue the run with the command that began it");
  return reported;
}

}  // namespace graft::cli
