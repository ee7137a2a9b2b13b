#include "study/flows/search_session.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "study/flows/rounds.h"
#include "study/knowledge/history.h"

namespace graft::study {

void SearchSession::begin(const search::TuningSettings& settings, std::unique_ptr<search::Explorer> explorer) {
  tuning_.emplace(search::Task{space_, programs_, borrowed_.platform.name}, borrowed_.model, borrowed_.measurer,
                  borrowed_.run, settings, std::move(explorer));
}

bool SearchSession::run(std::int64_t trials, base::Monitor& monitor) {
  return run_rounds(*tuning_, trials, monitor);
}

bool SearchSession::machine_changed(base::Monitor& monitor) {
  constexpr std::size_t watched = 3;
  std::vector<codegen::Candidate> fastest;
  std::vector<double> before;
  for (const datasets::Trial& trial :
       search::best_trials(borrowed_.run.journal().trials(), space_.workload(), watched)) {
    fastest.push_back(trial.candidate);
    before.push_back(datasets::seconds_of(trial.measurement));
  }
  std::vector<double> now(fastest.size(), std::numeric_limits<double>::quiet_NaN());
  borrowed_.measurer.measure(
      fastest,
      [&](const tasks::Measured& measured) {
        now[std::size_t(measured.position)] = datasets::seconds_of(measured.measurement);
      },
      monitor);
  return is_another_machine(before, now);
}

datasets::Trial SearchSession::best() const {
  std::optional<datasets::Trial> best = tuning_->best();
  if (!best) throw base::Failure(nothing_ok_text(tuning_->trials(), borrowed_.platform, borrowed_.run.path()));
  return std::move(*best);
}

}  // namespace graft::study
