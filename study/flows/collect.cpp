#include "study/flows/collect.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/shortened.h"
#include "base/statistics.h"
#include "base/temporary_folder.h"
#include "codegen/schedule/rules.h"
#include "search/explorers/breeding.h"
#include "search/explorers/listed.h"
#include "search/run_directory.h"
#include "search/tuning.h"
#include "study/flows/rounds.h"
#include "study/flows/search_session.h"
#include "study/flows/settings.h"
#include "study/inputs/field_error.h"
#include "tasks/divided.h"
#include "tasks/expected.h"
#include "tasks/modelled/modelled.h"

namespace graft::study {
namespace {

Request identity_of(const CollectRequest& request) {
  base::Document names = base::Document::list();
  for (const codegen::Workload& workload : request.workloads) names.push(workload.text());
  Request identity("collect");
  identity.set("workloads", std::move(names))
      .set("platform", request.platform.name)
      .set("source", request.platform.device->source())
      .set("platform_hash", platform_hash(request.platform))
      .set("explorer", request.programs.empty() ? request.explorer : "listed");
  if (!request.programs.empty()) {
    base::Document pool = base::Document::list();
    for (const std::string& file : request.programs) pool.push(file_hash(file));
    identity.set("programs", std::move(pool));
  }
  put_settings(request, identity.fields());
  return identity;
}

// The journal as a dataset, the rows of a workload together, and each workload's quality. The provenance is that
// of the run's first command: running it again changes no byte.
std::vector<datasets::Quality> write(const CollectRequest& request, const search::RunDirectory& run) {
  datasets::Dataset dataset;
  dataset.platform = request.platform.name;
  dataset.source = request.platform.device->source();
  dataset.platform_yaml = request.platform.yaml;
  dataset.target = request.platform.target;
  dataset.provenance = search::read_run(run.path()).journal.head.at("context");
  dataset.provenance.set("request", run.request());
  for (const datasets::Trial& trial : run.journal().trials()) dataset.add(trial);
  std::stable_sort(dataset.rows.begin(), dataset.rows.end(),
                   [](const auto& a, const auto& b) { return a.workload < b.workload; });
  datasets::write_dataset(dataset, request.out);
  return datasets::quality(dataset);
}

std::filesystem::path run_folder(const std::filesystem::path& out) {
  return out.string() + ".run";
}

// A dataset whose journal is gone (such as a shipped one) is continued, too: its rows are the journal's trials.
void restore_run(const std::filesystem::path& out, const Request& request) {
  const std::filesystem::path folder = run_folder(out);
  if (!std::filesystem::exists(out) || std::filesystem::exists(folder)) return;
  const datasets::Dataset dataset = datasets::read_dataset(out);
  const base::Document* const known = dataset.provenance.find("request");
  if (known == nullptr || Request::hash_of(*known) != request.hash())
    throw base::UserError(out.string(), known == nullptr
                                            ? "exists, and was not made by graft collect; choose another name"
                                            : fmt::format("exists, and was made {}; choose another name",
                                                          search::difference(*known, request.document())));
  base::Document context = base::Document::map();
  for (const auto& [key, value] : dataset.provenance.as_map())
    if (key != "request") context.set(key, value);
  const std::filesystem::path part = folder.string() + ".part";  // incomplete parts are made again
  std::filesystem::remove_all(part);
  {
    search::RunDirectory run(part, request.document(), context, dataset.platform_yaml);
    for (std::size_t i = 0; i < dataset.rows.size(); ++i) {
      const datasets::Dataset::Row& row = dataset.rows[i];
      run.append({std::int64_t(i), dataset.candidate(row), row.program_hash, row.measurement});
    }
  }
  std::filesystem::rename(part, folder);
}

// The run of a team: rank 0's is kept in `folder`, every other rank has a copy for as long as it lives.
class TeamRun {
 public:
  TeamRun(base::Team& team, const std::filesystem::path& folder, const base::Document& request,
          const base::Document& context, const std::string& platform_yaml) {
    if (team.rank() == 0) run_.emplace(folder, request, context, platform_yaml);
    const base::Gathered kept = team.gather(team.rank() == 0 && team.size() > 1 ? search::packed_run(folder) : "");
    if (team.rank() == 0) return;
    copy_.emplace("rank");
    search::unpack_run(kept[0], copy_->path());
    run_.emplace(copy_->path(), request, context, platform_yaml);
  }
  search::RunDirectory& get() { return *run_; }

