#include "search/replay.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_map>

#include "base/error.h"
#include "base/shortened.h"
#include "codegen/schedule/rules.h"
#include "codegen/space/table_schema.h"
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

// Values that were recorded for some arguments together.
codegen::Domain recorded_domain(std::string name, std::vector<int> arguments, const codegen::Sketch& sketch,
                                const std::vector<datasets::Trial>& trials) {
  codegen::Domain domain{std::move(name), std::move(arguments), {}};
  for (const datasets::Trial& trial : trials) {
    if (!(*trial.candidate.sketch == sketch)) continue;
    std::vector<std::int64_t>& row = domain.values.emplace_back();
    for (const int argument : domain.arguments) row.push_back(trial.candidate.arguments[std::size_t(argument)]);
  }
  std::sort(domain.values.begin(), domain.values.end());
  domain.values.erase(std::unique(domain.values.begin(), domain.values.end()), domain.values.end());
  return domain;
}

// A table's columns one by one; all arguments of another sketch together.
codegen::SketchSpace listed(const std::shared_ptr<const codegen::Sketch>& sketch,
                            const std::vector<datasets::Trial>& trials) {
  codegen::SketchSpace part{sketch, {}};
  std::vector<int> together;
  for (std::size_t i = 0; i < sketch->arguments.size(); ++i) {
    if (sketch->columns.empty()) {
      together.push_back(int(i));
    } else {
      part.domains.push_back(recorded_domain(sketch->arguments[i].name, {int(i)}, *sketch, trials));
    }
  }
  if (!together.empty()) part.domains.push_back(recorded_domain("recorded", together, *sketch, trials));
  return part;
}

// The sketches of the trials; those that the space by rule has, with all of their trials, have its domains.
codegen::Space space_of(const codegen::Workload& workload, const codegen::Target& target,
                        const std::vector<datasets::Trial>& trials) {
  const bool has_schedules = std::any_of(trials.begin(), trials.end(), [](const datasets::Trial& trial) {
    return !codegen::is_row_of_table(trial.candidate);
  });
  std::optional<codegen::Space> derived;
  std::vector<codegen::IntrinsicPointer> intrinsics;
  for (const datasets::Trial& trial : trials)
    for (const codegen::IntrinsicPointer& intrinsic : trial.candidate.sketch->intrinsics)
      if (!codegen::intrinsic_named(intrinsics, intrinsic->name)) intrinsics.push_back(intrinsic);
  if (has_schedules && codegen::names_computation(workload))
    derived = codegen::derive_space(workload, target, intrinsics);
  std::vector<codegen::SketchSpace> parts;
  for (const datasets::Trial& trial : trials) {
    const std::shared_ptr<const codegen::Sketch>& sketch = trial.candidate.sketch;
    const auto has = [&](const codegen::SketchSpace& part) { return *part.sketch == *sketch; };
    if (std::any_of(parts.begin(), parts.end(), has)) continue;
    const auto is_point = [&](const datasets::Trial& each) {
      return !(*each.candidate.sketch == *sketch) || point_of(each.candidate, *derived).has_value();
    };
    if (derived && std::any_of(derived->sketches().begin(), derived->sketches().end(), has) &&
        std::all_of(trials.begin(), trials.end(), is_point)) {
      parts.push_back(*std::find_if(derived->sketches().begin(), derived->sketches().end(), has));
    } else {
      parts.push_back(listed(sketch, trials));
    }
  }
  return codegen::Space(workload, std::move(parts));
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

Recording recorded(const datasets::Dataset& dataset, const codegen::Workload& workload, Programs& programs) {
  std::vector<datasets::Trial> trials;
  std::unordered_map<std::uint64_t, std::size_t> by_identity;
  std::int64_t left_out = 0;
  for (const datasets::Dataset::Row& row : dataset.rows) {
    if (!(dataset.workloads[std::size_t(row.workload)] == workload)) continue;
    codegen::Candidate candidate = dataset.candidate(row);
    const base::Result<std::uint64_t> identity = programs.identity(candidate);
    if (!identity) {
      ++left_out;
      continue;
    }
    datasets::Trial trial{0, std::move(candidate), *identity, row.measurement};
    const auto [known, fresh] = by_identity.emplace(*identity, trials.size());
    if (fresh) {
      trials.push_back(std::move(trial));
    } else {
      trials[known->second] = std::move(trial);
      ++left_out;
    }
  }
  if (trials.empty())
    throw base::UserError(base::shortened(workload.text()),
                          "no recorded row of it is a row of a table, or has a program that the platform's target can "
                          "run");
  codegen::Space space = space_of(workload, dataset.target, trials);
  std::vector<codegen::Candidate> points;
  for (const datasets::Trial& trial : trials) points.push_back(trial.candidate);
  space = space.only(points, programs);
  left_out += std::int64_t(
      std::erase_if(trials, [&](const datasets::Trial& trial) { return !space.identity(trial.candidate, programs); }));
  return {dataset.platform, std::move(space), std::move(trials), left_out};
}

Replayed replay(const Recording& recording, Programs& programs, const meta::CostModel* prior,
                const TuningSettings& settings, base::Monitor& monitor) {
  Recorder recorder(recording.trials);
  Tuning tuning({recording.space, programs, recording.platform}, prior, recorder, settings);
  while (tuning.step(monitor)) {
  }
  return {tuning.trials(), tuning.curve(), !monitor.stop_requested()};
}

}  // namespace graft::search
