#include "search/tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "base/duration.h"

namespace graft::search {
namespace {

// Adds the time until it goes.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds), begin_(std::chrono::steady_clock::now()) {}
  ~Stopwatch() { seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& seconds_;
  std::chrono::steady_clock::time_point begin_;
};

// Infinite for what is not ok.
double ok_seconds(const datasets::Trial& trial) {
  const bool ok = trial.measurement.status == datasets::Status::ok;
  return ok ? datasets::seconds_of(trial.measurement) : std::numeric_limits<double>::infinity();
}

// Asks to stop when the time is up, too.
class UntilMonitor final : public base::Monitor {
 public:
  UntilMonitor(base::Monitor& to, const Tuning& tuning) : to_(to), tuning_(tuning) {}
  void progress(std::string_view what, std::int64_t done, std::int64_t total) override {
    to_.progress(what, done, total);
  }
  void note(std::string_view line) override { to_.note(line); }
  bool stop_requested() override { return to_.stop_requested() || tuning_.out_of_time(); }

 private:
  base::Monitor& to_;
  const Tuning& tuning_;
};

}  // namespace

Tuning::Tuning(Task task, const meta::CostModel* prior, tasks::Measurer& measurer, RunDirectory* run,
               const TuningSettings& settings, std::unique_ptr<Explorer> explorer)
    : task_(std::move(task)),
      prior_(prior),
      measurer_(measurer),
      run_(run),
      settings_(settings),
      // Whatever encoding, where nobody looks: candidates are lowered and hashed all the same.
      scorer_(task_.encoding == nullptr ? features::encodings().front() : *task_.encoding, task_.space.target(),
              settings.threads, settings.selection, settings.seed),
      explorer_(explorer != nullptr ? std::move(explorer)
                                    : make_explorer(settings.explorer, task_.space, settings.seed, settings.selection)),
      random_(make_explorer("random", task_.space, settings.seed)) {
  assert(prior_ == nullptr || task_.encoding != nullptr);
  if (prior_ != nullptr && prior_->is_informed()) scorer_.use(prior_);
}

bool Tuning::step(base::Monitor& monitor) {
  const std::int64_t left = settings_.trials - std::int64_t(trials_.size());
  UntilMonitor until(monitor, *this);
  if (left <= 0 || hopeless() || settled() || until.stop_requested()) return false;
  // Always a whole batch, cut to what is left: a run that goes on later with more trials proposes the same ones again.
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
  std::int64_t done = std::int64_t(trials_.size() + batch.size() - unknown.size());
  if (!unknown.empty()) {
    const Stopwatch watch(spent_.measuring);
    double fastest = std::numeric_limits<double>::infinity();
    for (const datasets::Trial& trial : trials_) fastest = std::min(fastest, ok_seconds(trial));
    measurer_.measure(
        unknown,
        [&](const tasks::Measured& measured) {
          const std::size_t at = position[std::size_t(measured.position)];
          datasets::Trial trial{0, batch[at], measured.program_hash, measured.measurement};
          if (run_ != nullptr) run_->append(trial);
          answers[at] = std::move(trial);
          ++spent_.measured;
          fastest = std::min(fastest, ok_seconds(*answers[at]));
          monitor.progress(fmt::format("{}\tbest {}", task_.space.workload().text, base::seconds_text(fastest)), ++done,
                           settings_.trials);
        },
        until);
  }
  std::vector<datasets::Trial> told;
  bool complete = true;
  for (std::optional<datasets::Trial>& answer : answers) {
    if (!answer) {
      complete = false;  // stopped in between
      continue;
    }
    answer->index = std::int64_t(trials_.size());
    any_ok_ = any_ok_ || answer->measurement.status == datasets::Status::ok;
    told.push_back(*answer);
    trials_.push_back(std::move(*answer));
  }
  explorer_->told(told);
  random_->told(told);
  if (!complete) return false;
  if (prior_ != nullptr && std::int64_t(trials_.size()) < settings_.trials) learn();
  return true;
}

bool Tuning::hopeless() const {
  return !any_ok_ && std::int64_t(trials_.size()) >= least_to_judge;
}

bool Tuning::settled() const {
  const auto count = std::int64_t(trials_.size());
  if (settings_.stop_after <= 0 || count <= settings_.stop_after) return false;
  double before = std::numeric_limits<double>::infinity(), since = before;
  for (std::int64_t i = 0; i < count; ++i) {
    double& best = i < count - settings_.stop_after ? before : since;
    best = std::min(best, ok_seconds(trials_[std::size_t(i)]));
  }
  return std::isfinite(before) && since > (1 - least_gain) * before;
}

bool Tuning::out_of_time() const {
  return settings_.budget_seconds > 0 &&
         std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count() >= settings_.budget_seconds;
}

std::vector<codegen::Candidate> Tuning::proposal() {
  const Stopwatch watch(spent_.proposing);
  std::vector<codegen::Candidate> batch;
  std::unordered_set<std::uint64_t> taken;
  const auto take = [&](std::vector<codegen::Candidate> candidates) {
    for (codegen::Candidate& candidate : candidates) {
      if (taken.insert(codegen::hash(candidate)).second) batch.push_back(std::move(candidate));
    }
  };
  if (trials_.empty()) take(settings_.start);
  const int left = settings_.batch - int(batch.size());
  const bool guided = scorer_.has_model() || prior_ == nullptr;
  if (left > 0) take((guided ? *explorer_ : *random_).propose(left, scorer_));
  return batch;
}

void Tuning::learn() {
  const Stopwatch watch(spent_.learning);
  std::vector<meta::Examples> support = history_;
  support.push_back(examples());
  if (support.back().size() < 2) return;
  model_ = prior_->adapted(support);
  scorer_.use(model_.get(), ok_candidates());
}

void Tuning::remember(std::span<const std::vector<datasets::Trial>> runs) {
  assert(trials_.empty() && history_.empty());
  if (prior_ == nullptr) return;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    meta::Examples before = examples_of(runs[r]);
    if (before.size() < 2) continue;
    before.workload.text += fmt::format(" before {}", r);  // models compare programs within a group
    history_.push_back(std::move(before));
  }
  if (history_.empty()) return;
  model_ = prior_->adapted(history_);
  if (model_->is_informed()) scorer_.use(model_.get());
}

