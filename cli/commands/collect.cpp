#include <fmt/format.h>
#include <stdlib.h>
#include <sys/utsname.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/shortened.h"
#include "base/statistics.h"
#include "cli/commands/commands.h"
#include "cli/commands/common.h"
#include "codegen/schedule/space.h"
#include "datasets/groups.h"
#include "datasets/quality.h"
#include "search/explorers/breeding.h"
#include "search/explorers/listed.h"
#include "tasks/divided.h"
#include "tasks/expected.h"
#include "tasks/modelled/modelled.h"

namespace graft::cli {
namespace {

constexpr std::int64_t usual_samples = 300;

struct Flags {
  std::vector<std::string> workloads, programs, checked, platforms = {"native"};
  std::string explorer = "random", out;
  std::int64_t samples = 0;
  double evolved = 0;
  SpaceFlag space;
  MeasureFlags measure;
};

// Programs that were measured elsewhere: the `ok` rows of datasets, each program once; of a workload in turn from each
// file, so that the first ones stand for all files.
class Pool {
 public:
  Pool(const std::vector<std::string>& files, base::Monitor& monitor) {
    std::vector<std::vector<std::vector<codegen::Candidate>>> by_file;  // [file][workload][in its order]
    for (const datasets::Dataset& dataset : read_datasets(files, monitor)) {
      auto& own = by_file.emplace_back();
      for (const datasets::Group& group : datasets::groups(dataset)) {
        const std::size_t w = position_of(group.workload);
        own.resize(std::max(own.size(), w + 1));
        for (const std::int64_t row : group.rows) own[w].push_back(dataset.candidate(dataset.rows[std::size_t(row)]));
      }
    }
    programs_.resize(workloads_.size());
    for (std::size_t w = 0; w < workloads_.size(); ++w) {
      std::set<std::uint64_t> known;  // candidate hashes
      bool any = true;
      for (std::size_t turn = 0; any; ++turn) {
        any = false;
        for (const auto& own : by_file) {
          if (w >= own.size() || turn >= own[w].size()) continue;
          any = true;
          if (known.insert(codegen::hash(own[w][turn])).second) programs_[w].push_back(own[w][turn]);
        }
      }
    }
  }
  const std::vector<codegen::Workload>& workloads() const { return workloads_; }
  std::vector<codegen::Candidate> of(const codegen::Workload& workload) const {
    const auto found = std::find(workloads_.begin(), workloads_.end(), workload);
    if (found == workloads_.end())
      throw base::UserError("--programs", fmt::format("no measured program of {}", base::shortened(workload.text)));
    return programs_[std::size_t(found - workloads_.begin())];
  }

 private:
  std::size_t position_of(const codegen::Workload& workload) {
    const auto found = std::find(workloads_.begin(), workloads_.end(), workload);
    if (found != workloads_.end()) return std::size_t(found - workloads_.begin());
    workloads_.push_back(workload);
    return workloads_.size() - 1;
  }

