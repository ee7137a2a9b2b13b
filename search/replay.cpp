#include "search/replay.h"

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "base/error.h"
#include "base/shortened.h"
#include "search/point.h"

namespace graft::search {
namespace {

// Answers with recorded trials; candidates are of the recording's space.
class Recorder final : public tasks::Measurer {
 public:
  explicit Recorder(const std::vector<datasets::Trial>& trials) {
    for (const datasets::Trial& trial : trials) by_candidate_.emplace(codegen::hash(trial.candidate), &trial);
  }
  void measure(std::span<const codegen::Candidate> candidates,
               const std::function<void(const tasks::Measured&)>& on_trial, base::Monitor& monitor) override {
    for (std::size_t i = 0; i < candidates.size() && !monitor.stop_requested(); ++i) {
      const datasets::Trial& trial = *by_candidate_.at(codegen::hash(candidates[i]));
      on_trial({std::int64_t(i), trial.program_hash, trial.measurement});
    }
  }

 private:
  std::unordered_map<std::uint64_t, const datasets::Trial*> by_candidate_;
};

// A domain of its recorded points, all arguments together.
codegen::SketchSpace listed(const std::shared_ptr<const codegen::Sketch>& sketch,
                            const std::vector<datasets::Trial>& trials) {
  codegen::Domain domain{"recorded", {}, {}};
  for (std::size_t i = 0; i < sketch->arguments.size(); ++i) domain.arguments.push_back(int(i));
  for (const datasets::Trial& trial : trials) {
    if (*trial.candidate.sketch == *sketch) domain.values.push_back(trial.candidate.arguments);
  }
  std::sort(domain.values.begin(), domain.values.end());
  domain.values.erase(std::unique(domain.values.begin(), domain.values.end()), domain.values.end());
  codegen::SketchSpace part{sketch, {}};
  if (!domain.arguments.empty()) part.domains.push_back(std::move(domain));
  return part;
}

// The sketches of the trials; those that the space by rule has, with all of their trials, have its domains.
codegen::Space space_of(const codegen::Workload& workload, const codegen::Target& target,
                        const std::vector<datasets::Trial>& trials) {
  const codegen::Space derived = codegen::derive_space(workload, target);
  std::vector<codegen::SketchSpace> parts;
  for (const datasets::Trial& trial : trials) {
    const std::shared_ptr<const codegen::Sketch>& sketch = trial.candidate.sketch;
    const auto has = [&](const codegen::SketchSpace& part) { return *part.sketch == *sketch; };
    if (std::any_of(parts.begin(), parts.end(), has)) continue;
    const auto by_rule = std::find_if(derived.sketches().begin(), derived.sketches().end(), has);
    const bool all_there =
        by_rule != derived.sketches().end() &&
        std::all_of(trials.begin(), trials.end(), [&](const datasets::Trial& each) {
          return !(*each.candidate.sketch == *sketch) || point_of(each.candidate, derived).has_value();
        });
    parts.push_back(all_there ? *by_rule : listed(sketch, trials));
  }
  return codegen::Space(workload, target, std::move(parts));
}

}  // namespace

std::vector<double> Recording::sorted_seconds() const {
  std::vector<double> seconds;
  for (const datasets::Trial& trial : trials) {
    if (trial.measurement.status == datasets::Status::ok) seconds.push_back(datasets::seconds_of(trial.measurement));
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds;
}

Recording recorded(const datasets::Dataset& dataset, const codegen::Workload& workload) {
  std::vector<datasets::Trial> trials;
  std::unordered_map<std::uint64_t, std::size_t> by_program;
  std::int64_t left_out = 0;
  for (const datasets::Dataset::Row& row : dataset.rows) {
    if (!(dataset.workloads[std::size_t(row.workload)] == workload)) continue;
    codegen::Candidate candidate = dataset.candidate(row);
    const base::Result<codegen::LoopProgram> program = codegen::program(candidate, dataset.target);
    if (!program) {
      ++left_out;
      continue;
    }
    const std::uint64_t hash = codegen::hash(*program);
    datasets::Trial trial{0, std::move(candidate), hash, row.measurement};
    const auto [known, fresh] = by_program.emplace(hash, trials.size());
    if (fresh) {
      trials.push_back(std::move(trial));
    } else {
      trials[known->second] = std::move(trial);
      ++left_out;
    }
  }
  if (trials.empty())
    throw base::UserError(base::shortened(workload.text),
                          "no recorded row of it has a program that the platform's target can run, as a search needs; "
                          "rows of tables have none");
  codegen::Space space = space_of(workload, dataset.target, trials);
  std::vector<codegen::Candidate> points;
  for (const datasets::Trial& trial : trials) points.push_back(trial.candidate);
  space = space.only(points);
  left_out +=
      std::int64_t(std::erase_if(trials, [&](const datasets::Trial& trial) { return !space.valid(trial.candidate); }));
  return {dataset.platform, std::move(space), std::move(trials), left_out};
}

Replayed replay(const Recording& recording, const meta::CostModel* prior, const features::Encoding* encoding,
                const TuningSettings& settings, base::Monitor& monitor) {
  Recorder recorder(recording.trials);
  Tuning tuning({recording.space, recording.platform, encoding}, prior, recorder, settings);
  while (tuning.step(monitor)) {
  }
  return {tuning.trials(), tuning.curve(), !monitor.stop_requested()};
}

}  // namespace graft::search