std::optional<datasets::Trial> Tuning::best() const {
  return best_trial(trials_, task_.space.workload());
}

std::vector<std::pair<std::int64_t, double>> Tuning::curve() const {
  std::vector<std::pair<std::int64_t, double>> points;
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < trials_.size(); ++i) {
    const datasets::Measurement& measurement = trials_[i].measurement;
    const bool improves = measurement.status == datasets::Status::ok && datasets::seconds_of(measurement) < best;
    if (improves) best = datasets::seconds_of(measurement);
    const bool last = i + 1 == trials_.size() && std::isfinite(best);
    if (improves || (last && points.back().first != std::int64_t(i) + 1))
      points.emplace_back(std::int64_t(i) + 1, best);
  }
  return points;
}

std::vector<codegen::Candidate> Tuning::ok_candidates() const {
  std::vector<codegen::Candidate> candidates;
  for (const datasets::Trial& trial : trials_) {
    if (trial.measurement.status == datasets::Status::ok) candidates.push_back(trial.candidate);
  }
  return candidates;
}

meta::Examples Tuning::examples() {
  return examples_of(trials_);
}

meta::Examples Tuning::examples_of(std::span<const datasets::Trial> trials) {
  assert(task_.encoding != nullptr);
  meta::Examples examples;
  examples.platform = task_.platform;
  examples.workload = trials.empty() ? task_.space.workload() : trials.front().candidate.workload;
  std::vector<codegen::Candidate> candidates;
  for (const datasets::Trial& trial : trials) {
    if (trial.measurement.status != datasets::Status::ok) continue;
    candidates.push_back(trial.candidate);
    examples.log_seconds.push_back(std::log(datasets::seconds_of(trial.measurement)));
    examples.program_hashes.push_back(trial.program_hash);
  }
  examples.features = scorer_.encoded(candidates);
  return examples;
}

}  // namespace graft::search
