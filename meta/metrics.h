// How good a ranking is. Scores: higher is faster. All within one workload on one platform.
#pragma once

#include <span>

namespace graft::meta {

// Spearman correlation of score and -seconds.
double rank_correlation(std::span<const float> scores, std::span<const double> log_seconds);
// Best seconds of all / best seconds among the k predicted first (ties by position); 1 is perfect. k >= 1.
double top_k(std::span<const float> scores, std::span<const double> log_seconds, int k);
// Share of pairs in the right order among those whose times differ.
double pair_accuracy(std::span<const float> scores, std::span<const double> log_seconds);

}  // namespace graft::meta
