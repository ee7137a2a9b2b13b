#include "meta/metrics.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/statistics.h"

namespace graft::meta {

namespace {

std::vector<double> speeds(std::span<const double> log_seconds) {
  std::vector<double> out(log_seconds.begin(), log_seconds.end());
  for (double& value : out) value = -value;
  return out;
}

// Positions by falling score; the first `count` of them in order.
std::vector<std::size_t> predicted_order(std::span<const float> scores, std::size_t count) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::partial_sort(
      order.begin(), order.begin() + std::ptrdiff_t(count), order.end(),
      [&](std::size_t a, std::size_t b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; });
  return order;
}

}  // namespace

double rank_correlation(std::span<const float> scores, std::span<const double> log_seconds) {
  assert(scores.size() == log_seconds.size());
  return base::spearman(std::vector<double>(scores.begin(), scores.end()), speeds(log_seconds));
}

double rank_concordance(std::span<const float> scores, std::span<const double> log_seconds) {
  assert(scores.size() == log_seconds.size());
  return base::kendall(std::vector<double>(scores.begin(), scores.end()), speeds(log_seconds));
}

double top_k(std::span<const float> scores, std::span<const double> log_seconds, int k) {
  assert(scores.size() == log_seconds.size() && k >= 1 && !scores.empty());
  const std::size_t count = std::min(std::size_t(k), scores.size());
  const std::vector<std::size_t> order = predicted_order(scores, count);
  double found = log_seconds[order[0]];
  for (std::size_t i = 1; i < count; ++i) found = std::min(found, log_seconds[order[i]]);
  return std::exp(*std::min_element(log_seconds.begin(), log_seconds.end()) - found);
}

std::int64_t trials_to(std::span<const float> scores, std::span<const double> log_seconds, double share) {
  assert(scores.size() == log_seconds.size() && !scores.empty() && share > 0 && share <= 1);
  const double enough = *std::min_element(log_seconds.begin(), log_seconds.end()) - std::log(share);
  const std::vector<std::size_t> order = predicted_order(scores, scores.size());
  const auto found = std::find_if(order.begin(), order.end(), [&](std::size_t i) { return log_seconds[i] <= enough; });
  return found - order.begin() + 1;
}

}  // namespace graft::meta
