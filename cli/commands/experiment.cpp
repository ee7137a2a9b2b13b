#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/files.h"
#include "cli/commands/commands.h"
#include "cli/report/experiment_page.h"
#include "study/experiments/measures.h"
#include "study/experiments/run.h"

namespace graft::cli {
namespace {

namespace fs = std::filesystem;
struct Flags {
  std::string name = "all", folder = default_folder, work = "runs/experiments", others;
  std::vector<std::string> from;
  bool quick = false, check = false;
};

ExperimentEntry entry_of(const fs::path& folder) {
  ExperimentEntry entry{study::read_experiment(folder), {}};
  const fs::path file = folder / "results.json";
  if (fs::exists(file)) entry.results = study::results_from(base::parse_json(base::read_file(file), file.string()));
  return entry;
}

void print_claims(const ExperimentEntry& entry, Output& output) {
  Table table({"claim", "figure", "asked", "verdict"});
  base::Document claims = base::Document::list();
  for (const study::Claim& claim : entry.experiment.claims) {
    const ClaimText text = claim_text(entry.experiment, claim, entry.results ? &*entry.results : nullptr);
    table.row({claim.text, text.figure, text.asked, text.verdict});
    base::Document row = base::Document::map().set("claim", claim.text).set("figure", text.figure);
    claims.push(row.set("asked", text.asked).set("verdict", text.verdict));
  }
  output.line(fmt::format("{} {}: {}", entry.experiment.id, entry.experiment.name, entry.experiment.title));
  output.table(table);
  output.json().set(entry.experiment.name, std::move(claims));
}

int list(const Flags& flags, Session& session) {
  for (const fs::path& folder : study::experiments_named(flags.name, flags.folder))
    print_claims(entry_of(folder), session.output);
  return done;
}

int run(const Flags& flags, Session& session) {
  for (const fs::path& folder : study::experiments_named(flags.name, flags.folder)) {
    const study::Experiment experiment = study::read_experiment(folder, flags.quick);
    if (flags.name == "all" && study::needs_others(experiment, flags.others)) {
      session.progress.note(fmt::format("{}: skipped, because it needs --data or --from", experiment.name));
      continue;
    }
    const fs::path work = fs::path(flags.work) / experiment.name;
    const study::ExperimentRequest request{
        experiment, work, flags.others, {flags.from.begin(), flags.from.end()}, session.threads, session.command_line};
    ExperimentEntry entry{experiment, study::run(request, session.team, session.progress)};
    const fs::path out = (flags.quick ? work : folder) / "results.json";  // the small version shows that it runs
    if (entry.results->complete && session.team.rank() == 0)
      base::replace_file(out, study::to_document(*entry.results).to_json() + "\n");
    print_claims(entry, session.output);
    if (entry.results->complete) continue;
    session.progress.note(interruption);
    return interrupted;
  }
  return done;
}

int render(const Flags& flags, Session& session) {
  std::vector<ExperimentEntry> entries;
  std::map<fs::path, std::string> files;
  for (const fs::path& folder : study::experiments_in(flags.folder)) {
    entries.push_back(entry_of(folder));
    for (auto& [name, text] : experiment_files(entries.back(), flags.folder)) files[folder / name] = std::move(text);
  }
  files[fs::path(flags.folder) / "README.md"] = experiments_table(entries, flags.folder);
  base::Document stale = base::Document::list();
  for (const auto& [file, content] : files) {
    if (fs::exists(file) && base::read_file(file) == content) continue;
    stale.push(file.string());
    session.output.line(file.string());
    if (!flags.check) base::replace_file(file, content);
  }
  const std::size_t count = stale.as_list().size();
  if (flags.check && count > 0)
    throw base::Failure(fmt::format("{} files are out of date; run graft experiment render", count));
  session.output.json().set("files", std::move(stale));
  return done;
}

void declare_folder(Options& options, Flags& flags) {
  options.text("folder", flags.folder, "folder of experiments, each with its experiment.yaml");
}

}  // namespace

Command experiment_list_command() {
  return {.name = "experiment list",
          .help = "experiments, what each claims and what came out",
          .examples = {"graft experiment list", "graft experiment list E1"},
          .declare = [](Options& options) -> Action {
            const auto flags = std::make_shared<Flags>();
            options.positional("NAME", flags->name, "name or id of one of them", Options::optional);
            declare_folder(options, *flags);
            return [flags](Session& session) { return list(*flags, session); };
          }};
}

Command experiment_run_command() {
  return {.name = "experiment run",
          .help = "run an experiment, or all, and judge its claims",
          .examples = {"graft experiment run search-methods --quick", "mpirun -n 2 graft experiment run all"},
          .declare = [](Options& options) -> Action {
            const auto flags = std::make_shared<Flags>();
            options.positional("NAME", flags->name, "name or id of one of them, or all");
            options.flag("quick", flags->quick, "a small version, whose results stay in the work folder");
            declare_folder(options, *flags);
            options.text("work", flags->work, "folder for runs and models; run again to continue");
            options.text("data", flags->others, "folder of others' measurements; all skips what needs it");
            options.list("from", flags->from, "of one that compares with programs of others: what its script wrote");
            return [flags](Session& session) { return run(*flags, session); };
          },
          .stops = true,
          .shares = true};
}

Command experiment_render_command() {
  return {.name = "experiment render",
          .help = "write the pages of all experiments from their definitions and results",
          .examples = {"graft experiment render", "graft experiment render --check"},
          .declare = [](Options& options) -> Action {
            const auto flags = std::make_shared<Flags>();
            declare_folder(options, *flags);
            options.flag("check", flags->check, "write nothing; fail if a page is out of date");
            return [flags](Session& session) { return render(*flags, session); };
          }};
}

}  // namespace graft::cli
