#include "search/explorers/evolution.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "base/parallel.h"
#include "search/point.h"

namespace graft::search {
Evolution::Evolution(const codegen::Space& space, std::uint64_t seed, const EvolutionSettings& settings,
                     const SelectionSettings& selection)
    : space_(space),
      seed_(seed),
      settings_(settings),
      selection_(selection),
      stream_(seed, "evolution"),
      arms_(space.sketches().size()) {
  if (is_of_tables(space) && space.size() <= double(settings.most_rows)) rows_ = space.listed();
}

bool Evolution::is_open(const Arm& arm) const {
  if (arm.trials < settings_.first_looks) return true;
  std::int64_t all = 0;
  double fastest = arm.seconds;
  for (const Arm& each : arms_) {
    all += each.trials;
    fastest = std::min(fastest, each.seconds);
  }
  if (!std::isfinite(fastest)) return true;  // nothing is ok: none is worse than another
  return std::log(arm.seconds / fastest) <= settings_.optimism * std::sqrt(std::log(double(all)) / double(arm.trials));
}

std::size_t Evolution::parent(std::size_t count, base::Stream& stream) const {
  std::int64_t best = stream.below(std::int64_t(count));
  for (int draw = 1; draw < settings_.parent_draws; ++draw) best = std::min(best, stream.below(std::int64_t(count)));
  return std::size_t(best);
}

std::vector<Scored> Evolution::bred(const std::vector<codegen::Candidate>& first, int generations, Scorer& scorer) {
  const std::size_t size = first.size();
  std::vector<Scored> seen;
  KnownPrograms known;
  const auto look = [&](const std::vector<codegen::Candidate>& candidates) {
    const std::vector<float> scores = scorer.scores(candidates);
    const std::vector<std::uint64_t> programs = scorer.programs(candidates);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (known.take(programs[i])) seen.push_back({candidates[i], programs[i], scores[i]});
    }
    // Equal scores stay in the order in which they came.
    std::stable_sort(seen.begin(), seen.end(), [](const Scored& a, const Scored& b) { return a.score > b.score; });
  };
  look(first);
  for (int generation = 0; generation < generations; ++generation) {
    const std::size_t parents = std::min(seen.size(), size);
    std::vector<codegen::Candidate> children(size);
    base::parallel_for(std::int64_t(size), scorer.threads(), [&](std::int64_t child) {
      base::Stream stream(round_, "evolution.child", std::uint64_t(children_ + child));
      const codegen::Candidate& mother = seen[parent(parents, stream)].candidate;
      if (stream.uniform() < settings_.crossover_share) {
        const codegen::Candidate& father = seen[parent(parents, stream)].candidate;
        if (auto crossed = space_.crossover(mother, father, stream, scorer.judge())) {
          children[std::size_t(child)] = std::move(crossed).value();
          return;
        }
      }
      base::Result<codegen::Candidate> mutant = space_.mutate(mother, stream, scorer.judge());
      children[std::size_t(child)] = mutant ? std::move(mutant).value() : mother;
    });
    children_ += std::int64_t(size);
    look(children);
  }
  return seen;
}

std::vector<Scored> Evolution::population(Scorer& scorer) {
  if (!rows_.empty()) return bred(rows_, 0, scorer);
  std::vector<codegen::Candidate> first;
  for (const datasets::Trial& trial : best_measured_) first.push_back(trial.candidate);
  while (int(first.size()) < settings_.population) first.push_back(space_.sample(stream_, scorer.judge()));
  return bred(first, settings_.generations, scorer);
}

std::vector<codegen::Candidate> Evolution::restarted(int count, const std::vector<Scored>& seen) {
  std::vector<codegen::Candidate> chosen, known;
  for (const datasets::Trial& trial : best_measured_) {
    if (int(known.size()) < settings_.unlike) known.push_back(trial.candidate);
  }
  for (const Scored& one : seen) {
    if (int(chosen.size()) == count) break;
    const auto is_near = [&](const codegen::Candidate& other) {
      return space_.choices_apart(one.candidate, other) < settings_.least_difference;
    };
    if (std::any_of(known.begin(), known.end(), is_near) || !proposed_.take(one.program)) continue;
    known.push_back(one.candidate);
    chosen.push_back(one.candidate);
  }
  return chosen;
}