  std::vector<codegen::Workload> workloads_;
  std::vector<std::vector<codegen::Candidate>> programs_;  // by workload
};

void check(const Flags& flags) {
  if (flags.evolved > 1) throw base::UserError("--evolved", "a share of the samples: 0 to 1");
  if (flags.evolved > 0 && !(flags.explorer == "random" && flags.programs.empty()))
    throw base::UserError("--evolved", "goes with the random explorer");
  if (flags.programs.empty()) {
    if (flags.workloads.empty()) throw base::UserError("WORKLOAD", "nothing to collect; name workloads, or --programs");
    return;
  }
  if (flags.explorer != "random")
    throw base::UserError("--explorer", "nothing to explore: --programs are all that is measured");
  if (!flags.space.file.empty())
    throw base::UserError("--space", "nothing is drawn from it: --programs are all that is measured");
}

base::Document request_of(const Flags& flags, const Session& session, const std::vector<codegen::Workload>& workloads,
                          const tasks::Platform& platform) {
  base::Document names = base::Document::list();
  for (const codegen::Workload& workload : workloads) names.push(workload.text);
  base::Document request = base::Document::map();
  request.set("command", "collect")
      .set("workloads", std::move(names))
      .set("platform", platform.name)
      .set("source", tasks::source_of(platform))
      .set("platform_hash", platform_hash(platform))
      .set("explorer", flags.programs.empty() ? flags.explorer : "listed")
      .set("seed", std::int64_t(session.seed));
  if (!flags.programs.empty()) {
    base::Document pool = base::Document::list();
    for (const std::string& file : flags.programs) pool.push(file_hash(file));
    request.set("programs", std::move(pool));
  }
  if (flags.evolved > 0) request.set("evolved", flags.evolved);
  flags.space.put(request);
  flags.measure.put(request);
  return request;
}

// The journal as a dataset, the rows of a workload together, and how good each workload's are. What is said about the
// making is the run's first command: running it again changes no byte.
std::vector<datasets::Quality> write(const std::filesystem::path& out, const tasks::Platform& platform,
                                     const search::RunDirectory& run, const base::Document& request,
                                     const base::Document& context) {
  datasets::Dataset dataset;
  dataset.platform = platform.name;
  dataset.source = tasks::source_of(platform);
  dataset.platform_yaml = platform.yaml;
  dataset.target = platform.target;
  dataset.provenance = context;
  dataset.provenance.set("request", request);
  for (const datasets::Trial& trial : run.journal().trials()) dataset.add(trial);
  std::stable_sort(dataset.rows.begin(), dataset.rows.end(),
                   [](const auto& a, const auto& b) { return a.workload < b.workload; });
  datasets::write_dataset(dataset, out);
  return datasets::quality(dataset);
}

std::filesystem::path run_folder(const std::filesystem::path& out) {
  return out.string() + ".run";
}

// A dataset whose journal is gone (it was shipped, say) goes on, too: its rows are the journal's trials.
void restore_run(const std::filesystem::path& out, const base::Document& request) {
  const std::filesystem::path folder = run_folder(out);
  if (!std::filesystem::exists(out) || std::filesystem::exists(folder)) return;
  const datasets::Dataset dataset = datasets::read_dataset(out);
  const base::Document* const known = dataset.provenance.find("request");
  if (known == nullptr || known->to_json() != request.to_json())
    throw base::UserError("--out", fmt::format("{} exists, and was made by another request; choose another name{}",
                                               out.string(), known == nullptr ? "" : ": " + known->to_json()));
  base::Document context = base::Document::map();
  for (const auto& [key, value] : dataset.provenance.as_map())
    if (key != "request") context.set(key, value);
  const std::filesystem::path part = folder.string() + ".part";  // what is torn there is made anew
  std::filesystem::remove_all(part);
  {
    search::RunDirectory run(part, request, context, dataset.platform_yaml);
    for (std::size_t i = 0; i < dataset.rows.size(); ++i) {
      const datasets::Dataset::Row& row = dataset.rows[i];
      run.append({std::int64_t(i), dataset.candidate(row), row.program_hash, row.measurement});
    }
  }
  std::filesystem::rename(part, folder);
}

// A folder for as long as it lives.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_((std::filesystem::temp_directory_path() / "graft-rank-XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) throw base::Failure(fmt::format("{}: cannot be made", path_));
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::filesystem::path path() const { return path_; }

 private:
  std::string path_;
};

// The run of a team: rank 0's is kept in `folder`, every other rank has a copy for as long as it lives.
class TeamRun {
 public:
  TeamRun(base::Team& team, const std::filesystem::path& folder, const base::Document& request,
          const base::Document& context, const std::string& platform_yaml) {
    if (team.rank() == 0) run_.emplace(folder, request, context, platform_yaml);
    const base::Gathered kept = team.gather(team.rank() == 0 && team.size() > 1 ? search::packed_run(folder) : "");
    if (team.rank() == 0) return;
    copy_.emplace();
    search::unpack_run(kept[0], copy_->path());
    run_.emplace(copy_->path(), request, context, platform_yaml);
  }
  search::RunDirectory& get() { return *run_; }

