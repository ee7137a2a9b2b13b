#include "search/explorers/support.h"

#include <algorithm>
#include <numeric>

namespace graft::search {
Proposal Support::proposal(int count, Scorer& scorer) {
  std::vector<codegen::Candidate> pool;
  KnownPrograms known = proposed_;
  const int wanted = scorer.has_model() ? count * settings_.pool : count;
  for (int draws = 0; int(pool.size()) < wanted && draws < settings_.draws_per_pooled * wanted; ++draws) {
    codegen::Candidate candidate = space_.sample(stream_, scorer.judge());
    if (known.take(candidate, scorer)) pool.push_back(std::move(candidate));
  }
  Proposal found;
  if (scorer.has_model()) {
    const std::vector<float> scores = scorer.scores(pool);
    std::vector<std::size_t> order(pool.size());
    std::iota(order.begin(), order.end(), std::size_t(0));
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
    const std::size_t take = std::min(order.size(), std::size_t(count));
    for (std::size_t i = 0; i < take; ++i) {
      found.chosen.push_back(pool[order[take == 1 ? 0 : i * (order.size() - 1) / (take - 1)]]);
    }
  } else {
    found.chosen = std::move(pool);
  }
  for (const codegen::Candidate& candidate : found.chosen) proposed_.take(candidate, scorer);
  return found;
}

void Support::told(std::span<const datasets::Trial> trials) {
  proposed_.add(trials);
}

}  // namespace graft::search
