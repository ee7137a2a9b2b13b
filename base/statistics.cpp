#include "base/statistics.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/random.h"

namespace graft::base {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

double quantile_of_sorted(const std::vector<double>& sorted, double p) {
  if (sorted.empty()) return nan;
  const double place = p * double(sorted.size() - 1);
  const std::size_t below = std::size_t(place);
  if (below + 1 >= sorted.size()) return sorted.back();
  const double part = place - double(below);
  // At a whole place the neighbour is not touched: it may be infinite, and 0 * inf is not a number.
  return part == 0 ? sorted[below] : sorted[below] + part * (sorted[below + 1] - sorted[below]);
}

std::vector<double> sorted_copy(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

// The pairs among runs of equal neighbours: sum of t (t - 1) / 2.
template <class Equal>
std::int64_t tied_pairs(std::size_t count, Equal equal) {
  std::int64_t pairs = 0, run = 1;
  for (std::size_t i = 1; i <= count; ++i) {
    if (i < count && equal(i - 1, i)) {
      ++run;
    } else {
      pairs += run * (run - 1) / 2;
      run = 1;
    }
  }
  return pairs;
}

// Sorts values[begin, end) by merging and counts the pairs that stood in descending order.
std::int64_t count_inversions(std::vector<double>& values, std::vector<double>& scratch, std::size_t begin,
                              std::size_t end) {
  if (end - begin < 2) return 0;
  const std::size_t middle = begin + (end - begin) / 2;
  std::int64_t inversions =
      count_inversions(values, scratch, begin, middle) + count_inversions(values, scratch, middle, end);
  std::size_t left = begin, right = middle, out = begin;
  while (left < middle || right < end) {
    if (right == end || (left < middle && values[left] <= values[right])) {
      scratch[out++] = values[left++];
    } else {
      inversions += std::int64_t(middle - left);
      scratch[out++] = values[right++];
    }
  }
  std::copy(scratch.begin() + std::ptrdiff_t(begin), scratch.begin() + std::ptrdiff_t(end),
            values.begin() + std::ptrdiff_t(begin));
  return inversions;
}

}  // namespace

double mean(std::span<const double> values) {
  return values.empty() ? nan : std::accumulate(values.begin(), values.end(), 0.0) / double(values.size());
}

double geometric_mean(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) {
    assert(value > 0);
    sum += std::log(value);
  }
  return values.empty() ? nan : std::exp(sum / double(values.size()));
}

double median(std::span<const double> values) {
  return quantile(values, 0.5);
}

double quantile(std::span<const double> values, double p) {
  assert(p >= 0 && p <= 1);
  return quantile_of_sorted(sorted_copy(values), p);
}

std::vector<double> ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) { return values[x] < values[y]; });
  std::vector<double> result(values.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (std::size_t i = begin; i < end; ++i) result[order[i]] = double(begin + 1 + end) / 2;
    begin = end;
  }
  return result;
}

double deviation_within(std::span<const std::span<const double>> groups) {
  double squares = 0;
  std::size_t count = 0;
  for (const std::span<const double> group : groups) {
    const double middle = mean(group);
    for (const double value : group) squares += (value - middle) * (value - middle);
    count += group.size();
  }
  return count > 0 ? std::sqrt(squares / double(count)) : 0;
}

double pearson(std::span<const double> a, std::span<const double> b) {
  assert(a.size() == b.size());
  if (a.empty()) return 0;
  const double mean_a = mean(a), mean_b = mean(b);
  double aa = 0, bb = 0, ab = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = a[i] - mean_a, y = b[i] - mean_b;
    aa += x * x;
    bb += y * y;
    ab += x * y;
  }
  if (aa == 0 || bb == 0) return 0;
  return std::clamp(ab / std::sqrt(aa) / std::sqrt(bb), -1.0, 1.0);
}

double spearman(std::span<const double> a, std::span<const double> b) {
  return pearson(ranks(a), ranks(b));
}

// Knight, "A computer method for calculating Kendall's tau with ungrouped data" (JASA 1966): ordered by (a, b), the
// discordant pairs are the inversions of b.
double kendall(std::span<const double> a, std::span<const double> b) {
  assert(a.size() == b.size());
  const std::size_t count = a.size();
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::sort(order.begin(), order.end(),
            [&](std::size_t x, std::size_t y) { return a[x] < a[y] || (a[x] == a[y] && b[x] < b[y]); });
  const auto same_a = [&](std::size_t i, std::size_t j) { return a[order[i]] == a[order[j]]; };
  const auto same_b = [&](std::size_t i, std::size_t j) { return b[order[i]] == b[order[j]]; };
  const std::int64_t ties_a = tied_pairs(count, same_a);
  const std::int64_t ties_both =
      tied_pairs(count, [&](std::size_t i, std::size_t j) { return same_a(i, j) && same_b(i, j); });
  std::vector<double> column(count), scratch(count);
  for (std::size_t i = 0; i < count; ++i) column[i] = b[order[i]];
  const std::int64_t discordant = count_inversions(column, scratch, 0, count);  // leaves the column sorted
  const std::int64_t ties_b = tied_pairs(count, [&](std::size_t i, std::size_t j) { return column[i] == column[j]; });
  const std::int64_t pairs = std::int64_t(count) * (std::int64_t(count) - 1) / 2;
  if (pairs == ties_a || pairs == ties_b) return 0;
  const std::int64_t concordant = pairs - ties_a - ties_b + ties_both - discordant;
  return double(concordant - discordant) / std::sqrt(double(pairs - ties_a)) / std::sqrt(double(pairs - ties_b));
}

Interval bootstrap_mean(std::span<const double> values, double level, std::uint64_t seed) {
  assert(level > 0 && level < 1);
  if (values.size() < least_for_interval) return {mean(values), nan, nan};
  constexpr std::size_t resamples = 2000;
  Stream stream(seed, "bootstrap");
  std::vector<double> means(resamples);
  for (double& resampled : means) {
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
      sum += values[std::size_t(stream.below(std::int64_t(values.size())))];
    resampled = sum / double(values.size());
  }
  std::sort(means.begin(), means.end());
  return {mean(values), quantile_of_sorted(means, (1 - level) / 2), quantile_of_sorted(means, (1 + level) / 2)};
}

Interval bootstrap_geometric_mean(std::span<const double> logarithms, double level, std::uint64_t seed) {
  const Interval mean = bootstrap_mean(logarithms, level, seed);
  return {std::exp(mean.mean), std::exp(mean.low), std::exp(mean.high)};
}

Interval bootstrap_paired_difference(std::span<const double> a, std::span<const double> b, double level,
                                     std::uint64_t seed) {
  assert(a.size() == b.size());
  std::vector<double> differences(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) differences[i] = a[i] - b[i];
  return bootstrap_mean(differences, level, seed);
}

}  // namespace graft::base
