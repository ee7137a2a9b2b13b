#include "study/flows/kernel_answer.h"

#include <set>
#include <utility>

#include "base/error.h"
#include "codegen/space/candidate.h"
#include "tasks/rebuild.h"

namespace graft::study {
namespace {

constexpr int rebuild_rounds = 5;
constexpr std::int64_t timed_again_for_each = 4;  // trials for each program that every pipeline builds

// Without the checks again (search/run_directory.h).
std::vector<search::Build> by_pipelines(std::vector<search::Build> builds) {
  std::erase_if(builds, [](const search::Build& build) { return build.pipeline.empty(); });
  return builds;
}

void drop_builds(search::RunDirectory& run) {
  std::vector<search::Build> checks = run.builds();
  if (std::erase_if(checks, [](const search::Build& build) { return !build.pipeline.empty(); }) > 0)
    run.record(std::move(checks));
}

// The best trials timed once more and the best of them by every pipeline, when the search is over; not again when these
// very ones were built before.
void rebuild_best(const KernelSearch& search, search::RunDirectory& run, const tasks::MeasureSettings& settings,
                  base::Monitor& monitor) {
  const std::vector<datasets::Trial> best =
      search::best_trials(run.journal().trials(), search.workload, std::size_t(timed_again_for_each * search.rebuild));
  std::vector<codegen::Candidate> candidates;
  std::set<std::int64_t> wanted, built;
  for (const datasets::Trial& trial : best) {
    candidates.push_back(trial.candidate);
    wanted.insert(trial.index);
  }
  for (const search::Build& build : run.builds()) built.insert(build.trial.index);
  if (wanted == built) return;
  std::vector<search::Build> builds;
  for (tasks::Build& build :
       tasks::rebuild(search.platform, candidates, std::size_t(search.rebuild), rebuild_rounds, settings, monitor)) {
    datasets::Trial trial = best[std::size_t(build.candidate)];
    trial.measurement = std::move(build.measurement);
    builds.push_back({std::move(trial), std::move(build.pipeline)});
  }
  if (!builds.empty()) run.record(std::move(builds));
}

}  // namespace

KernelAnswer kernel_answer(const KernelSearch& search, search::RunDirectory& run,
                           const tasks::MeasureSettings& settings, base::Monitor& monitor) {
  if (search.measured_more) drop_builds(run);
  if (search.rebuild > 0 && search.platform.device->is_this_host()) rebuild_best(search, run, settings, monitor);
  KernelAnswer made;
  made.builds = by_pipelines(run.builds());
  // From all recorded trials: an earlier run with more trials may have found a better one.
  made.answer = checked_answer(run, search.workload, search.platform, settings, monitor);
  if (made.answer) made.peak_gflops = peak_gflops(search.platform, search.workload);
  if (search.is_complete) base::check_stop(monitor);  // the answer may lack its check
  return made;
}

}  // namespace graft::study
