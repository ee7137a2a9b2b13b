// How regressions are averaged: stacking (Wolpert 1992; Breiman 1996, "Stacked regressions") with a prior. The weights
// are not negative, sum to 1 and minimise the expected square of what the mixture leaves over:
//
//   w = argmin  n w^T S w + n0 w^T M w
//
// S: second moments of the regressions' leave-one-out residuals on the n rows of the support, relative to the rows'
// variance. M: the same moments as they were on other platforms, which n0 = 32 rows stand for. Few rows say little
// about which regression is good; what the sources taught decides then.
//
// What the sources taught depends on what sources are worth on the new platform, which nobody knows. So M is learnt in
// several regimes, from sources that are right about a program to sources that are right about none, and the regimes
// are averaged by their posterior probability: a regression that trusts the sources is expected to leave over the
// share e_r of the variance in regime r; if it leaves over e on the n rows, the regime's log likelihood is
// -n/4 (log e_r + e / e_r), the mean over all such regressions (half as many rows as there are: residuals of
// neighbouring rows are not independent). "The sources are worth nothing" is one of the regimes.
#pragma once

#include <cstdint>
#include <vector>

#include "base/arrays.h"

namespace graft::meta {

struct StackingPrior {
  struct Regime {
    float probability = 0;       // before anything is measured
    std::vector<float> moments;  // rows.size() x upper triangle (row after row) of regressions x regressions
    bool operator==(const Regime&) const = default;
  };
  std::vector<std::int64_t> rows;  // of a support, rising
  std::vector<Regime> regimes;     // none: nothing is known
  std::int64_t regressions = 0;
  bool operator==(const StackingPrior&) const = default;
};

// Numbers in the upper triangle of a square of so many rows.
constexpr std::int64_t triangle(std::int64_t rows) {
  return rows * (rows + 1) / 2;
}

// The weights (regressions) for `residuals` (regressions x rows, leave one out) of rows of that variance. trusts: by
// regression, whether it begins from the sources' mean, and so tells what they are worth. Without a prior each
// regression's error counts as that of 4 rows more, independent of the others': equal shares where nothing is known.
std::vector<double> stacking_weights(const base::Matrix& residuals, double variance, const std::vector<char>& trusts,
                                     const StackingPrior& prior);

// argmin w^T Q w over w >= 0, sum w = 1, for a positive semi-definite Q (size x size, row after row): pairwise
// Frank-Wolfe steps (Lacoste-Julien and Jaggi 2015), which end at a vertex of few weights.
std::vector<double> least_mixture(const std::vector<double>& q, std::int64_t size);

void put(const StackingPrior& prior, base::Arrays& arrays);
// UserError where the arrays do not hold together or are of other than so many regressions. Empty where there are none.
StackingPrior stacking_prior_from(const base::Arrays& arrays, std::int64_t regressions);

}  // namespace graft::meta