 private:
  std::optional<TemporaryFolder> copy_;
  std::optional<search::RunDirectory> run_;
};

// Of one platform. False when it was interrupted.
bool collect_on(const tasks::Platform& platform, const std::filesystem::path& out, const Flags& flags,
                const std::vector<codegen::Workload>& workloads, const Pool& pool, tasks::Shared& shared,
                Session& session, base::Document& json) {
  const std::filesystem::path folder = run_folder(out);
  std::vector<codegen::Space> spaces;
  std::vector<std::vector<codegen::Candidate>> listed;  // by workload; of --programs
  for (const codegen::Workload& workload : workloads) {
    tasks::require_memory(workload, tasks::place_of(platform), flags.measure.settings(0, session));
    spaces.push_back(flags.space.space(workload, platform.target));
    if (!flags.programs.empty()) listed.push_back(pool.of(workload));
  }
  search::make_explorer(flags.explorer, spaces.front(),
                        session.seed);  // refuses an unknown name before there is a folder
  auto measurer = tasks::make_measurer(platform, flags.measure.settings(0, session), &shared);
  if (session.team.size() > 1) measurer = tasks::make_divided_measurer(std::move(measurer), session.team);
  base::TeamMonitor monitor(session.team, session.progress);
  const base::Document request = request_of(flags, session, workloads, platform);
  const bool keeps = session.team.rank() == 0;
  if (keeps) restore_run(out, request);
  TeamRun team_run(session.team, folder, request, context_of(session), platform.yaml);
  search::RunDirectory& run = team_run.get();
  if (!run.journal().trials().empty()) {
    session.progress.note(
        fmt::format("{}: continues, {} trials are recorded", folder.string(), run.journal().trials().size()));
  }

  // A single workload may be beyond a platform; where nothing was ok before it either, the platform is to blame.
  bool complete = true, any_ok = false;
  base::Document rows = base::Document::list();
  for (std::size_t w = 0; w < spaces.size() && complete; ++w) {
    search::TuningSettings settings;
    settings.explorer = flags.explorer;
    settings.trials = flags.samples > 0 ? flags.samples : usual_samples;
    std::unique_ptr<search::Explorer> explorer;
    if (!listed.empty()) {
      const std::int64_t all = std::int64_t(listed[w].size());
      settings.trials = flags.samples > 0 ? std::min(flags.samples, all) : all;
      explorer = std::make_unique<search::Listed>(std::move(listed[w]));
    }
    settings.batch = int(std::min<std::int64_t>(settings.trials, 64));
    settings.seed = base::hash_combine(session.seed, codegen::hash(workloads[w]));
    if (flags.evolved > 0) explorer = std::make_unique<search::Breeding>(spaces[w], settings.seed, flags.evolved);
    settings.threads = session.threads;
    search::Tuning tuning(spaces[w], features::encodings().front(), nullptr, *measurer, run, settings,
                          std::move(explorer));
    tuning.platform = platform.name;
    complete = run_rounds(tuning, settings.trials, monitor);
    if (complete && !tuning.best()) {
      const std::string why = nothing_ok_text(tuning.trials(), platform, folder);
      const bool is_last = w + 1 == spaces.size();
      if (!any_ok && (tuning.hopeless() || is_last)) throw base::Failure(why);
      session.progress.note(fmt::format("{}: {}", workloads[w].text, why));
    }
    any_ok = any_ok || tuning.best();
    base::Document row = base::Document::map();
    row.set("workload", workloads[w].text).set("trials", tuning.trials().size());
    std::vector<double> seconds;
    for (const datasets::Trial& trial : tuning.trials()) {
      if (trial.measurement.status == datasets::Status::ok) seconds.push_back(datasets::seconds_of(trial.measurement));
    }
    row.set("ok", seconds.size());
    if (!seconds.empty()) {
      row.set("best_seconds", *std::min_element(seconds.begin(), seconds.end()))
          .set("median_seconds", base::median(seconds))
          .set("worst_seconds", *std::max_element(seconds.begin(), seconds.end()));
    }
    row.set("statuses", status_counts(tuning.trials()));
    rows.push(std::move(row));
  }
  std::vector<datasets::Quality> qualities;
  if (keeps && !run.journal().trials().empty())
    qualities = write(out, platform, run, request, search::read_run(folder).journal.head.at("context"));

  Table table({"workload", "trials", "ok", fmt::format("best {}", seconds_word(tasks::source_of(platform))), "median",
               "max/min", "variation", "gates"});
  base::Document judged = base::Document::list();
  for (base::Document row : rows.as_list()) {
    const std::string& workload = row.at("workload").as_string();
    const bool any = row.find("best_seconds") != nullptr;
    const double best = any ? row.at("best_seconds").as_number() : 0;
    const auto quality = std::find_if(qualities.begin(), qualities.end(),
                                      [&](const auto& own) { return own.workload.text == workload; });
    std::string variation = "-", gates = "-";
    if (quality != qualities.end()) {
      variation = share_text(quality->variation);
      gates = gates_text(*quality);
      base::Document missed = base::Document::list();
      for (const std::string& gate : quality->missed) missed.push(gate);
      row.set("missed_gates", std::move(missed));
    }
    table.row({workload, std::to_string(row.at("trials").as_integer()), std::to_string(row.at("ok").as_integer()),
               any ? seconds_text(best) : "-", any ? seconds_text(row.at("median_seconds").as_number()) : "-",
               any ? number_text(row.at("worst_seconds").as_number() / best, 1) : "-", variation, gates});
    judged.push(std::move(row));
  }
  json.set("platform", platform.name)
      .set("source", tasks::source_of(platform))
      .set("seed", std::int64_t(session.seed))
      .set("trials", run.journal().trials().size())
      .set("workloads", std::move(judged))
      .set("complete", complete)
      .set("out", out.string());
  session.output.line(fmt::format("{} ({}): {} trials in {}", platform.name, tasks::source_of(platform),
                                  run.journal().trials().size(), out.string()));
  session.output.table(table);
  return complete;
}

// One dataset: --out. Of several platforms one each, named for it, in the folder --out.
std::filesystem::path dataset_of(const tasks::Platform& platform, const Flags& flags) {
  if (flags.platforms.size() == 1) return flags.out;
  return std::filesystem::path(flags.out) / dataset_file_name(platform.name);
}

// What modelled platforms need not run here again.
std::shared_ptr<tasks::HostChecks> checks_of(const Flags& flags, Session& session) {
  auto checks = std::make_shared<tasks::HostChecks>(flags.measure.settings(0, session));
  for (const datasets::Dataset& dataset : read_datasets(flags.checked, session.progress)) {
    for (const datasets::Dataset::Row& row : dataset.rows) {
      if (row.measurement.status == datasets::Status::ok && row.measurement.check == "host")
        checks->add(dataset.workloads[std::size_t(row.workload)], row.program_hash);
    }
  }
  return checks;
}

// Ranks must not disturb each other's times.
void check_ranks(const tasks::Platform& platform, Session& session) {
  const std::string source = tasks::source_of(platform);
  if (session.team.size() == 1 || source == "modelled") return;
  if (source != "native")
    throw base::UserError("mpirun",
                          fmt::format("ranks would run programs on {} at the same time; one process shares the "
                                      "work among several boards (ssh: a list)",
                                      platform.name));
  std::set<std::string> hosts;
  utsname system{};
  ::uname(&system);
  for (const std::string_view host : session.team.gather(system.nodename)) {
    if (!hosts.emplace(host).second)
      session.progress.note(
          fmt::format("several ranks on {}: their times disturb each other; use --map-by node", host));
  }
}

int collect(const Flags& flags, Session& session) {
  check(flags);
  std::vector<tasks::Platform> platforms;
  for (const std::string& name : flags.platforms) {
    platforms.push_back(tasks::platform_named(name));
    const auto same = [&](const tasks::Platform& other) { return other.name == platforms.back().name; };
    if (std::find_if(platforms.begin(), platforms.end() - 1, same) != platforms.end() - 1)
      throw base::UserError("--platform", fmt::format("{} is given twice", platforms.back().name));
  }
  for (const tasks::Platform& platform : platforms) {
    if (session.team.rank() == 0) check_output_folder(dataset_of(platform, flags));
    check_ranks(platform, session);
  }
  const Pool pool(flags.programs, session.progress);
  const std::vector<codegen::Workload> workloads =
      flags.workloads.empty() ? pool.workloads() : workloads_of(flags.workloads);
  if (workloads.empty()) throw base::UserError("--programs", "no program in them is ok");

  tasks::Shared shared;
  if (!flags.checked.empty()) shared.host_checks = checks_of(flags, session);
  base::Document datasets = base::Document::list();
  bool complete = true;
  for (std::size_t p = 0; p < platforms.size() && complete; ++p) {
    base::Document json = base::Document::map();
    complete = collect_on(platforms[p], dataset_of(platforms[p], flags), flags, workloads, pool, shared, session, json);
    datasets.push(std::move(json));
  }
  if (platforms.size() > 1) {
    session.output.json().set("datasets", std::move(datasets)).set("complete", complete);
  } else {
    for (const auto& [key, value] : datasets.as_list().front().as_map()) session.output.json().set(key, value);
  }
  if (!complete) session.progress.note(interruption);
  return complete ? done : interrupted;
}

}  // namespace

