#include "meta/objectives.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/random.h"

namespace graft::meta {
namespace {

double logistic(double z) {
  return std::log1p(std::exp(z));
}

TEST(Objective, RankLossByHand) {
  // One group of three: fastest is row 1, then row 2 (0.5 behind), then row 0 (2 behind row 1, clipped to 1).
  const std::vector<double> log_seconds = {-1.0, -3.0, -2.5};
  const std::vector<std::int64_t> sizes = {3};
  const Objective objective(Loss::rank, log_seconds, sizes);
  const std::vector<double> s = {0.3, 1.2, -0.4};
  // Pairs (fast, slow): (1,2) weight 0.5; (1,0) weight 1; (2,0) weight 1.
  const double expected = (0.5 * logistic(s[2] - s[1]) + logistic(s[0] - s[1]) + logistic(s[0] - s[2])) / 2.5;
  EXPECT_NEAR(objective.value<double>(s), expected, 1e-14);
  std::vector<double> gradient(3);
  objective.gradient<double>(s, gradient);
  const auto p = [](double z) { return 1 / (1 + std::exp(-z)); };
  EXPECT_NEAR(gradient[1], -(0.5 * p(s[2] - s[1]) + p(s[0] - s[1])) / 2.5, 1e-14);
  EXPECT_NEAR(gradient[0] + gradient[1] + gradient[2], 0, 1e-14);
}

TEST(Objective, LambdaLossByHand) {
  // Speeds 1, 1/2, 1/4 of the fastest; by score the order is rows 1, 0, 2.
  const std::vector<double> log_seconds = {0, std::log(2.0), std::log(4.0)};
  const Objective objective(Loss::lambda, log_seconds, std::vector<std::int64_t>{3});
  const std::vector<double> s = {0.5, 0.9, -1.0};
  const double first = 1, second = 1 / std::log2(3.0), third = 0.5;
  const double ideal = first + 0.5 * second + 0.25 * third;
  const double expected = 0.5 * (first - second) * logistic(s[1] - s[0]) +
                          0.75 * (second - third) * logistic(s[2] - s[0]) +
                          0.25 * (first - third) * logistic(s[2] - s[1]);
  EXPECT_NEAR(objective.value<double>(s), expected / ideal, 1e-14);
}

TEST(Objective, SquaredLossByHand) {
  const std::vector<double> log_seconds = {-1.0, -3.0};
  const Objective objective(Loss::squared, log_seconds, std::vector<std::int64_t>{2});
  // Speeds centred: -1, +1; scores centred: -2, +2.
  EXPECT_NEAR(objective.value<double>(std::vector<double>{1, 5}), 0.5, 1e-14);
  EXPECT_NEAR(objective.value<double>(std::vector<double>{7, 9}), 0, 1e-14);
}

TEST(Objective, GroupsAreNeverCompared) {
  const std::vector<double> log_seconds = {0.0, -1.0, 5.0, 4.0};
  for (const Loss loss : {Loss::rank, Loss::squared, Loss::lambda}) {
    const Objective objective(loss, log_seconds, std::vector<std::int64_t>{2, 2});
    const std::vector<double> s = {0.1, 0.7, -0.2, 0.9}, moved = {0.1, 0.7, 99.8, 100.9};
    EXPECT_NEAR(objective.value<double>(s), objective.value<double>(moved), 1e-12) << name_of(loss);
    std::vector<double> a(4), b(4);
    objective.gradient<double>(s, a);
    objective.gradient<double>(moved, b);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(a[i], b[i], 1e-12) << name_of(loss);
  }
}

TEST(Objective, GroupsWithoutPairsDoNotCount) {
  const std::vector<double> pair = {0.0, -1.0}, padded = {3.0, 0.0, -1.0, 2.0, 2.0};
  const Objective alone(Loss::rank, pair, std::vector<std::int64_t>{2});
  const Objective with(Loss::rank, padded, std::vector<std::int64_t>{1, 2, 2});
  EXPECT_DOUBLE_EQ(alone.value<double>(std::vector<double>{0.2, 0.3}),
                   with.value<double>(std::vector<double>{9, 0.2, 0.3, 1, 5}));
  const Objective none(Loss::rank, std::vector<double>{1.0, 1.0}, std::vector<std::int64_t>{2});
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.value<double>(std::vector<double>{1, 2}), 0);
  EXPECT_TRUE(Objective().empty());
}

TEST(Objective, DerivativesAgreeWithCentralDifferences) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    base::Stream stream(seed, "objective");
    const std::vector<std::int64_t> sizes = {7, 1, 12, 5};
    std::vector<double> log_seconds, s, v;
    for (int i = 0; i < 25; ++i) {
      log_seconds.push_back(stream.normal());
      s.push_back(2 * stream.normal());
      v.push_back(stream.normal());
    }
    log_seconds[3] = log_seconds[5];  // a tie
    for (const Loss loss : {Loss::rank, Loss::squared, Loss::lambda}) {
      const Objective objective(loss, log_seconds, sizes);
      const double step = 1e-5;
      std::vector<double> up = s, down = s, gradient(25), product(25), gradient_up(25), gradient_down(25);
      for (std::size_t i = 0; i < 25; ++i) {
        up[i] += step * v[i];
        down[i] -= step * v[i];
      }
      objective.gradient<double>(s, gradient);
      double directional = 0;
      for (std::size_t i = 0; i < 25; ++i) directional += gradient[i] * v[i];
      EXPECT_NEAR(directional, (objective.value<double>(up) - objective.value<double>(down)) / (2 * step), 1e-8)
          << name_of(loss) << " seed " << seed;
      objective.hessian_product<double>(s, v, product);
      objective.gradient<double>(up, gradient_up);
      objective.gradient<double>(down, gradient_down);
      for (std::size_t i = 0; i < 25; ++i) {
        EXPECT_NEAR(product[i], (gradient_up[i] - gradient_down[i]) / (2 * step), 1e-8)
            << name_of(loss) << " seed " << seed;
      }
    }
  }
}

