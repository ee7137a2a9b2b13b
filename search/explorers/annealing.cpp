#include "search/explorers/annealing.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/parallel.h"

namespace graft::search {
namespace {

// The best distinct programs seen in a round, a candidate of each.
class Best {
 public:
  explicit Best(std::size_t most) : most_(most) {}

  // True if the candidate got in.
  bool offer(float score, std::uint64_t program, const codegen::Candidate& candidate) {
    if (seen_.contains(program) || program == 0) return false;
    if (held_.size() == most_ && score <= held_.begin()->first) return false;
    seen_.insert(program);
    held_.emplace(score, Scored{candidate, program, score});
    if (held_.size() > most_) held_.erase(held_.begin());
    return true;
  }

  // Best first.
  std::vector<Scored> sorted() const {
    std::vector<Scored> result;
    for (auto at = held_.rbegin(); at != held_.rend(); ++at) result.push_back(at->second);
    return result;
  }

 private:
  std::size_t most_;
  std::multimap<float, Scored> held_;
  std::unordered_set<std::uint64_t> seen_;
};

}  // namespace

Annealing::Annealing(const codegen::Space& space, std::uint64_t seed, const AnnealingSettings& settings,
                     const SelectionSettings& selection)
    : space_(space), seed_(seed), settings_(settings), selection_(selection), stream_(seed, "annealing") {}

Proposal Annealing::proposal(int count, Scorer& scorer) {
  const std::size_t chains = std::size_t(settings_.chains);
  if (chains_.empty()) {
    for (std::size_t i = 0; i < chains; ++i) chains_.push_back(space_.sample(stream_, scorer.judge()));
  }
  for (std::size_t i = 0; i < best_measured_.size(); ++i) chains_[chains - 1 - i] = best_measured_[i].candidate;
  const int random = random_of(count, selection_, proposed_.size());
  Best best{looked_at(std::size_t(count), selection_)};
  const auto offer = [&](const codegen::Candidate& candidate, std::uint64_t program, float score) {
    return !proposed_.contains(program) && best.offer(score, program, candidate);
  };

  std::vector<float> scores = scorer.scores(chains_);
  const double scale = scale_of(scores);  // of score differences
  const std::vector<std::uint64_t> programs = scorer.programs(chains_);
  for (std::size_t i = 0; i < chains; ++i) offer(chains_[i], programs[i], scores[i]);
  int unchanged = 0;
  for (int step = 0; step < settings_.steps && unchanged < settings_.patience; ++step) {
    const double temperature = settings_.temperature * (1.0 - double(step) / settings_.steps);
    std::vector<codegen::Candidate> moved(chains);
    base::parallel_for(std::int64_t(chains), scorer.threads(), [&](std::int64_t chain) {
      base::Stream stream(seed_, "annealing.mutate", std::uint64_t(mutations_ + chain));
      const codegen::Candidate& candidate = chains_[std::size_t(chain)];
      base::Result<codegen::Candidate> mutant = space_.mutate(candidate, stream, scorer.judge());
      moved[std::size_t(chain)] = mutant ? std::move(mutant).value() : candidate;
    });
    mutations_ += std::int64_t(chains);
    const std::vector<float> moved_scores = scorer.scores(moved);
    const std::vector<std::uint64_t> moved_programs = scorer.programs(moved);
    bool changed = false;
    for (std::size_t i = 0; i < chains; ++i) {
      changed |= offer(moved[i], moved_programs[i], moved_scores[i]);
      const double gain = double(moved_scores[i] - scores[i]) / scale;
      const double chance = std::exp(std::min(gain / temperature, 0.0));
      if (stream_.uniform() < chance) {
        chains_[i] = std::move(moved[i]);
        scores[i] = moved_scores[i];
      }
    }
    unchanged = changed ? 0 : unchanged + 1;
  }

  Proposal found;
  const std::vector<Scored> seen = best.sorted();
  for (const std::size_t at : selected(seen, std::size_t(count - random), {}, space_, selection_)) {
    if (proposed_.take(seen[at].program)) found.chosen.push_back(seen[at].candidate);
  }
  const auto take = [&](const codegen::Candidate& candidate) { return proposed_.take(candidate, scorer); };
  fill_at_random(found.others, count - int(found.chosen.size()), space_, stream_, scorer.judge(), take);
  return found;
}

void Annealing::told(std::span<const datasets::Trial> trials) {
  proposed_.add(trials);
  keep_fastest(best_measured_, trials, std::size_t(settings_.measured_share * settings_.chains));
}

}  // namespace graft::search
