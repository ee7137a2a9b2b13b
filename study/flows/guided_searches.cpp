#include "study/flows/guided_searches.h"

#include <fmt/format.h>

#include <atomic>
#include <optional>
#include <utility>

#include "base/parallel.h"
#include "base/statistics.h"
#include "study/flows/replay.h"

namespace graft::study {

Searches guided_searches(const datasets::Dataset& recorded, std::span<const codegen::Workload> workloads,
                         const features::Encoding& encoding, std::span<const Guide> guides,
                         const GuidedSearchSettings& settings, base::Monitor& monitor) {
  base::SharedMonitor shared(monitor);
  base::QuietMonitor quiet(shared);
  search::Programs programs(recorded.target, &encoding);
  std::vector<std::optional<search::Recording>> recordings(workloads.size());
  base::parallel_for(std::ssize(workloads), settings.threads, [&](std::int64_t w) {
    base::check_stop(shared);
    recordings[std::size_t(w)] = search::recorded(recorded, workloads[std::size_t(w)], programs);
  });

  search::TuningSettings search;
  search.explorer = ReplayRequest().explorer;
  search.trials = settings.counts.back();
  search.batch = int(settings.batch);
  search.threads = 1;  // searches run side by side instead
  search::TuningSettings blind = search;
  blind.explorer = "random";

  // By guide, seed and workload; the searches of one workload in succession, since its programs are known then.
  std::vector<std::vector<std::vector<ReplayedWorkload>>> made(
      guides.size(), std::vector(std::size_t(settings.seeds), std::vector<ReplayedWorkload>(workloads.size())));
  const std::int64_t of_workload = std::ssize(guides) * settings.seeds, all = std::ssize(workloads) * of_workload;
  std::atomic<std::int64_t> done = 0;
  base::parallel_for(all, settings.threads, [&](std::int64_t piece) {
    const std::size_t workload = std::size_t(piece / of_workload),
                      seed = std::size_t(piece % of_workload / std::ssize(guides)),
                      guide = std::size_t(piece % std::ssize(guides));
    const meta::CostModel* const model = guides[guide].model;
    search::TuningSettings own = model == nullptr ? blind : search;
    own.seed = settings.seed + seed;
    made[guide][seed][workload] = replayed(*recordings[workload], programs, model, own, quiet);
    shared.progress(fmt::format("{}: searching", recorded.platform), ++done, all);
  });

  Searches out;
  for (std::size_t g = 0; g < guides.size(); ++g) {
    for (const std::int64_t count : settings.counts) {
      EvaluationTable::Search row{recorded.platform, guides[g].method, recorded.source, count, std::ssize(workloads)};
      for (const std::vector<ReplayedWorkload>& of_seed : made[g])
        row.by_seed.push_back(mean_share_after(of_seed, count));
      row.found = base::bootstrap_mean(row.by_seed, 0.95, settings.seed);
      out.push_back(std::move(row));
    }
  }
  return out;
}

}  // namespace graft::study
