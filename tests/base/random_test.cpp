#include "base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace graft::base {
namespace {

// These numbers decide every run: they may never change.
TEST(Stream, is_the_same_for_ever) {
  Stream stream(7, "sample", 3);
  EXPECT_EQ(stream.bits(), 0x88493a5d0997b880u);
  EXPECT_EQ(stream.bits(), 0x87d130e30c59baacu);
  EXPECT_EQ(stream.bits(), 0x7248f4617836695du);
}

TEST(Stream, depends_on_seed_name_and_index) {
  const auto first = [](std::uint64_t seed, std::string_view name, std::uint64_t index) {
    return Stream(seed, name, index).bits();
  };
  const std::set<std::uint64_t> different = {first(1, "a", 0), first(2, "a", 0), first(1, "b", 0), first(1, "a", 1),
                                             first(0, "a", 1)};
  EXPECT_EQ(different.size(), 5u);
  EXPECT_EQ(first(1, "a", 0), first(1, "a", 0));
}

TEST(Stream, uniform_fills_the_unit_interval) {
  Stream stream(1, "uniform");
  double sum = 0, low = 1, high = 0;
  constexpr int count = 20000;
  for (int i = 0; i < count; ++i) {
    const double value = stream.uniform();
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    sum += value;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  EXPECT_NEAR(sum / count, 0.5, 0.01);  // 5 standard errors
  EXPECT_LT(low, 0.001);
  EXPECT_GT(high, 0.999);
}

TEST(Stream, below_is_even) {
  Stream stream(2, "below");
  std::vector<int> counts(7);
  for (int i = 0; i < 70000; ++i) ++counts.at(std::size_t(stream.below(7)));
  for (const int count : counts) EXPECT_NEAR(count, 10000, 500);
  EXPECT_EQ(stream.below(1), 0);
  for (int i = 0; i < 100; ++i) {
    const std::int64_t large = stream.below(INT64_MAX);
    EXPECT_GE(large, 0);
    EXPECT_LT(large, INT64_MAX);
  }
}

// 2^64 is 2.67 times this range. Taken modulo the range, the lower two thirds come too often; scaled to it without a
// second draw, numbers of some residues by three do.
TEST(Stream, below_has_no_bias_in_large_ranges) {
  Stream stream(3, "bias");
  const std::int64_t n = std::int64_t(3) << 61;
  std::vector<int> thirds(3), residues(3);
  constexpr int count = 12000;
  for (int i = 0; i < count; ++i) {
    const std::int64_t value = stream.below(n);
    ++thirds[std::size_t(value / (n / 3))];
    ++residues[std::size_t(value % 3)];
  }
  for (const int third : thirds) EXPECT_NEAR(third, count / 3, 260);  // 5 standard errors
  for (const int residue : residues) EXPECT_NEAR(residue, count / 3, 260);
}

TEST(Stream, normal_has_mean_0_and_variance_1) {
  Stream stream(4, "normal");
  constexpr int count = 50000;
  double sum = 0, squares = 0, cubes = 0;
  int within_one = 0;
  for (int i = 0; i < count; ++i) {
    const double value = stream.normal();
    ASSERT_TRUE(std::isfinite(value));
    sum += value;
    squares += value * value;
    cubes += value * value * value;
    within_one += std::abs(value) < 1;
  }
  EXPECT_NEAR(sum / count, 0, 0.025);
  EXPECT_NEAR(squares / count, 1, 0.035);
  EXPECT_NEAR(cubes / count, 0, 0.09);
  EXPECT_NEAR(double(within_one) / count, 0.6827, 0.011);
}

TEST(Stream, shuffle_gives_every_order_equally_often) {
  std::vector<int> counts(6);
  const std::vector<int> sorted = {0, 1, 2};
  for (std::uint64_t i = 0; i < 12000; ++i) {
    std::vector<int> order = sorted;
    Stream(5, "shuffle", i).shuffle(order);
    ASSERT_TRUE(std::is_permutation(order.begin(), order.end(), sorted.begin()));
    ++counts[std::size_t(order[0] * 2 + (order[1] > order[2]))];
  }
  for (const int count : counts) EXPECT_NEAR(count, 2000, 210);
  std::vector<int> empty;
  Stream(5, "shuffle").shuffle(empty);
}

TEST(Stream, choose_gives_distinct_numbers_in_range) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Stream stream(seed, "choose");
    const std::int64_t n = stream.below(60), count = stream.below(70);
    const std::vector<std::int64_t> chosen = stream.choose(n, count);
    ASSERT_EQ(std::int64_t(chosen.size()), std::min(n, count)) << "seed " << seed;
    const std::set<std::int64_t> distinct(chosen.begin(), chosen.end());
    ASSERT_EQ(distinct.size(), chosen.size()) << "seed " << seed;
    if (!distinct.empty()) {
      ASSERT_GE(*distinct.begin(), 0) << "seed " << seed;
      ASSERT_LT(*distinct.rbegin(), n) << "seed " << seed;
    }
  }
  EXPECT_TRUE(Stream(1, "choose").choose(10, 0).empty());
  EXPECT_TRUE(Stream(1, "choose").choose(10, -1).empty());
  EXPECT_TRUE(Stream(1, "choose").choose(0, 3).empty());
}

// Short and long draws are stored differently and must give the same numbers.
TEST(Stream, choose_begins_alike_for_any_count) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const auto few = Stream(seed, "choose").choose(40, 8), all = Stream(seed, "choose").choose(40, 40);
    ASSERT_TRUE(std::equal(few.begin(), few.end(), all.begin())) << "seed " << seed;
  }
}

TEST(Stream, choose_is_even_and_copes_with_huge_spaces) {
  std::vector<int> counts(20);
  for (std::uint64_t i = 0; i < 10000; ++i) {
    for (const std::int64_t chosen : Stream(6, "choose", i).choose(20, 4)) ++counts[std::size_t(chosen)];
  }
  for (const int count : counts) EXPECT_NEAR(count, 2000, 220);
  EXPECT_EQ(Stream(6, "choose").choose(std::int64_t(1) << 60, 1000).size(), 1000u);
}

}  // namespace
}  // namespace graft::base