Command collect_command() {
  return {
      .name = "collect",
      .help = "measure sampled schedules of workloads on a platform into a dataset",
      .examples =
          {"graft collect 'matmul(m=512,n=512,k=512)' resnet18.C2 --platform native:v3 --samples 300 --out v3.h5",
           "graft collect suite:shipped --platform model:sifive-p450 --samples 420 --out p450.h5",
           "graft collect suite:shipped --platform model:cortex-a53,model:cortex-a72 --samples 420 --out data",
           "graft collect --programs v3.h5 --platform native:v4 --out common-v4.h5",
           "mpirun --hostfile HOSTS --map-by node --bind-to none graft collect suite:resnet18 --out r18.h5"},
      .declare = [](Options& options) -> Action {
        const auto flags = std::make_shared<Flags>();
        options.positionals("WORKLOAD", flags->workloads,
                            "operators with their shapes, index expressions, or suite:NAME (resnet18, shipped); "
                            "with --programs: which of theirs (default: all)",
                            Options::optional);
        options.list("platform", flags->platforms,
                     "ids or YAML files (graft platform list), one after the other; modelled ones share the checks "
                     "of equal programs and what equal caches do with them");
        options.integer(
            "samples", flags->samples, 0,
            fmt::format("schedules to measure of each workload; 0: {}, or all of --programs", usual_samples));
        options.list("programs", flags->programs,
                     "datasets whose programs are measured, in place of drawing some: to compare platforms on the "
                     "same ones");
        options.list("checked", flags->checked,
                     "datasets, native ones say, whose programs were checked while they were made: modelled platforms "
                     "run them on this host no more");
        options.number("evolved", flags->evolved, 0,
                       "share of each round (64 programs) behind the first that is bred from the fastest so far, for "
                       "more programs among the fast ones; 0: all uniform over the space, as a sample to judge on "
                       "must be");
        options.text("explorer", flags->explorer, "random, or another explorer (which then works without a model)");
        options.text("out", flags->out,
                     "the dataset (HDF5); its journal lies in <out>.run (without it, its rows are taken for what was "
                     "measured); of several platforms the folder of their datasets",
                     Options::required);
        flags->space.declare(options);
        flags->measure.declare(options);
        return [flags](Session& session) { return collect(*flags, session); };
      },
      .stops = true,
      .shares = true};
}

}  // namespace graft::cli
