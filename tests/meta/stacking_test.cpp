#include "meta/methods/stacking.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/random.h"
#include "meta/state.h"

namespace graft::meta {
namespace {

double value(const std::vector<double>& q, const std::vector<double>& w) {
  double out = 0;
  for (std::size_t a = 0; a < w.size(); ++a) {
    for (std::size_t b = 0; b < w.size(); ++b) out += w[a] * q[a * w.size() + b] * w[b];
  }
  return out;
}

// Compared with every mixture of a fine grid.
TEST(LeastMixture, IsTheLeastOfAllMixtures) {
  constexpr int size = 3, steps = 100;
  base::Stream stream(3, "moments");
  for (int round = 0; round < 20; ++round) {
    std::vector<double> factor(size * 2), q(size * size, 0.0);
    for (double& each : factor) each = stream.normal();
    for (int a = 0; a < size; ++a) {
      for (int b = 0; b < size; ++b)
        q[a * size + b] = factor[a * 2] * factor[b * 2] + factor[a * 2 + 1] * factor[b * 2 + 1];
    }
    const std::vector<double> w = least_mixture(q, size);
    EXPECT_NEAR(std::accumulate(w.begin(), w.end(), 0.0), 1, 1e-9);
    for (const double each : w) EXPECT_GE(each, 0);
    double least = 1e9;
    for (int a = 0; a <= steps; ++a) {
      for (int b = 0; a + b <= steps; ++b)
        least = std::min(least, value(q, {double(a) / steps, double(b) / steps, double(steps - a - b) / steps}));
    }
    EXPECT_LE(value(q, w), least + 1e-3) << "round " << round;
  }
  EXPECT_EQ(least_mixture({2}, 1), std::vector<double>{1});
}

// Two regressions, of which the first trusts the sources; independent errors.
StackingPrior two(float honest, float worthless, float of_features) {
  StackingPrior out{{4, 64}, {{0.8f, {}}, {0.2f, {}}}, 2};
  for (int rows = 0; rows < 2; ++rows) {
    out.regimes[0].moments.insert(out.regimes[0].moments.end(), {honest, 0, of_features});
    out.regimes[1].moments.insert(out.regimes[1].moments.end(), {worthless, 0, of_features});
  }
  return out;
}

base::Matrix residuals(std::int64_t rows, float first, float second) {
  base::Matrix out(2, rows);
  for (std::int64_t r = 0; r < rows; ++r) {  // uncorrelated
    out.at(0, r) = r % 2 == 0 ? first : -first;
    out.at(1, r) = r % 4 < 2 ? second : -second;
  }
  return out;
}

// For independent errors the weights are in inverse proportion to the moments: n S + 32 M.
TEST(StackingWeights, FollowThePriorThenTheRows) {
  const StackingPrior prior = two(0.1f, 0.1f, 0.4f);
  const std::vector<char> trusts = {1, 0};
  for (const std::int64_t rows : {4, 16, 64, 256}) {
    const auto n = double(rows);
    const double first = n * 0.9 + 32 * 0.1, second = n * 0.3 + 32 * 0.4;
    const std::vector<double> w = stacking_weights(residuals(rows, std::sqrt(0.9f), std::sqrt(0.3f)), 1, trusts, prior);
    EXPECT_NEAR(w[0], second / (first + second), 1e-3) << rows;
  }
}

TEST(StackingWeights, FindOutThatTheSourcesAreWorthNothing) {
  const StackingPrior prior = two(0.05f, 1.5f, 0.5f);
  const std::vector<char> trusts = {1, 0};
  // Sources that leave over what honest ones do are trusted, such as leave over all are not: soon, and not by one row.
  EXPECT_GT(stacking_weights(residuals(8, std::sqrt(0.05f), std::sqrt(0.5f)), 1, trusts, prior)[0], 0.85);
  EXPECT_LT(stacking_weights(residuals(8, std::sqrt(1.5f), std::sqrt(0.5f)), 1, trusts, prior)[0], 0.3);
  // Relative to the rows' variance.
  EXPECT_NEAR(stacking_weights(residuals(8, 3 * std::sqrt(1.5f), 3 * std::sqrt(0.5f)), 9, trusts, prior)[0],
              stacking_weights(residuals(8, std::sqrt(1.5f), std::sqrt(0.5f)), 1, trusts, prior)[0], 1e-5);
}

TEST(StackingWeights, WithoutAPriorAreNearEqualUntilRowsDiffer) {
  const std::vector<double> equal = stacking_weights(residuals(4, 0.5f, 0.5f), 1, {0, 0}, {});
  EXPECT_NEAR(equal[0], 0.5, 1e-6);
  EXPECT_GT(stacking_weights(residuals(64, 0.1f, 1.0f), 1, {0, 0}, {})[0], 0.98);
  // Nothing varies and nothing is left over.
  const std::vector<double> still = stacking_weights(residuals(4, 0, 0), 0, {0, 0}, {});
  EXPECT_NEAR(still[0] + still[1], 1, 1e-9);
}

// Between two numbers of rows by the logarithm, no more beyond them.
TEST(StackingWeights, KnowRegressionsByHowManyRowsThereAre) {
  StackingPrior prior{{4, 64}, {{1, {0.1f, 0, 1.0f, 1.0f, 0, 0.1f}}}, 2};
  const auto first = [&](std::int64_t rows) {
    return stacking_weights(residuals(rows, 1e-3f, 1e-3f), 1, {0, 0}, prior)[0];
  };
  EXPECT_NEAR(first(2), 1 / 1.1, 0.01);
  EXPECT_NEAR(first(4), 1 / 1.1, 0.01);
  EXPECT_NEAR(first(16), 0.5, 0.01);
  EXPECT_NEAR(first(64), 0.1 / 1.1, 0.01);
  EXPECT_NEAR(first(200), 0.1 / 1.1, 0.01);
}

TEST(StackingPrior, ComesBackFromArraysAndRefusesWhatIsNone) {
  const StackingPrior prior = two(0.1f, 1, 0.5f);
  base::Arrays arrays;
  put(prior, arrays);
  EXPECT_EQ(stacking_prior_from(arrays, 2), prior);
  EXPECT_TRUE(stacking_prior_from({}, 2).regimes.empty());
  EXPECT_THROW(stacking_prior_from(arrays, 3), base::UserError);
  base::Arrays bad = arrays;
  bad.arrays.at("stacking/moments").values[2] = NAN;
  EXPECT_THROW(stacking_prior_from(bad, 2), base::UserError);
}

}  // namespace
}  // namespace graft::meta