 private:
  std::optional<base::TemporaryFolder> copy_;
  std::optional<search::RunDirectory> run_;
};

search::TuningSettings settings_of(const CollectRequest& request, const codegen::Workload& workload) {
  search::TuningSettings settings;
  settings.explorer = request.explorer;
  settings.trials = request.samples > 0 ? request.samples : CollectRequest::usual_samples;
  settings.seed = base::hash_combine(request.seed, codegen::hash(workload));
  settings.threads = request.threads;
  return settings;
}

}  // namespace

void check(const CollectRequest& request) {
  check_settings(request);
  const bool listed = !request.programs.empty();
  if (request.evolved > 0 && (listed || request.explorer != "random"))
    throw FieldError("evolved", "goes with the random explorer");
  if (!listed) return;
  if (request.explorer != CollectRequest().explorer)
    throw FieldError("explorer", "nothing to explore: `programs` are all that is measured");
  if (!(request.space.file.empty() && request.space.intrinsics.empty()) ||
      request.space.layouts == codegen::Layouts::free)
    throw FieldError("space", "nothing is drawn from it: `programs` are all that is measured");
}

namespace {

// Whose measurements one call makes, workload by workload.
class Collection {
 public:
  Collection(const CollectRequest& request, const Pool& pool, search::RunDirectory& run, tasks::Measurer& measurer,
             base::Monitor& monitor)
      : request_(request), pool_(pool), run_(run), measurer_(measurer), monitor_(monitor) {
    result_.platform = request.platform.name;
    result_.source = request.platform.device->source();
    result_.complete = true;
  }

  // `monitor`: all ranks' own.
  CollectResult measured(const std::vector<codegen::Space>& spaces, base::Monitor& monitor) {
    for (std::size_t w = 0; w < spaces.size() && result_.complete; ++w)
      measure(request_.workloads[w], spaces[w], w + 1 == spaces.size(), monitor);
    result_.trials = std::int64_t(run_.journal().trials().size());
    return std::move(result_);
  }

 private:
  void measure(const codegen::Workload& workload, const codegen::Space& space, bool is_last, base::Monitor& monitor) {
    search::TuningSettings settings = settings_of(request_, workload);
    std::unique_ptr<search::Explorer> explorer = explorer_of(space, settings);
    settings.batch = int(std::min<std::int64_t>(settings.trials, 64));
    SearchSession session(space, {request_.platform, measurer_, run_});
    session.begin(settings, std::move(explorer));
    result_.complete = session.run(settings.trials, monitor);
    const search::Tuning& tuning = session.tuning();
    // A single workload may be beyond a platform; where nothing was ok before it either, the platform is to blame.
    if (result_.complete && !tuning.best()) {
      const std::string why = nothing_ok_text(tuning.trials(), request_.platform, run_folder(request_.out));
      if (!any_ok_ && (tuning.hopeless() || is_last)) throw base::Failure(why);
      monitor_.note(fmt::format("{}: {}", workload.text(), why));
    }
    any_ok_ = any_ok_ || tuning.best();
    CollectResult::Row row{workload, tuning.trials(), {}, {}};
    for (const datasets::Trial& trial : row.trials) {
      if (trial.measurement.status == datasets::Status::ok)
        row.seconds.push_back(datasets::seconds_of(trial.measurement));
    }
    result_.rows.push_back(std::move(row));
  }

  // Null: the one that the settings name.
  std::unique_ptr<search::Explorer> explorer_of(const codegen::Space& space, search::TuningSettings& settings) const {
    std::unique_ptr<search::Explorer> explorer;
    if (!request_.programs.empty()) {
      std::vector<codegen::Candidate> programs = pool_.of(space.workload());
      const std::int64_t all = std::int64_t(programs.size());
      settings.trials = request_.samples > 0 ? std::min(request_.samples, all) : all;
      explorer = std::make_unique<search::Listed>(std::move(programs));
    }
    if (request_.evolved > 0) {
      const search::BreedingSettings breeding{.share = request_.evolved};
      explorer = std::make_unique<search::Breeding>(space, settings.seed, breeding);
    }
    return explorer;
  }