TEST(Objective, NewtonIsTheGradientAndTheHessiansDiagonal) {
  base::Stream stream(3, "newton");
  const std::vector<std::int64_t> sizes = {6, 1, 9};
  std::vector<double> log_seconds, s;
  for (int i = 0; i < 16; ++i) {
    log_seconds.push_back(stream.normal());
    s.push_back(2 * stream.normal());
  }
  for (const Loss loss : {Loss::rank, Loss::squared, Loss::lambda}) {
    const Objective objective(loss, log_seconds, sizes);
    std::vector<double> expected(16), gradient(16), diagonal(16), unit(16), product(16);
    objective.gradient<double>(s, expected);
    objective.newton<double>(s, gradient, diagonal);
    for (std::size_t i = 0; i < 16; ++i) {
      EXPECT_NEAR(gradient[i], expected[i], 1e-14) << name_of(loss) << " row " << i;
      std::fill(unit.begin(), unit.end(), 0.0);
      unit[i] = 1;
      objective.hessian_product<double>(s, unit, product);
      EXPECT_NEAR(diagonal[i], product[i], 1e-14) << name_of(loss) << " row " << i;
    }
  }
}

TEST(Objective, FarScoresStayFinite) {
  const Objective objective(Loss::rank, std::vector<double>{0.0, -1.0, -2.0}, std::vector<std::int64_t>{3});
  const std::vector<float> s = {1e6f, -1e6f, 3.0f};
  std::vector<float> gradient(3);
  objective.gradient<float>(s, gradient);
  EXPECT_TRUE(std::isfinite(objective.value<float>(s)));
  for (const float g : gradient) EXPECT_TRUE(std::isfinite(g));
}

TEST(Objective, NamesGoBothWays) {
  for (const Loss loss : {Loss::rank, Loss::squared, Loss::lambda}) EXPECT_EQ(loss_named(name_of(loss)), loss);
  EXPECT_EQ(loss_named("rank"), Loss::rank);
  EXPECT_THROW(loss_named("rnk"), base::UserError);
}

}  // namespace
}  // namespace graft::meta
