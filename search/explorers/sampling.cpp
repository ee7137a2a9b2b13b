#include "search/explorers/sampling.h"

namespace graft::search {

Proposal Sampling::proposal(int count, Scorer& scorer) {
  Proposal found;
  fill_at_random(found.others, count, space_, stream_, scorer.judge(), proposed_);
  return found;
}

void Sampling::told(std::span<const datasets::Trial> trials) {
  for (const datasets::Trial& trial : trials) proposed_.insert(codegen::hash(trial.candidate));
}

}  // namespace graft::search
