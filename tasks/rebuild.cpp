#include "tasks/rebuild.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <map>
#include <utility>

#include "base/parallel.h"
#include "codegen/machine/compile.h"
#include "codegen/schedule/candidate_program.h"
#include "tasks/host_runner.h"

namespace graft::tasks {
namespace {

using datasets::Measurement;
using datasets::Status;

base::Result<HostBinary> compiled(const codegen::Candidate& candidate, const codegen::Target& target,
                                  const codegen::Pipeline& pipeline) {
  const auto program = codegen::program(candidate, target);
  if (!program) return program.reason();
  return compile_for_host(*program, target, pipeline.name);
}

// The repetitions of one more round; a failure takes the place of all rounds.
void add_round(Measurement& all, Measurement round) {
  if (all.status != Status::ok) return;
  if (round.status == Status::ok) round.seconds.insert(round.seconds.begin(), all.seconds.begin(), all.seconds.end());
  all = std::move(round);
}

// Every candidate by every pipeline, timed in turn.
std::vector<Build> built(const codegen::Target& target, std::span<const codegen::Candidate> candidates,
                         std::span<const codegen::Pipeline> pipelines, int rounds, const MeasureSettings& settings,
                         base::Monitor& monitor) {
  // All are compiled before the first is timed: then nothing else of ours runs.
  std::vector<base::Result<HostBinary>> binaries(candidates.size() * pipelines.size(), base::Reason{});
  base::parallel_for(std::int64_t(binaries.size()), settings.threads, monitor, [&](std::int64_t i) {
    const std::size_t at = std::size_t(i);
    binaries[at] = compiled(candidates[at / pipelines.size()], target, pipelines[at % pipelines.size()]);
  });

  std::vector<Build> builds;
  std::vector<std::size_t> same_as;  // the first build of equal code for the same workload
  std::map<std::pair<std::string, std::string>, std::size_t> known;
  for (std::size_t i = 0; i < binaries.size(); ++i) {
    const std::size_t candidate = i / pipelines.size();
    const bool fails = !binaries[i];
    builds.push_back({std::int64_t(candidate), pipelines[i % pipelines.size()].name,
                      fails ? without_times(Status::does_not_compile, binaries[i].reason().text) : Measurement{}});
    same_as.push_back(
        fails ? i : known.try_emplace({candidates[candidate].workload.text(), binaries[i]->bytes}, i).first->second);
  }
  HostRunner runner(settings);
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < builds.size(); ++i) {
      base::check_stop(monitor);
      if (same_as[i] != i || builds[i].measurement.status != Status::ok) continue;
      const std::size_t candidate = i / pipelines.size();
      add_round(builds[i].measurement, runner.run(candidates[candidate].workload, *binaries[i], 0, &monitor));
    }
  }
  for (std::size_t i = 0; i < builds.size(); ++i) builds[i].measurement = builds[same_as[i]].measurement;
  return builds;
}

}  // namespace

std::vector<Build> rebuild(const Platform& platform, std::span<const codegen::Candidate> candidates,
                           std::size_t finalists, int rounds, const MeasureSettings& settings, base::Monitor& monitor) {
  assert(platform.device->is_this_host());
  const auto stage = [&](std::span<const codegen::Candidate> some, std::span<const codegen::Pipeline> pipelines) {
    return built(platform.target, some, pipelines, rounds, settings, monitor);
  };
  if (candidates.size() <= finalists) return stage(candidates, codegen::pipelines());

  std::vector<Build> result = stage(candidates, std::span(&codegen::search_pipeline(platform.target), 1));
  const auto seconds = [](const Build& build) {  // those that failed last
    const bool ok = build.measurement.status == Status::ok;
    return ok ? datasets::seconds_of(build.measurement) : std::numeric_limits<double>::infinity();
  };
  std::stable_sort(result.begin(), result.end(),
                   [&](const Build& a, const Build& b) { return seconds(a) < seconds(b); });
  std::vector<Build> heat(result.begin(), result.begin() + std::ptrdiff_t(finalists));
  const auto by_position = [](const Build& a, const Build& b) { return a.candidate < b.candidate; };
  std::sort(heat.begin(), heat.end(), by_position);
  result.erase(result.begin(), result.begin() + std::ptrdiff_t(finalists));
  std::sort(result.begin(), result.end(), by_position);

  std::vector<codegen::Candidate> best;
  for (const Build& build : heat) best.push_back(candidates[std::size_t(build.candidate)]);
  std::vector<Build> last = stage(best, codegen::pipelines());
  for (Build& build : last) {
    Build& before = heat[std::size_t(build.candidate)];
    build.candidate = before.candidate;
    if (build.pipeline == before.pipeline) {  // the same code, seen in both stages
      add_round(before.measurement, std::move(build.measurement));
      build.measurement = std::move(before.measurement);
    }
    result.push_back(std::move(build));
  }
  return result;
}

std::vector<datasets::Measurement> timed_in_turn(const Platform& platform,
                                                 std::span<const codegen::Candidate> candidates, int rounds,
                                                 const MeasureSettings& settings, base::Monitor& monitor) {
  std::vector<Measurement> result;
  if (platform.device->is_this_host()) {
    const auto pipelines = std::span(&codegen::search_pipeline(platform.target), 1);
    for (Build& build : built(platform.target, candidates, pipelines, rounds, settings, monitor))
      result.push_back(std::move(build.measurement));
    return result;
  }
  result.resize(candidates.size());
  for (int round = 0; round < rounds; ++round) {
    const auto measurer = make_measurer(platform, settings);  // one measures nothing twice
    measurer->measure(
        candidates, [&](const Measured& one) { add_round(result[std::size_t(one.position)], one.measurement); },
        monitor);
    base::check_stop(monitor);
  }
  return result;
}

}  // namespace graft::tasks
