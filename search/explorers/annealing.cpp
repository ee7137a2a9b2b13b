#include "search/explorers/annealing.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/parallel.h"
#include "base/statistics.h"

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
    held_.emplace(score, candidate);
    if (held_.size() > most_) held_.erase(held_.begin());
    return true;
  }

  // Best first.
  std::vector<codegen::Candidate> candidates() const {
    std::vector<codegen::Candidate> result;
    for (auto at = held_.rbegin(); at != held_.rend(); ++at) result.push_back(at->second);
    return result;
  }

 private:
  std::size_t most_;
  std::multimap<float, codegen::Candidate> held_;
  std::unordered_set<std::uint64_t> seen_;
};

// Score differences are measured in standard deviations of the first population: models differ in scale.
double scale_of(const std::vector<float>& scores) {
  std::vector<double> finite;
  for (const float score : scores) {
    if (std::isfinite(score)) finite.push_back(double(score));
  }
  const double mean = base::mean(finite);
  double sum = 0;
  for (const double score : finite) sum += (score - mean) * (score - mean);
  const double deviation = finite.empty() ? 0 : std::sqrt(sum / double(finite.size()));
  return deviation > 0 ? deviation : 1;
}

}  // namespace

Annealing::Annealing(const codegen::Space& space, std::uint64_t seed, const AnnealingSettings& settings)
    : space_(space), seed_(seed), settings_(settings), stream_(seed, "annealing") {}

Proposal Annealing::proposal(int count, Scorer& scorer) {
  const std::size_t chains = std::size_t(settings_.chains);
  if (chains_.empty()) {
    for (std::size_t i = 0; i < chains; ++i) chains_.push_back(space_.sample(stream_));
  }
  for (std::size_t i = 0; i < best_measured_.size(); ++i) chains_[chains - 1 - i] = best_measured_[i].candidate;
  const int random = random_of(count, settings_.random_share);
  Best best{std::size_t(count)};
  const auto offer = [&](const codegen::Candidate& candidate, std::uint64_t program, float score) {
    return !proposed_.contains(program) && best.offer(score, program, candidate);
  };

  std::vector<float> scores = scorer.scores(chains_);
  const double scale = scale_of(scores);
  const std::vector<std::uint64_t> programs = scorer.programs(chains_);
  for (std::size_t i = 0; i < chains; ++i) offer(chains_[i], programs[i], scores[i]);
  int unchanged = 0;
  for (int step = 0; step < settings_.steps && unchanged < settings_.patience; ++step) {
    const double temperature = settings_.temperature * (1.0 - double(step) / settings_.steps);
    std::vector<codegen::Candidate> moved(chains);
    base::parallel_for(std::int64_t(chains), scorer.threads(), [&](std::int64_t chain) {
      base::Stream stream(seed_, "annealing.mutate", std::uint64_t(mutations_ + chain));
      const codegen::Candidate& candidate = chains_[std::size_t(chain)];
      base::Result<codegen::Candidate> mutant = space_.mutate(candidate, stream);
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

  Proposal found{best.candidates(), {}};
  if (int(found.chosen.size()) > count - random) found.chosen.resize(std::size_t(count - random));
  const auto take = [&](const codegen::Candidate& candidate) { return proposed_.take(candidate, scorer); };
  for (const codegen::Candidate& candidate : found.chosen) take(candidate);
  fill_at_random(found.others, count - int(found.chosen.size()), space_, stream_, take);
  return found;
}

void Annealing::told(std::span<const datasets::Trial> trials) {
  proposed_.add(trials);
  keep_fastest(best_measured_, trials, std::size_t(settings_.measured_share * settings_.chains));
}

}  // namespace graft::search
