#include "search/ask_tell.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "search/run_directory.h"
#include "search/usual_selection.h"

namespace graft::search {
namespace {

// Each once, without those of `others`.
std::vector<codegen::Candidate> distinct(const std::vector<codegen::Candidate>& candidates,
                                         const std::vector<codegen::Candidate>& others = {}) {
  std::vector<codegen::Candidate> once;
  std::unordered_set<std::uint64_t> taken;
  for (const codegen::Candidate& other : others) taken.insert(codegen::hash(other));
  for (const codegen::Candidate& candidate : candidates) {
    if (taken.insert(codegen::hash(candidate)).second) once.push_back(candidate);
  }
  return once;
}

std::vector<codegen::Candidate> joined(std::vector<codegen::Candidate> a, const std::vector<codegen::Candidate>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Moves the first ones of `from` to the batch until it has `count`.
void take(std::vector<codegen::Candidate>& from, int count, std::vector<codegen::Candidate>& batch) {
  const auto end = from.begin() + std::min<std::ptrdiff_t>(std::ssize(from), count - std::ssize(batch));
  batch.insert(batch.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(end));
  from.erase(from.begin(), end);
}

// Units of scores, about ln(speed); chosen on the sources of the shipped model (docs/notebook/2026-11-25-search.md).
// The best of many predictions is too high a one, and a program that was measured elsewhere is as fast as that: it
// competes with proposals as if its score were higher by `measured_bonus`. A moved one whose score is lower than the
// best of all that are known by more than `hopeless_gap` is not worth a trial.
constexpr float measured_bonus = 0.15F, hopeless_gap = 0.3F;

bool knows_others(const meta::CostModel* prior) {
  return prior != nullptr && prior->is_informed();
}

std::vector<std::size_t> highest_first(const std::vector<float>& scores) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  return order;
}

}  // namespace

AskTell::AskTell(Task task, const meta::CostModel* prior, const AskTellSettings& settings,
                 std::unique_ptr<Explorer> explorer)
    : task_(std::move(task)),
      prior_(prior),
      start_(distinct(settings.start)),
      known_(distinct(settings.known, start_)),
      moved_(distinct(settings.moved, joined(start_, known_))),
      scorer_(task_.programs, settings.threads, selection_in(task_.space, knows_others(prior), settings.selection),
              settings.seed),
      explorer_(explorer != nullptr ? std::move(explorer)
                                    : make_explorer(settings.explorer, task_.space, settings.seed, settings.selection)),
      random_(make_explorer("random", task_.space, settings.seed)) {
  assert(prior_ == nullptr || task_.programs.encoding() != nullptr);
  if (knows_others(prior_)) scorer_.use(prior_);
}

std::vector<codegen::Candidate> AskTell::ask(int count) {
  choose_moved();
  learn();
  std::vector<codegen::Candidate> batch;
  take(start_, count, batch);
  const std::size_t first = batch.size();
  take(known_, count, batch);
  take(moved_, count, batch);
  const std::size_t known = batch.size() - first;
  for (const codegen::Candidate& candidate : batch) started_.insert(codegen::hash(candidate));
  const bool guided = scorer_.has_model() || prior_ == nullptr;
  Explorer& explorer = guided ? *explorer_ : *random_;
  for (bool again = true; again && int(batch.size()) < count;) {
    std::vector<codegen::Candidate> proposed = explorer.propose(count - int(batch.size()), scorer_);
    // Explorers know what they proposed and what was told, but not what was to start with.
    again = std::erase_if(proposed, [&](const codegen::Candidate& candidate) {
              return started_.contains(codegen::hash(candidate));
            }) > 0;
    std::move(proposed.begin(), proposed.end(), std::back_inserter(batch));
  }
  if (known > 0) order(std::span(batch).subspan(first), known);
  return batch;
}

void AskTell::choose_moved() {
  if (std::exchange(has_chosen_, true) || moved_.empty() || !scorer_.has_model()) return;
  std::vector<float> scores = scorer_.predictions(joined(moved_, known_));
  const float least = *std::max_element(scores.begin(), scores.end()) - hopeless_gap;
  scores.resize(moved_.size());
  std::vector<codegen::Candidate> worth;
  for (const std::size_t at : highest_first(scores)) {
    if (scores[at] >= least) worth.push_back(std::move(moved_[at]));
  }
  moved_ = std::move(worth);
}

void AskTell::order(std::span<codegen::Candidate> batch, std::size_t known) {
  if (!scorer_.has_model()) return;
  std::vector<float> scores = scorer_.predictions(batch);
  for (std::size_t i = 0; i < known; ++i) scores[i] += measured_bonus;
  std::vector<codegen::Candidate> ordered;
  for (const std::size_t at : highest_first(scores)) ordered.push_back(std::move(batch[at]));
  std::move(ordered.begin(), ordered.end(), batch.begin());
}

void AskTell::tell(std::vector<datasets::Trial> trials) {
  choose_moved();
  std::unordered_set<std::uint64_t> told;
  for (datasets::Trial& trial : trials) {
    trial.index = std::int64_t(trials_.size());
    any_ok_ = any_ok_ || trial.measurement.status == datasets::Status::ok;
    told.insert(codegen::hash(trial.candidate));
    trials_.push_back(trial);
  }
  const auto is_told = [&](const codegen::Candidate& candidate) { return told.contains(codegen::hash(candidate)); };
  for (std::vector<codegen::Candidate>* const waiting : {&start_, &known_, &moved_}) std::erase_if(*waiting, is_told);
  for (const std::uint64_t candidate : told) started_.erase(candidate);
  explorer_->told(trials);
  random_->told(trials);
  learnt_ = learnt_ && trials.empty();
}

void AskTell::learn() {
  if (prior_ == nullptr || std::exchange(learnt_, true)) return;
  std::vector<meta::Examples> support = history_;
  support.push_back(examples());
  if (support.back().size() < 2) return;
  model_ = prior_->adapted(support);
  scorer_.use(model_.get(), ok_candidates());
}

void AskTell::remember(std::span<const std::vector<datasets::Trial>> runs) {
  assert(trials_.empty() && history_.empty());
  if (prior_ == nullptr) return;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    meta::Examples before = examples_of(runs[r]);
    if (before.size() < 2) continue;
    before.workload = codegen::Workload(before.workload.text() +
                                        fmt::format(" before {}", r));  // models compare programs within a group
    history_.push_back(std::move(before));
  }
  if (history_.empty()) return;
  model_ = prior_->adapted(history_);
  if (model_->is_informed()) scorer_.use(model_.get());
}

std::optional<datasets::Trial> AskTell::best() const {
  return best_trial(trials_, task_.space.workload());
}

std::vector<codegen::Candidate> AskTell::ok_candidates() const {
  std::vector<codegen::Candidate> candidates;
  for (const datasets::Trial& trial : trials_) {
    if (trial.measurement.status == datasets::Status::ok) candidates.push_back(trial.candidate);
  }
  return candidates;
}

meta::Examples AskTell::examples() {
  return examples_of(trials_);
}

meta::Examples AskTell::examples_of(std::span<const datasets::Trial> trials) {
  assert(task_.programs.encoding() != nullptr);
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
