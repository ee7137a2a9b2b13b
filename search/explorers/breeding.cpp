#include "search/explorers/breeding.h"

#include <algorithm>
#include <cmath>

namespace graft::search {
Proposal Breeding::proposal(int count, Scorer& scorer) {
  const std::int64_t parents = std::int64_t(fastest_.size());
  const int children = parents == 0 ? 0 : int(std::lround(settings_.share * count));
  Proposal found;
  for (int tries = 0; int(found.chosen.size()) < children && tries < children * settings_.tries_for_a_child; ++tries) {
    const auto parent = [&]() -> const codegen::Candidate& {
      return fastest_[std::size_t(std::min(stream_.below(parents), stream_.below(parents)))].candidate;
    };
    const codegen::Candidate& mother = parent();
    auto child = stream_.uniform() < settings_.crossover_share
                     ? space_.crossover(mother, parent(), stream_, scorer.judge())
                     : space_.mutate(mother, stream_, scorer.judge());
    if (child && proposed_.insert(codegen::hash(*child)).second) found.chosen.push_back(std::move(child).value());
  }
  fill_at_random(found.others, count - int(found.chosen.size()), space_, stream_, scorer.judge(), proposed_);
  return found;
}

void Breeding::told(std::span<const datasets::Trial> trials) {
  for (const datasets::Trial& trial : trials) proposed_.insert(codegen::hash(trial.candidate));
  keep_fastest(fastest_, trials, std::size_t(settings_.parents));
}

}  // namespace graft::search
