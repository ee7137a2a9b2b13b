#include "meta/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace graft::meta {
namespace {

const std::vector<double> log_seconds = {std::log(4.0), std::log(1.0), std::log(2.0), std::log(8.0)};

TEST(Metrics, RankCorrelationByHand) {
  EXPECT_DOUBLE_EQ(rank_correlation(std::vector<float>{2, 4, 3, 1}, log_seconds), 1);
  EXPECT_DOUBLE_EQ(rank_correlation(std::vector<float>{3, 1, 2, 4}, log_seconds), -1);
  // Ranks of the scores 1 3 4 2, of the speeds 2 4 3 1: 1 - 6 * 4 / (4 * 15).
  EXPECT_NEAR(rank_correlation(std::vector<float>{1, 3, 4, 2}, log_seconds), 0.6, 1e-12);
  EXPECT_EQ(rank_correlation(std::vector<float>{5, 5, 5, 5}, log_seconds), 0);
}

TEST(Metrics, TopKByHand) {
  const std::vector<float> scores = {0.9f, 0.2f, 0.8f, 0.1f};  // order: 0 (4 s), 2 (2 s), 1 (1 s), 3 (8 s)
  EXPECT_NEAR(top_k(scores, log_seconds, 1), 0.25, 1e-12);
  EXPECT_NEAR(top_k(scores, log_seconds, 2), 0.5, 1e-12);
  EXPECT_NEAR(top_k(scores, log_seconds, 3), 1, 1e-12);
  EXPECT_NEAR(top_k(scores, log_seconds, 99), 1, 1e-12);
  EXPECT_NEAR(top_k(std::vector<float>{0, 0, 0, 0}, log_seconds, 1), 0.25, 1e-12);  // ties by position
}

TEST(Metrics, RankConcordanceByHand) {
  EXPECT_DOUBLE_EQ(rank_concordance(std::vector<float>{2, 4, 3, 1}, log_seconds), 1);
  EXPECT_DOUBLE_EQ(rank_concordance(std::vector<float>{3, 1, 2, 4}, log_seconds), -1);
  // Scores 1 3 4 2, speeds 2 4 3 1: of the six pairs all but (0, 3) and (1, 2) are in order.
  EXPECT_NEAR(rank_concordance(std::vector<float>{1, 3, 4, 2}, log_seconds), (4 - 2) / 6.0, 1e-12);
}

TEST(Metrics, TrialsToByHand) {
  const std::vector<float> scores = {0.9f, 0.2f, 0.8f, 0.1f};  // order: 0 (4 s), 2 (2 s), 1 (1 s), 3 (8 s)
  EXPECT_EQ(trials_to(scores, log_seconds, 1), 3);
  EXPECT_EQ(trials_to(scores, log_seconds, 0.51), 3);
  EXPECT_EQ(trials_to(scores, log_seconds, 0.49), 2);
  EXPECT_EQ(trials_to(scores, log_seconds, 0.2), 1);
  EXPECT_EQ(trials_to(std::vector<float>{0, 0, 0, 0}, log_seconds, 1), 2);  // ties by position
  EXPECT_EQ(trials_to(std::vector<float>{1, 9, 2, 3}, log_seconds, 1), 1);
}

}  // namespace
}  // namespace graft::meta
