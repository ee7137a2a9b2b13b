// Statistics with their definitions: rank correlation, quantiles, bootstrap intervals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/interval.h"

namespace graft::base {

double mean(std::span<const double> values);                // NaN when empty
double geometric_mean(std::span<const double> values);      // values > 0; NaN when empty
double median(std::span<const double> values);              // NaN when empty
double quantile(std::span<const double> values, double p);  // linear interpolation (type 7); NaN when empty
std::vector<double> ranks(std::span<const double> values);  // 1-based, ties share their mean rank
// Root mean square of the values about the mean of their group; groups may be empty; 0 without values.
double deviation_within(std::span<const std::span<const double>> groups);
double pearson(std::span<const double> a, std::span<const double> b);   // 0 when either is constant; sizes equal
double spearman(std::span<const double> a, std::span<const double> b);  // Pearson of the ranks (mid-ranks for ties)
double kendall(std::span<const double> a, std::span<const double> b);   // tau-b in O(n log n)

// Percentile bootstrap interval of the mean (2,000 resamples, seeded): `level` = 0.95 gives the 2.5 and 97.5 % points.
// For fewer than least_for_interval values, the mean without an interval; NaN when empty.
Interval bootstrap_mean(std::span<const double> values, double level, std::uint64_t seed);
// The same for the geometric mean of values whose logarithms these are.
Interval bootstrap_geometric_mean(std::span<const double> logarithms, double level, std::uint64_t seed);
// The same for the mean difference a[i] - b[i] of paired values.
Interval bootstrap_paired_difference(std::span<const double> a, std::span<const double> b, double level,
                                     std::uint64_t seed);

}  // namespace graft::base
