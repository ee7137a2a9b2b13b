#include "meta/metrics.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/statistics.h"

namespace graft::meta {

double rank_correlation(std::span<const float> scores, std::span<const double> log_seconds) {
  assert(scores.size() == log_seconds.size());
  const std::vector<double> predicted(scores.begin(), scores.end());
  std::vector<double> speed(log_seconds.begin(), log_seconds.end());
  for (double& value : speed) value = -value;
  return base::spearman(predicted, speed);
}

double top_k(std::span<const float> scores, std::span<const double> log_seconds, int k) {
  assert(scores.size() == log_seconds.size() && k >= 1 && !scores.empty());
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  const auto chosen = std::ptrdiff_t(std::min(std::size_t(k), order.size()));
  std::partial_sort(order.begin(), order.begin() + chosen, order.end(), [&](std::size_t a, std::size_t b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  });
  double found = log_seconds[order[0]];
  for (std::ptrdiff_t i = 1; i < chosen; ++i) found = std::min(found, log_seconds[order[std::size_t(i)]]);
  return std::exp(*std::min_element(log_seconds.begin(), log_seconds.end()) - found);
}

double pair_accuracy(std::span<const float> scores, std::span<const double> log_seconds) {
  assert(scores.size() == log_seconds.size());
  std::int64_t pairs = 0;
  double right = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    for (std::size_t j = i + 1; j < scores.size(); ++j) {
      if (log_seconds[i] == log_seconds[j]) continue;
      ++pairs;
      if (scores[i] == scores[j]) {
        right += 0.5;
      } else if ((scores[i] > scores[j]) == (log_seconds[i] < log_seconds[j])) {
        right += 1;
      }
    }
  }
  return pairs == 0 ? 0.5 : right / double(pairs);
}

}  // namespace graft::meta
