#include "search/tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/duration.h"
#include "base/statistics.h"

namespace graft::search {
namespace {

// Adds the time until it goes.
class Adding {
 public:
  explicit Adding(double& seconds) : seconds_(seconds) {}
  ~Adding() { seconds_ += watch_.seconds(); }
  Adding(const Adding&) = delete;
  Adding& operator=(const Adding&) = delete;

 private:
  double& seconds_;
  const base::Stopwatch watch_;
};

// Infinite if not ok.
double ok_seconds(const datasets::Trial& trial) {
  const bool ok = trial.measurement.status == datasets::Status::ok;
  return ok ? datasets::seconds_of(trial.measurement) : std::numeric_limits<double>::infinity();
}

struct Line {
  double x = 0, y = 0, slope = 0;  // through (x, y)
};

// The line of least squares; nothing for one that does not fall. Of scores and log times that means that the model has
// the order wrong, and its scores tell no time.
std::optional<Line> falling_line(const std::vector<double>& x, const std::vector<double>& y) {
  if (x.size() < 2) return std::nullopt;
  Line line{base::mean(x), base::mean(y), 0};
  double together = 0, alone = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    together += (x[i] - line.x) * (y[i] - line.y);
    alone += (x[i] - line.x) * (x[i] - line.x);
  }
  if (!(alone > 0) || !(together < 0)) return std::nullopt;
  line.slope = together / alone;
  return line;
}

}  // namespace

Tuning::Tuning(Task task, const meta::CostModel* prior, tasks::Measurer& measurer, RunDirectory* run,
               const TuningSettings& settings, std::unique_ptr<Explorer> explorer)
    : measurer_(measurer),
      run_(run),
      settings_(settings),
      deadline_(settings.budget_seconds),
      search_(std::move(task), prior, settings, std::move(explorer)) {}

bool Tuning::step(base::Monitor& monitor) {
  const std::int64_t left = settings_.trials - std::int64_t(trials().size());
  base::UntilMonitor until(monitor, deadline_, reserve());
  if (left <= 0 || hopeless() || settled() || until.stop_requested()) return false;
  // Always a whole batch, cut to the remaining budget: a run that continues later with more trials proposes the same
  // ones again.
  std::vector<codegen::Candidate> batch = proposal();
  if (std::int64_t(batch.size()) > left) batch.resize(std::size_t(left));
  if (batch.empty()) return false;

  // Recorded trials answer; the others are measured, journaled one by one, and all are told in the order of the batch.
  std::vector<std::optional<datasets::Trial>> answers(batch.size());
  std::vector<codegen::Candidate> unknown;
  std::vector<std::size_t> position;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const datasets::Trial* const known = run_ == nullptr ? nullptr : run_->recorded(codegen::hash(batch[i]));
    if (known != nullptr) {
      answers[i] = *known;
    } else {
      position.push_back(i);
      unknown.push_back(batch[i]);
    }
  }
  std::int64_t done = std::int64_t(trials().size() + batch.size() - unknown.size());
  if (!unknown.empty()) {
    predict(unknown);
    const Adding watch(spent_.measuring);
    double fastest = std::numeric_limits<double>::infinity();
    for (const datasets::Trial& trial : trials()) fastest = std::min(fastest, ok_seconds(trial));
    measurer_.measure(
        unknown,
        [&](const tasks::Measured& measured) {
          const std::size_t at = position[std::size_t(measured.position)];
          datasets::Trial trial{0, batch[at], measured.program_hash, measured.measurement};
          if (run_ != nullptr) run_->append(trial);
          answers[at] = std::move(trial);
          ++spent_.measured;
          fastest = std::min(fastest, ok_seconds(*answers[at]));
          monitor.progress(
              fmt::format("{}\tbest {}", search_.task().space.workload().text(), base::seconds_text(fastest)), ++done,
              settings_.trials);
        },
        until);
  }
  std::vector<datasets::Trial> told;
  for (std::optional<datasets::Trial>& answer : answers) {
    if (answer) told.push_back(std::move(*answer));
  }
  const bool complete = told.size() == answers.size();  // not stopped in between
  search_.tell(std::move(told));
  if (complete && std::int64_t(trials().size()) < settings_.trials) {
    const Adding watch(spent_.learning);
    search_.learn();
  }
  return complete;
}

bool Tuning::hopeless() const {
  return !search_.any_ok() && std::int64_t(trials().size()) >= least_to_judge;
}

bool Tuning::settled() const {
  const auto count = std::int64_t(trials().size());
  if (settings_.stop_after <= 0 || count <= settings_.stop_after) return false;
  double before = std::numeric_limits<double>::infinity(), since = before;
  for (std::int64_t i = 0; i < count; ++i) {
    double& best = i < count - settings_.stop_after ? before : since;
    best = std::min(best, ok_seconds(trials()[std::size_t(i)]));
  }
  return std::isfinite(before) && since > (1 - least_gain) * before;
}

double Tuning::reserve() const {
  return std::min(most_for_later * settings_.budget_seconds, settings_.later_trials * seconds_per_trial());
}

std::vector<codegen::Candidate> Tuning::proposal() {
  const Adding watch(spent_.proposing);
  return search_.ask(std::max(settings_.batch, int(search_.waiting())));  // all to start with in the first round
}

// Records what the model expects of what is about to be measured. A score becomes a time by the line through the scores
// and log times of what was measured before.
void Tuning::predict(std::span<const codegen::Candidate> candidates) {
  if (run_ == nullptr || !search_.is_informed()) return;
  const Adding watch(spent_.learning);
  std::vector<codegen::Candidate> measured;
  std::vector<double> log_seconds;
  for (const datasets::Trial& trial : trials()) {
    if (trial.measurement.status != datasets::Status::ok) continue;
    measured.push_back(trial.candidate);
    log_seconds.push_back(std::log(datasets::seconds_of(trial.measurement)));
  }
  std::vector<double> scores;
  for (const float score : search_.predictions(measured)) scores.push_back(score);
  const std::optional<Line> line = falling_line(scores, log_seconds);
  const std::vector<float> predicted = search_.predictions(candidates);
  Predictions predictions;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (!std::isfinite(predicted[i])) continue;
    Prediction& prediction = predictions[codegen::hash(candidates[i])];
    prediction.score = predicted[i];
    if (line) prediction.seconds = std::exp(line->y + line->slope * (predicted[i] - line->x));
  }
  run_->record_predictions(predictions);
}

std::vector<std::pair<std::int64_t, double>> curve_of(std::span<const datasets::Trial> trials) {
  std::vector<std::pair<std::int64_t, double>> points;
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const datasets::Measurement& measurement = trials[i].measurement;
    const bool improves = measurement.status == datasets::Status::ok && datasets::seconds_of(measurement) < best;
    if (improves) best = datasets::seconds_of(measurement);
    const bool last = i + 1 == trials.size() && std::isfinite(best);
    if (improves || (last && points.back().first != std::int64_t(i) + 1))
      points.emplace_back(std::int64_t(i) + 1, best);
  }
  return points;
}

}  // namespace graft::search
