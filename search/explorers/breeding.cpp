#include "search/explorers/breeding.h"

#include <algorithm>
#include <cmath>

namespace graft::search {
namespace {

constexpr std::size_t most_parents = 32;
constexpr double crossover_share = 0.25;  // of the children
constexpr int tries_for_a_child = 20;

}  // namespace

Proposal Breeding::proposal(int count, Scorer&) {
  const std::int64_t parents = std::int64_t(fastest_.size());
  const int children = parents == 0 ? 0 : int(std::lround(share_ * count));
  Proposal found;
  for (int tries = 0; int(found.chosen.size()) < children && tries < children * tries_for_a_child; ++tries) {
    const auto parent = [&]() -> const codegen::Candidate& {
      return fastest_[std::size_t(std::min(stream_.below(parents), stream_.below(parents)))].candidate;
    };
    const codegen::Candidate& mother = parent();
    auto child = stream_.uniform() < crossover_share ? space_.crossover(mother, parent(), stream_)
                                                     : space_.mutate(mother, stream_);
    if (child && proposed_.insert(codegen::hash(*child)).second) found.chosen.push_back(std::move(child).value());
  }
  fill_at_random(found.others, count - int(found.chosen.size()), space_, stream_, proposed_);
  return found;
}

void Breeding::told(std::span<const datasets::Trial> trials) {
  for (const datasets::Trial& trial : trials) proposed_.insert(codegen::hash(trial.candidate));
  keep_fastest(fastest_, trials, most_parents);
}

}  // namespace graft::search
