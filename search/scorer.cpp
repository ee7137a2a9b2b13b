#include "search/scorer.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/hash.h"
#include "base/shortened.h"

namespace graft::search {
void Scorer::use(const meta::CostModel* model, std::span<const codegen::Candidate> measured) {
  model_ = model;
  context_ = {std::nullopt, base::hash_combine(seed_, std::uint64_t(rounds_++))};
  if (model_ == nullptr || measured.empty() || selection_.acquisition != Acquisition::ei) return;
  const std::vector<float> means = model_->score(encoded(measured)).mean;
  context_.incumbent = *std::max_element(means.begin(), means.end());
}

features::Encoded Scorer::encoded(std::span<const codegen::Candidate> candidates) {
  const auto encodings = programs_.encodings(candidates, threads_);
  features::Encoded all;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (encodings[i] == nullptr)
      throw base::UserError(
          base::shortened(candidates[i].workload.text()),
          "a schedule of sketch " + candidates[i].sketch->name + " does not lower, so there is nothing to encode");
    features::append(all, *encodings[i]);
  }
  return all;
}

std::vector<float> Scorer::scores(std::span<const codegen::Candidate> candidates) {
  return scores(candidates, true);
}

std::vector<float> Scorer::predictions(std::span<const codegen::Candidate> candidates) {
  return scores(candidates, false);
}

std::vector<float> Scorer::scores(std::span<const codegen::Candidate> candidates, bool acquire) {
  std::vector<float> result(candidates.size(), 0.0f);
  if (model_ == nullptr || candidates.empty()) return result;
  const auto encodings = programs_.encodings(candidates, threads_);
  features::Encoded all;
  std::vector<std::size_t> possible;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (encodings[i] == nullptr) {
      result[i] = -std::numeric_limits<float>::infinity();
    } else {
      features::append(all, *encodings[i]);
      possible.push_back(i);
    }
  }
  if (possible.empty()) return result;
  std::vector<float> scores;
  if (acquire && selection_.acquisition != Acquisition::mean) {  // spreads may cost more than the scores
    std::vector<codegen::Candidate> known;
    for (const std::size_t at : possible) known.push_back(candidates[at]);
    scores = acquired(model_->score_with_spread(all), programs(known), context_, selection_);
  } else {
    scores = model_->score(all).mean;
  }
  for (std::size_t k = 0; k < possible.size(); ++k) result[possible[k]] = scores[k];
  return result;
}

}  // namespace graft::search