  const CollectRequest& request_;
  const Pool& pool_;
  search::RunDirectory& run_;
  tasks::Measurer& measurer_;
  base::Monitor& monitor_;  // this rank's
  CollectResult result_;
  bool any_ok_ = false;
};

}  // namespace

CollectResult collect(const CollectRequest& request, const Pool& pool, tasks::Shared& shared, base::Team& team,
                      base::Monitor& own_monitor) {
  check(request);
  const tasks::Platform& platform = request.platform;
  const tasks::MeasureSettings measure = request.timing.settings(0, request.threads);
  std::vector<codegen::Space> spaces;
  for (const codegen::Workload& workload : request.workloads) {
    tasks::require_memory(workload, platform.device->place(), measure);
    spaces.push_back(space_of(request.space, workload, platform.target));
    if (!request.programs.empty() && pool.of(workload).empty())
      throw base::UserError(base::shortened(workload.text()), "the datasets hold no measured program of this workload");
  }
  // Refuses an unknown name before there is a folder.
  search::make_explorer(request.explorer, spaces.front(), request.seed);
  auto measurer = tasks::make_measurer(platform, measure, &shared);
  if (team.size() > 1) measurer = tasks::make_divided_measurer(std::move(measurer), team);
  base::TeamMonitor monitor(team, own_monitor);
  const Request identity = identity_of(request);
  const bool keeps = team.rank() == 0;
  if (keeps) restore_run(request.out, identity);
  TeamRun team_run(team, run_folder(request.out), identity.document(), context_of(request.command_line), platform.yaml);
  search::RunDirectory& run = team_run.get();
  note_continued(run.path(), std::int64_t(run.journal().trials().size()), own_monitor);
  CollectResult result = Collection(request, pool, run, *measurer, own_monitor).measured(spaces, monitor);
  if (!keeps || result.trials == 0) return result;
  for (datasets::Quality& quality : write(request, run)) {
    for (CollectResult::Row& row : result.rows)
      if (row.workload == quality.workload) row.quality = quality;
  }
  return result;
}

void check_ranks(const tasks::Platform& platform, base::Team& team, base::Monitor& monitor) {
  if (team.size() == 1 || platform.device->is_exact()) return;
  if (!platform.device->is_this_host())
    throw base::UserError("mpirun",
                          fmt::format("ranks would run programs on {} at the same time; one process shares the "
                                      "work among several boards (ssh: a list)",
                                      platform.name));
  std::set<std::string> hosts;
  utsname system{};
  ::uname(&system);
  for (const std::string_view host : team.gather(system.nodename)) {
    if (!hosts.emplace(host).second)
      monitor.note(fmt::format("several ranks on {}: their times disturb each other; use --map-by node", host));
  }
}

std::shared_ptr<tasks::HostChecks> host_checks_of(const std::vector<datasets::Dataset>& checked,
                                                  const tasks::MeasureSettings& settings) {
  auto checks = std::make_shared<tasks::HostChecks>(settings);
  for (const datasets::Dataset& dataset : checked) {
    for (const datasets::Dataset::Row& row : dataset.rows) {
      if (row.measurement.status == datasets::Status::ok && row.measurement.check == "host")
        checks->add(dataset.workloads[std::size_t(row.workload)], row.program_hash);
    }
  }
  return checks;
}

base::Document to_document(const CollectRequest& request, const CollectResult& result) {
  base::Document rows = base::Document::list();
  for (const CollectResult::Row& each : result.rows) {
    base::Document row = base::Document::map();
    row.set("workload", each.workload.text()).set("trials", each.trials.size()).set("ok", each.seconds.size());
    if (!each.seconds.empty()) {
      const auto [best, worst] = std::minmax_element(each.seconds.begin(), each.seconds.end());
      row.set("best_seconds", *best).set("median_seconds", base::median(each.seconds)).set("worst_seconds", *worst);
    }
    row.set("statuses", status_counts(each.trials));
    if (each.quality) {
      base::Document missed = base::Document::list();
      for (const std::string& gate : each.quality->missed) missed.push(gate);
      row.set("missed_gates", std::move(missed));
    }
    rows.push(std::move(row));
  }
  base::Document out = base::Document::map();
  return out.set("platform", result.platform)
      .set("source", result.source)
      .set("seed", std::int64_t(request.seed))
      .set("trials", result.trials)
      .set("workloads", std::move(rows))
      .set("complete", result.complete)
      .set("out", request.out.string());
}

}  // namespace graft::study
