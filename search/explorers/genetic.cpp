#include "search/explorers/genetic.h"

#include <algorithm>

#include "search/chances.h"
#include "search/point.h"

namespace graft::search {

Genetic::Genetic(const codegen::Space& space, std::uint64_t seed, const GeneticSettings& settings)
    : space_(space), settings_(settings), stream_(seed, "genetic") {}

codegen::Candidate Genetic::child(Scorer& scorer) {
  const auto parent = [&]() -> const codegen::Candidate& { return parents_[drawn(chances_, stream_)].candidate; };
  const codegen::Candidate& mother = parent();
  const base::Result<codegen::Candidate> crossed = space_.crossover(mother, parent(), stream_, scorer.judge());
  const codegen::Candidate& plain = crossed ? *crossed : mother;
  std::optional<Point> point = point_of(plain, space_);
  if (!point) return plain;
  const std::vector<codegen::Domain>& domains = space_.sketches()[point->sketch].domains;
  for (std::size_t d = 0; d < domains.size(); ++d) {
    if (stream_.uniform() < settings_.mutation)
      point->rows[d] = std::size_t(stream_.below(std::int64_t(domains[d].values.size())));
  }
  return candidate_at(*point, space_);
}

void Genetic::breed(Scorer& scorer) {
  parents_ = std::move(generation_);
  generation_.clear();
  std::erase_if(parents_, [&](const datasets::Trial& parent) {
    return std::any_of(elites_.begin(), elites_.end(),
                       [&](const datasets::Trial& elite) { return elite.program_hash == parent.program_hash; });
  });
  keep_fastest(parents_, elites_, parents_.size() + elites_.size());
  chances_.clear();
  for (std::size_t rank = 0; rank < parents_.size(); ++rank) chances_.push_back(1 / double(1 + rank));
  if (!chances_.empty()) normalise(chances_);
  while (!parents_.empty() && int(unborn_.size()) < settings_.population) {
    int tries = 0;
    for (; tries < settings_.tries_for_a_child; ++tries) {
      const base::Result<codegen::Candidate> candidate = space_.admitted(child(scorer), scorer.judge());
      if (!candidate || !proposed_.take(*candidate, scorer)) continue;
      unborn_.push_back(*candidate);
      break;
    }
    if (tries < settings_.tries_for_a_child) continue;
    const std::size_t before = unborn_.size();
    fill_at_random(unborn_, int(before) + 1, space_, stream_, scorer.judge(),
                   [&](const codegen::Candidate& candidate) { return proposed_.take(candidate, scorer); });
    if (unborn_.size() == before) break;  // the space is used up
  }
  std::reverse(unborn_.begin(), unborn_.end());
}

Proposal Genetic::proposal(int count, Scorer& scorer) {
  Proposal found;
  while (int(found.others.size()) < count) {
    if (unborn_.empty() && int(generation_.size()) >= settings_.population) breed(scorer);
    if (unborn_.empty()) break;
    found.others.push_back(std::move(unborn_.back()));
    unborn_.pop_back();
  }
  // The first generation, and in place of what failed.
  fill_at_random(found.others, count, space_, stream_, scorer.judge(),
                 [&](const codegen::Candidate& candidate) { return proposed_.take(candidate, scorer); });
  return found;
}

void Genetic::told(std::span<const datasets::Trial> trials) {
  proposed_.add(trials);
  keep_fastest(generation_, trials, generation_.size() + trials.size());
  keep_fastest(elites_, trials, std::size_t(settings_.elites));
}

}  // namespace graft::search
