// The one loop that measures: propose, measure, journal, learn (Algorithm 1 of "Learning to Optimize Tensor Programs").
// collect, adapt and tune differ in explorer, prior and budget only. Resuming is running again: recorded trials replace
// the measurer until they are used up.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/monitor.h"
#include "datasets/trial.h"
#include "meta/cost_model.h"
#include "search/ask_tell.h"
#include "search/explorer.h"
#include "search/run_directory.h"
#include "tasks/measurer.h"

namespace graft::search {

struct TuningSettings : AskTellSettings {
  std::int64_t trials = 64;     // budget in all
  int batch = 32;               // trials a round
  double budget_seconds = 0;    // of wall time in this process; 0: none
  double later_trials = 0;      // what comes after the search and in that budget, in trials that take as long
  std::int64_t stop_after = 0;  // trials in a row without a gain of `least_gain`; 0: never
};

constexpr double most_for_later = 0.4;  // of the budget
constexpr double least_gain = 0.01;     // share of the best time by which a trial must be faster to continue the search

// Where the wall time of a tuning went, in seconds. Recorded trials that answer in place of the measurer cost next to
// nothing and are not counted.
struct TimeSpent {
  double proposing = 0, learning = 0, measuring = 0;
  std::int64_t measured = 0;  // trials
  double all() const { return proposing + learning + measuring; }
};

// (number of trials, best seconds so far), one point per improvement and one at the end.
std::vector<std::pair<std::int64_t, double>> curve_of(std::span<const datasets::Trial> trials);

class Tuning {
 public:
  // `prior` and `explorer` as of AskTell. References must outlive the tuning.
  Tuning(Task task, const meta::CostModel* prior, tasks::Measurer& measurer, RunDirectory& run,
         const TuningSettings& settings, std::unique_ptr<Explorer> explorer = nullptr)
      : Tuning(std::move(task), prior, measurer, &run, settings, std::move(explorer)) {}
  // Without a folder: nothing is kept, and all trials are measured.
  Tuning(Task task, const meta::CostModel* prior, tasks::Measurer& measurer, const TuningSettings& settings)
      : Tuning(std::move(task), prior, measurer, nullptr, settings, nullptr) {}

  // One round; false when the budget (of trials or of time) is spent, the search has settled or is hopeless, the space
  // has no more candidates, or a stop was requested.
  bool step(base::Monitor& monitor);
  // Before the first round (AskTell::remember).
  void remember(std::span<const std::vector<datasets::Trial>> runs) { search_.remember(runs); }
  // From now on this many trials in all. A round that is cut short by it and goes on later proposes the same again.
  void limit(std::int64_t trials) { settings_.trials = trials; }
  // The last `stop_after` trials were no more than `least_gain` faster than the best one before them.
  bool settled() const;
  bool out_of_time() const { return deadline_.left() <= reserve(); }
  double seconds_left() const { return deadline_.left(); }  // of the budget; infinite without one
  double seconds_per_trial() const { return spent_.measured > 0 ? spent_.all() / double(spent_.measured) : 0; }
  // Whole rounds of at least `least_to_judge` trials were measured, and none was ok: the fault is in the platform
  // rather than in a program, and more trials would fail for the same reason.
  bool hopeless() const;
  static constexpr std::int64_t least_to_judge = 16;

  // Trials of this workload, recorded ones included.
  const std::vector<datasets::Trial>& trials() const { return search_.trials(); }
  std::optional<datasets::Trial> best() const { return search_.best(); }
  const TimeSpent& time_spent() const { return spent_; }
  std::vector<std::pair<std::int64_t, double>> curve() const { return curve_of(trials()); }
  // All `ok` trials, encoded: the support for `adapted`. Its programs must have an encoding.
  meta::Examples examples() { return search_.examples(); }

 private:
  Tuning(Task task, const meta::CostModel* prior, tasks::Measurer& measurer, RunDirectory* run,
         const TuningSettings& settings, std::unique_ptr<Explorer> explorer);
  std::vector<codegen::Candidate> proposal();
  void predict(std::span<const codegen::Candidate> candidates);
  double reserve() const;

  tasks::Measurer& measurer_;
  RunDirectory* run_;  // null: none
  TuningSettings settings_;
  const base::Deadline deadline_;
  AskTell search_;
  TimeSpent spent_;
};

}  // namespace graft::search
