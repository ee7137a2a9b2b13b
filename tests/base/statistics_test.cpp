#include "base/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <span>

#include "base/random.h"

namespace graft::base {
namespace {

using Values = std::vector<double>;

TEST(Statistics, means_and_medians) {
  EXPECT_DOUBLE_EQ(mean(Values{1, 2, 6}), 3);
  EXPECT_DOUBLE_EQ(geometric_mean(Values{1, 2, 4}), 2);
  EXPECT_DOUBLE_EQ(geometric_mean(Values{1e-200, 1e200, 1e200, 1e-200}), 1);  // no overflow on the way
  EXPECT_DOUBLE_EQ(median(Values{5, 1, 3}), 3);
  EXPECT_DOUBLE_EQ(median(Values{4, 1, 3, 2}), 2.5);
}

TEST(Statistics, deviation_within_groups_leaves_out_what_lies_between_them) {
  const Values first = {1, 3}, second = {100, 104, 102}, none;
  const std::span<const double> groups[] = {first, none, second};
  EXPECT_DOUBLE_EQ(deviation_within(groups), std::sqrt((1 + 1 + 4 + 4 + 0) / 5.0));
  EXPECT_EQ(deviation_within({}), 0);
  EXPECT_EQ(deviation_within(std::span(groups).subspan(1, 1)), 0);
}

TEST(Statistics, nothing_has_no_mean) {
  EXPECT_TRUE(std::isnan(mean({})));
  EXPECT_TRUE(std::isnan(geometric_mean({})));
  EXPECT_TRUE(std::isnan(median({})));
  EXPECT_TRUE(std::isnan(quantile({}, 0.3)));
  EXPECT_TRUE(std::isnan(bootstrap_mean({}, 0.95, 1).low));
}

// Type 7 of Hyndman and Fan (R's and numpy's default).
TEST(Statistics, quantiles_interpolate) {
  const Values values = {40, 10, 30, 20};
  EXPECT_DOUBLE_EQ(quantile(values, 0), 10);
  EXPECT_DOUBLE_EQ(quantile(values, 1), 40);
  EXPECT_DOUBLE_EQ(quantile(values, 0.25), 17.5);
  EXPECT_DOUBLE_EQ(quantile(values, 0.9), 37);
  EXPECT_DOUBLE_EQ(quantile(Values{7}, 0.4), 7);
  EXPECT_DOUBLE_EQ(quantile(Values{1, 2, INFINITY}, 0.5), 2);
}

TEST(Statistics, ties_share_their_mean_rank) {
  EXPECT_EQ(ranks(Values{10, 30, 20}), (Values{1, 3, 2}));
  EXPECT_EQ(ranks(Values{5, 1, 5, 5, 2}), (Values{4, 1, 4, 4, 2}));
  EXPECT_EQ(ranks(Values{2, 2}), (Values{1.5, 1.5}));
  EXPECT_EQ(ranks(Values{}), Values{});
}

TEST(Statistics, pearson_by_hand) {
  EXPECT_DOUBLE_EQ(pearson(Values{1, 2, 3}, Values{10, 20, 30}), 1);
  EXPECT_DOUBLE_EQ(pearson(Values{1, 2, 3}, Values{3, 2, 1}), -1);
  // Deviations (-1.5 -0.5 0.5 1.5), (-0.75 -1.75 1.25 1.25); products 4.5, squares 5 and 6.75.
  EXPECT_NEAR(pearson(Values{1, 2, 3, 4}, Values{1, 0, 3, 3}), 4.5 / std::sqrt(5 * 6.75), 1e-15);
  EXPECT_EQ(pearson(Values{1, 2, 3}, Values{4, 4, 4}), 0);
  EXPECT_EQ(pearson(Values{1}, Values{2}), 0);
  EXPECT_EQ(pearson({}, {}), 0);
}

TEST(Statistics, spearman_by_hand) {
  // No ties: 1 - 6 sum d^2 / (n (n^2 - 1)), d = (0, 1, -1, 1, -1), so 1 - 24 / 120.
  EXPECT_NEAR(spearman(Values{1, 2, 3, 4, 5}, Values{1, 30, 20, 50, 40}), 0.8, 1e-15);
  // A monotonic map changes nothing.
  EXPECT_DOUBLE_EQ(spearman(Values{1, 2, 3, 4}, Values{1, 10, 1000, 1e9}), 1);
  EXPECT_DOUBLE_EQ(spearman(Values{1, 2, 3, 4}, Values{0, -1, -10, -11}), -1);
  // Ties: ranks (1, 2.5, 2.5, 4) and (1, 2, 3, 4): products 4.5, squares 4.5 and 5.
  EXPECT_NEAR(spearman(Values{1, 2, 2, 3}, Values{1, 2, 3, 4}), 4.5 / std::sqrt(4.5 * 5), 1e-15);
  EXPECT_EQ(spearman(Values{1, 1, 1}, Values{1, 2, 3}), 0);
}

TEST(Statistics, kendall_by_hand) {
  // Two discordant pairs of ten: (8 - 2) / 10.
  EXPECT_NEAR(kendall(Values{1, 2, 3, 4, 5}, Values{1, 3, 2, 5, 4}), 0.6, 1e-15);
  EXPECT_NEAR(kendall(Values{1, 2, 3}, Values{3, 2, 1}), -1, 1e-15);
  // Six pairs, one tied in a: 5 concordant, 5 / sqrt(5 * 6).
  EXPECT_NEAR(kendall(Values{1, 2, 2, 3}, Values{1, 2, 3, 4}), 5 / std::sqrt(30.0), 1e-15);
  // Pairs tied in both: a and b agree fully.
  EXPECT_NEAR(kendall(Values{1, 1, 2}, Values{5, 5, 7}), 1, 1e-15);
  EXPECT_EQ(kendall(Values{1, 1}, Values{1, 2}), 0);
  EXPECT_EQ(kendall({}, {}), 0);
}

double kendall_by_definition(const Values& a, const Values& b) {
  double agreement = 0, untied_a = 0, untied_b = 0;
  const auto sign = [](double x, double y) { return (x > y) - (x < y); };
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      agreement += sign(a[i], a[j]) * sign(b[i], b[j]);
      untied_a += sign(a[i], a[j]) != 0;
      untied_b += sign(b[i], b[j]) != 0;
    }
  }
  return untied_a == 0 || untied_b == 0 ? 0 : agreement / std::sqrt(untied_a * untied_b);
}

