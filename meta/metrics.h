// The quality of a ranking. Scores: higher is faster. All within one workload on one platform.
#pragma once

#include <cstdint>
#include <span>

namespace graft::meta {

// Spearman correlation of score and -seconds, -1 .. 1; 0 if all scores or all times are equal.
double rank_correlation(std::span<const float> scores, std::span<const double> log_seconds);
// Best seconds of all / best seconds among the k predicted first (ties by position); 1 is perfect. k >= 1.
double top_k(std::span<const float> scores, std::span<const double> log_seconds, int k);
// The same as Kendall's tau-b.
double rank_concordance(std::span<const float> scores, std::span<const double> log_seconds);
// Programs to measure in the predicted order (ties by position) until the best of them has `share` of the speed of the
// best of all: 1 to their number; the position of the fastest one for a share of 1.
std::int64_t trials_to(std::span<const float> scores, std::span<const double> log_seconds, double share);

}  // namespace graft::meta
