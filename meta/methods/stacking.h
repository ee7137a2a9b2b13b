// How regressions are averaged: stacking (Wolpert 1992; Breiman 1996, "Stacked regressions") with a prior. The weights
// are not negative, sum to 1 and minimise the expected square of the mixture's residual:
//
//   w = argmin  n w^T S w + n0 w^T M w
//
// S: second moments of the regressions' leave-one-out residuals on the n rows of the support, relative to the rows'
// variance. M: the same moments on other platforms, with the weight of n0 = 32 rows. Few rows say little
// about which regression is good; then the sources decide.
//
// What the sources show depends on their value on the new platform, which is unknown. So M is learnt in several
// regimes, from sources that are right about every program to sources that are right about none, and the regimes
// are averaged by their posterior probability: a regression that trusts the sources is expected to have the residual
// share e_r of the variance in regime r; if its share is e on the n rows, the regime's log likelihood is
// -n/4 (log e_r + e / e_r), the mean over all such regressions (half the number of rows: residuals of
// neighbouring rows are not independent). "The sources have no value" is one of the regimes.
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
  std::vector<Regime> regimes;     // none: unknown
  std::int64_t regressions = 0;
  bool operator==(const StackingPrior&) const = default;
};

// Numbers in the upper triangle of a square of `rows` rows.
constexpr std::int64_t triangle(std::int64_t rows) {
  return rows * (rows + 1) / 2;
}

// The weights (regressions) for `residuals` (regressions x rows, leave one out) of rows of that variance. trusts: by
// regression, whether it starts from the sources' mean, and so shows their value. Without a prior, each regression's
// error counts as that of 4 more rows, independent of the others': equal shares if nothing is known.
std::vector<double> stacking_weights(const base::Matrix& residuals, double variance, const std::vector<char>& trusts,
                                     const StackingPrior& prior);

// argmin w^T Q w over w >= 0, sum w = 1, for a positive semi-definite Q (size x size, row after row): pairwise
// Frank-Wolfe steps (Lacoste-Julien and Jaggi 2015), which end at a vertex of few weights.
std::vector<double> least_mixture(const std::vector<double>& q, std::int64_t size);

void put(const StackingPrior& prior, base::Arrays& arrays);
// UserError if the arrays are inconsistent or of a different number of regressions. Empty if there are none.
StackingPrior stacking_prior_from(const base::Arrays& arrays, std::int64_t regressions);

}  // namespace graft::meta
