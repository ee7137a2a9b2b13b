#include "search/scorer.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/hash.h"
#include "base/shortened.h"

namespace graft::search {
namespace {

// Spreads cost more than scores, by the square of what was measured: only these have them, the highest by score.
constexpr std::size_t most_spreads = 512;

// Positions of the highest, in descending order; all in their own order where there are no more than that.
std::vector<std::int64_t> highest_of(const std::vector<float>& scores, std::size_t count) {
  std::vector<std::int64_t> order(count);
  std::iota(order.begin(), order.end(), std::int64_t(0));
  if (count <= most_spreads) return order;
  const auto end = order.begin() + std::ptrdiff_t(most_spreads);
  std::partial_sort(order.begin(), end, order.end(), [&](std::int64_t a, std::int64_t b) {
    const float left = scores[std::size_t(a)], right = scores[std::size_t(b)];
    return left > right || (left == right && a < b);
  });
  order.erase(end, order.end());
  return order;
}

}  // namespace

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
  if (!acquire || selection_.acquisition == Acquisition::mean || possible.size() > most_spreads)
    scores = model_->score(all).mean;
  if (acquire && selection_.acquisition != Acquisition::mean) {
    const std::vector<std::int64_t> highest = highest_of(scores, possible.size());
    std::vector<codegen::Candidate> known;
    for (const std::int64_t at : highest) known.push_back(candidates[possible[std::size_t(at)]]);
    const bool of_all = highest.size() == possible.size();
    const meta::Scores with_spread = model_->score_with_spread(of_all ? all : features::chosen(all, highest));
    const std::vector<float> values = acquired(with_spread, programs(known), context_, selection_);
    // The others come after these, in the order of their scores.
    const float lowest = *std::min_element(values.begin(), values.end());
    const float best_of_others = of_all ? 0 : scores[std::size_t(highest.back())];
    for (float& score : scores) score = lowest + std::min(0.0f, score - best_of_others) - 1;
    scores.resize(possible.size());
    for (std::size_t k = 0; k < highest.size(); ++k) scores[std::size_t(highest[k])] = values[k];
  }
  for (std::size_t k = 0; k < possible.size(); ++k) result[possible[k]] = scores[k];
  return result;
}

}  // namespace graft::search
