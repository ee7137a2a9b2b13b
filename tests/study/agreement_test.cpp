#include "study/flows/agreement.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace graft::study {
namespace {

TEST(Agreement, AConstantFactorIsNoDisagreement) {
  std::vector<double> measured, modelled;
  for (int i = 1; i <= 40; ++i) {
    measured.push_back(i * i * 1e-6);
    modelled.push_back(3 * i * i * 1e-6);
  }
  const Agreement a = agreement(modelled, measured);
  EXPECT_EQ(a.programs, 40u);
  EXPECT_DOUBLE_EQ(a.spread, 1600);
  EXPECT_DOUBLE_EQ(a.spearman, 1);
  EXPECT_DOUBLE_EQ(a.kendall, 1);
  EXPECT_DOUBLE_EQ(a.spearman_of_best, 1);
  EXPECT_DOUBLE_EQ(a.top1_regret, 1);
  EXPECT_DOUBLE_EQ(a.top5_regret, 1);
  EXPECT_NEAR(a.rms, 0, 1e-12);
}

TEST(Agreement, TheBestAreJudgedByThemselvesAndRegretsByMeasuredTimes) {
  // The three fastest in the wrong order, all others right.
  const std::vector<double> measured{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const std::vector<double> modelled{3, 2, 1, 4, 5, 6, 7, 8, 9, 10};
  const Agreement a = agreement(modelled, measured);
  EXPECT_GT(a.spearman, 0.9);
  EXPECT_DOUBLE_EQ(a.spearman_of_best, -1);
  EXPECT_DOUBLE_EQ(a.top1_regret, 3);
  EXPECT_DOUBLE_EQ(a.top5_regret, 1);
}

TEST(Agreement, RatiosAreCentred) {
  const std::vector<double> measured{1, 1}, modelled{std::exp(1.0), std::exp(3.0)};
  const std::vector<double> ratios = centred_log_ratios(modelled, measured);
  EXPECT_NEAR(ratios[0], -1, 1e-12);
  EXPECT_NEAR(ratios[1], 1, 1e-12);
  EXPECT_NEAR(agreement(modelled, measured).rms, 1, 1e-12);
}

TEST(Agreement, OneProgramSaysNothing) {
  const std::vector<double> one{1};
  const Agreement a = agreement(one, one);
  EXPECT_EQ(a.programs, 1u);
  EXPECT_EQ(a.spearman, 0);
  EXPECT_EQ(a.top1_regret, 1);
}

}  // namespace
}  // namespace graft::study
