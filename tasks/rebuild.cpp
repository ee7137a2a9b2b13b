#include "tasks/rebuild.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <utility>
#include <variant>

#include "base/parallel.h"
#include "codegen/machine/compile.h"
#include "tasks/native.h"

namespace graft::tasks {
namespace {

using datasets::Measurement;
using datasets::Status;

base::Result<HostBinary> compiled(const codegen::Candidate& candidate, const codegen::Target& target,
                                  const codegen::Pipeline& pipeline) {
  const auto program = codegen::program(candidate, target);
  if (!program) return program.reason();
  return compile_for_host(*program, target, pipeline);
}

// The repetitions of one more round; a failure takes the place of all rounds.
void add_round(Measurement& all, Measurement round) {
  if (all.status != Status::ok) return;
  if (round.status == Status::ok) round.seconds.insert(round.seconds.begin(), all.seconds.begin(), all.seconds.end());
  all = std::move(round);
}

}  // namespace

std::vector<Build> rebuild(const Platform& platform, std::span<const codegen::Candidate> candidates, int rounds,
                           const MeasureSettings& settings, base::Monitor& monitor) {
  assert(std::holds_alternative<Native>(platform.how));
  const std::vector<codegen::Pipeline>& pipelines = codegen::pipelines();
  // All are compiled before the first is timed: then nothing else of ours runs.
  std::vector<base::Result<HostBinary>> binaries(candidates.size() * pipelines.size(), base::Reason{});
  base::parallel_for(std::int64_t(binaries.size()), base::hardware_threads(), [&](std::int64_t i) {
    const std::size_t at = std::size_t(i);
    binaries[at] = compiled(candidates[at / pipelines.size()], platform.target, pipelines[at % pipelines.size()]);
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
        fails ? i : known.try_emplace({candidates[candidate].workload.text, binaries[i]->bytes}, i).first->second);
  }
  HostRunner runner(settings);
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < builds.size(); ++i) {
      if (monitor.stop_requested()) return {};
      if (same_as[i] != i || builds[i].measurement.status != Status::ok) continue;
      const std::size_t candidate = i / pipelines.size();
      add_round(builds[i].measurement, runner.run(candidates[candidate].workload, *binaries[i]));
    }
  }
  for (std::size_t i = 0; i < builds.size(); ++i) builds[i].measurement = builds[same_as[i]].measurement;
  return builds;
}

}  // namespace graft::tasks
