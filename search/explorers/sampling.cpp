#include "search/explorers/sampling.h"

namespace graft::search {
std::vector<codegen::Candidate> Sampling::propose(int count, Scorer&) {
  std::vector<codegen::Candidate> batch;
  fill_at_random(batch, count, space_, stream_, proposed_);
  return batch;
}

void Sampling::told(std::span<const datasets::Trial> trials) {
  for (const datasets::Trial& trial : trials) proposed_.insert(codegen::hash(trial.candidate));
}

}  // namespace graft::search
