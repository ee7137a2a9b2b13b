#include "study/flows/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/shortened.h"
#include "base/statistics.h"
#include "datasets/dataset.h"
#include "search/comparison.h"
#include "search/explorer.h"
#include "study/flows/search_session.h"
#include "study/flows/settings.h"
#include "study/knowledge/prior.h"
#include "tasks/platform.h"

namespace graft::study {

double ReplayedWorkload::share_after(std::int64_t count) const {
  double best = 0;
  for (const auto& [trial, seconds] : curve) {
    if (trial <= count) best = seconds;
  }
  return best > 0 ? best_recorded / best : 0;
}

double mean_share_after(std::span<const ReplayedWorkload> workloads, std::int64_t count) {
  std::vector<double> shares;
  for (const ReplayedWorkload& each : workloads)
    shares.push_back(std::max(each.share_after(count), search::least_speed));
  return base::geometric_mean(shares);
}

double ReplayResult::share_after(std::int64_t count) const {
  return mean_share_after(workloads, count);
}

ReplayedWorkload replayed(const search::Recording& recording, search::Programs& programs, const meta::CostModel* prior,
                          const search::TuningSettings& settings, base::Monitor& monitor) {
  const std::vector<double> sorted = recording.sorted_seconds();
  const std::string workload = recording.space.workload().text();
  if (sorted.empty())
    throw base::UserError(base::shortened(workload), "no program of it was ok, so that nothing can be found");
  base::check_stop(monitor);
  search::Replayed made = search::replay(recording, programs, prior, settings, monitor);
  base::check_stop(monitor);
  return {workload,           std::int64_t(recording.trials.size()),
          recording.left_out, std::int64_t(made.trials.size()),
          sorted.front(),     std::move(made.curve)};
}

namespace {

bool is_of_tables(const datasets::Dataset& dataset) {
  return std::all_of(dataset.sketches.begin(), dataset.sketches.end(),
                     [](const auto& sketch) { return !sketch->columns.empty(); });
}

// Rows of tables have no programs: a model sees their columns.
Prior prior_for(const datasets::Dataset& dataset, const ReplayRequest& request, const tasks::Platform& platform,
                base::Monitor& monitor) {
  PriorRequest asked;
  asked.model = request.model;
  asked.explorer = request.explorer;
  asked.seed = request.seed;
  asked.threads = request.threads;
  if (!is_of_tables(dataset)) return prior_of(asked, platform, monitor);
  return prior_of_tables(asked, platform, dataset, monitor);
}

}  // namespace

ReplayResult replay(const ReplayRequest& request, base::Monitor& monitor) {
  check_settings(request);
  const datasets::Dataset dataset = datasets::read_dataset(request.data);
  datasets::refuse_emulated(request.data.string(), dataset.source);
  tasks::Platform platform;
  platform.name = dataset.platform;
  platform.target = dataset.target;
  const Prior prior = prior_for(dataset, request, platform, monitor);
  search::Programs programs(dataset.target, prior.encoding.get());
  const search::TuningSettings settings = settings_of_explorer(request);

  ReplayResult result;
  result.platform = dataset.platform;
  result.source = dataset.source;
  result.explorer = request.explorer;
  result.model = prior.name;
  result.seed = request.seed;
  const std::vector<codegen::Workload>& workloads = request.workloads.empty() ? dataset.workloads : request.workloads;
  base::QuietMonitor quiet(monitor);
  for (const codegen::Workload& workload : workloads) {
    monitor.progress("replayed workloads", std::int64_t(result.workloads.size()), std::int64_t(workloads.size()));
    const search::Recording recording = search::recorded(dataset, workload, programs);
    search::make_explorer(request.explorer, recording.space, request.seed, request.selection);  // refuses before it
    result.workloads.push_back(replayed(recording, programs, prior.model.get(), settings, quiet));
  }
  return result;
}

base::Document to_document(const ReplayResult& result) {
  base::Document rows = base::Document::list();
  for (const ReplayedWorkload& each : result.workloads) {
    base::Document points = base::Document::list();
    for (const auto& [trial, seconds] : each.curve) points.push(base::Document(base::Document::List{trial, seconds}));
    base::Document row = base::Document::map();
    rows.push(row.set("workload", each.workload)
                  .set("programs", each.programs)
                  .set("left_out", each.left_out)
                  .set("trials", each.trials)
                  .set("best_recorded", each.best_recorded)
                  .set("curve", std::move(points)));
  }
  base::Document out = base::Document::map();
  return out.set("platform", result.platform)
      .set("source", result.source)
      .set("explorer", result.explorer)
      .set("model", result.model)
      .set("seed", std::int64_t(result.seed))
      .set("rows", std::move(rows));
}

}  // namespace graft::study