TEST(Statistics, kendall_equals_its_definition) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Stream stream(seed, "kendall");
    // Few levels make many ties, in one, the other or both.
    const std::int64_t count = stream.below(60), levels_a = 1 + stream.below(40), levels_b = 1 + stream.below(40);
    Values a, b;
    for (std::int64_t i = 0; i < count; ++i) {
      a.push_back(double(stream.below(levels_a)));
      b.push_back(double(stream.below(levels_b)) + (seed % 2 ? a.back() : 0));
    }
    ASSERT_NEAR(kendall(a, b), kendall_by_definition(a, b), 1e-12) << "seed " << seed;
  }
}

TEST(Statistics, kendall_counts_large_inputs_without_overflow) {
  Values up, down;
  for (int i = 0; i < 100000; ++i) {
    up.push_back(i);
    down.push_back(-i);
  }
  EXPECT_NEAR(kendall(up, down), -1, 1e-12);
}

TEST(Bootstrap, is_repeatable_and_brackets_the_mean) {
  Values values;
  Stream stream(1, "data");
  for (int i = 0; i < 50; ++i) values.push_back(stream.normal());
  const Interval first = bootstrap_mean(values, 0.95, 9), again = bootstrap_mean(values, 0.95, 9);
  EXPECT_EQ(first.low, again.low);
  EXPECT_EQ(first.high, again.high);
  EXPECT_NE(first.low, bootstrap_mean(values, 0.95, 10).low);
  EXPECT_DOUBLE_EQ(first.mean, mean(values));
  EXPECT_LT(first.low, first.mean);
  EXPECT_GT(first.high, first.mean);
  EXPECT_LT(bootstrap_mean(values, 0.99, 9).low, first.low);
  const Interval geometric = bootstrap_geometric_mean(values, 0.95, 9);
  EXPECT_DOUBLE_EQ(geometric.mean, std::exp(first.mean));
  EXPECT_DOUBLE_EQ(geometric.low, std::exp(first.low));
  EXPECT_DOUBLE_EQ(geometric.high, std::exp(first.high));
}

TEST(Bootstrap, one_or_two_values_have_no_interval) {
  for (const Values& values : {Values{3}, Values{2, 4}}) {
    const Interval interval = bootstrap_mean(values, 0.95, 1);
    EXPECT_EQ(interval.mean, 3);
    EXPECT_TRUE(std::isnan(interval.low) && std::isnan(interval.high));
  }
  const Interval same = bootstrap_mean(Values{3, 3, 3}, 0.95, 1);
  EXPECT_EQ(same.low, 3);
  EXPECT_EQ(same.high, 3);
}

// 300 samples of 40 normal numbers: a 90 % interval holds the true mean about nine times in ten (the percentile
// interval a little less often).
TEST(Bootstrap, has_its_level) {
  int held = 0;
  for (std::uint64_t sample = 0; sample < 300; ++sample) {
    Stream stream(2, "level", sample);
    Values values;
    for (int i = 0; i < 40; ++i) values.push_back(5 + stream.normal());
    const Interval interval = bootstrap_mean(values, 0.9, sample);
    held += interval.low <= 5 && 5 <= interval.high;
  }
  EXPECT_GT(held, 300 * 0.83);
  EXPECT_LT(held, 300 * 0.95);
}

// What both columns share does not widen the interval of their difference.
TEST(Bootstrap, pairs) {
  Values a, b;
  Stream stream(3, "pairs");
  for (int i = 0; i < 30; ++i) {
    b.push_back(100 * stream.normal());
    a.push_back(b.back() + 1 + 0.01 * stream.normal());
  }
  const Interval interval = bootstrap_paired_difference(a, b, 0.95, 4);
  EXPECT_NEAR(interval.mean, 1, 0.01);
  EXPECT_NEAR(interval.low, 1, 0.02);
  EXPECT_NEAR(interval.high, 1, 0.02);
}

}  // namespace
}  // namespace graft::base
