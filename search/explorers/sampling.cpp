#include "search/explorers/sampling.h"

namespace graft::search {
namespace {

constexpr int draws_per_candidate = 100;  // of known candidates in a row before the space counts as used up

}  // namespace

std::vector<codegen::Candidate> Sampling::propose(int count, Scorer&) {
  std::vector<codegen::Candidate> batch;
  for (int failures = 0; int(batch.size()) < count && failures < draws_per_candidate;) {
    codegen::Candidate candidate = space_.sample(stream_);
    if (proposed_.insert(codegen::hash(candidate)).second) {
      batch.push_back(std::move(candidate));
      failures = 0;
    } else {
      ++failures;
    }
  }
  return batch;
}

void Sampling::told(std::span<const datasets::Trial> trials) {
  for (const datasets::Trial& trial : trials) proposed_.insert(codegen::hash(trial.candidate));
}

}  // namespace graft::search