std::vector<codegen::Candidate> Evolution::neighbours(int count, const std::vector<Scored>& seen) {
  std::vector<codegen::Candidate> chosen;
  if (best_measured_.empty()) return chosen;
  for (const Scored& one : seen) {
    if (int(chosen.size()) == count) break;
    if (space_.choices_apart(one.candidate, best_measured_.front().candidate) == 1 && proposed_.take(one.program))
      chosen.push_back(one.candidate);
  }
  return chosen;
}

Evolution::Parts Evolution::parts_of(int count, const Scorer& scorer) const {
  if (count == 1) {
    // A place of a batch, whose last ones are random.
    const Parts batch = parts_of(least_batch, scorer);
    const int from_end = int(least_batch - proposed_.size() % least_batch);
    const bool is_random = from_end <= batch.random;
    const bool is_near = !is_random && from_end <= batch.random + batch.near;
    return {int(!is_random && !is_near && from_end <= batch.all()), int(is_near), int(is_random)};
  }
  Parts parts{0, 0, random_of(count, selection_)};
  if (!scorer.has_model()) return parts;
  parts.restarts = int(settings_.restart_share * count);
  if (!rows_.empty() && !scorer.compares_by_mean()) parts.near = int(settings_.near_share * count);
  return parts;
}

Proposal Evolution::proposal(int count, Scorer& scorer) {
  round_ = base::hash_combine(base::hash_combine(seed_, std::uint64_t(told_)), std::uint64_t(asked_since_++));
  stream_ = base::Stream(round_, "evolution");
  children_ = 0;
  const Parts parts = parts_of(count, scorer);
  const std::vector<Scored> seen = population(scorer);
  std::vector<codegen::Candidate> restarts;  // and neighbours
  if (parts.restarts > 0 && rows_.empty()) {
    std::vector<codegen::Candidate> first;
    for (int i = 0; i < settings_.population; ++i) first.push_back(space_.sample(stream_, scorer.judge()));
    restarts = restarted(parts.restarts, bred(first, settings_.generations, scorer));
  } else {
    restarts = restarted(parts.restarts, seen);
    const std::vector<codegen::Candidate> near = neighbours(parts.near, seen);
    restarts.insert(restarts.end(), near.begin(), near.end());
  }
  const int believed = std::max(0, count - parts.random - int(restarts.size()));

  Proposal found;
  std::vector<codegen::Candidate>& batch = found.chosen;
  // Every open sketch keeps a share: of one that a model has seen little of, it would never ask to see more.
  const int sketches = int(space_.sketches().size());
  for (int s = 0; s < sketches; ++s) {
    const codegen::SketchSpace& sketch = space_.sketches()[std::size_t(s)];
    int left = sketches > 1 && is_open(arms_[std::size_t(s)]) ? int(settings_.sketch_share * count) / sketches : 0;
    for (const Scored& one : seen) {
      if (left == 0) break;
      if (int(batch.size()) >= believed || !(*one.candidate.sketch == *sketch.sketch)) continue;
      if (!proposed_.take(one.program)) continue;
      batch.push_back(one.candidate);
      --left;
    }
  }
  std::vector<Scored> open;
  for (const Scored& one : seen) {
    if (!proposed_.contains(one.program)) open.push_back(one);
  }
  const std::vector<codegen::Candidate> given = batch;
  const std::size_t left = std::size_t(believed) - given.size();
  for (const std::size_t at : selected(open, left, given, space_, selection_)) {
    if (proposed_.take(open[at].program)) batch.push_back(open[at].candidate);
  }
  batch.insert(batch.end(), restarts.begin(), restarts.end());
  fill_at_random(found.others, count - int(batch.size()), space_, stream_, scorer.judge(),
                 [&](const codegen::Candidate& candidate) { return proposed_.take(candidate, scorer); });
  return found;
}

void Evolution::told(std::span<const datasets::Trial> trials) {
  proposed_.add(trials);
  told_ += std::int64_t(trials.size());
  if (!trials.empty()) asked_since_ = 0;
  for (const datasets::Trial& trial : trials) {
    for (std::size_t s = 0; s < arms_.size(); ++s) {
      if (!(*space_.sketches()[s].sketch == *trial.candidate.sketch)) continue;
      ++arms_[s].trials;
      if (trial.measurement.status == datasets::Status::ok)
        arms_[s].seconds = std::min(arms_[s].seconds, datasets::seconds_of(trial.measurement));
    }
  }
  keep_fastest(best_measured_, trials, std::size_t(settings_.measured_share * double(settings_.population)));
}

}  // namespace graft::search
