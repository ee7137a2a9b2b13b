#include "meta/gaussian_process.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/statistics.h"

namespace graft::meta {
namespace {

double wave(double x) {
  return std::sin(x);
}

// Groups of ten values of a wave at random points, with an offset for each group, and a little noise.
std::vector<Observation> groups_of(int groups, double offset, base::Stream& stream) {
  std::vector<Observation> all;
  for (int group = 0; group < groups; ++group) {
    const double own = offset * stream.normal();
    for (int i = 0; i < 10; ++i) {
      const double x = 6 * stream.uniform();
      all.push_back({{{x, 0}, 1}, wave(x) + own + 0.1 * stream.normal(), group});
    }
  }
  return all;
}

double sum_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

TEST(GaussianProcess, WithoutObservationsIsThePrior) {
  const GaussianProcess process({}, {-2, 0.5});
  EXPECT_EQ(process.coverage(), 1);
  EXPECT_TRUE(process.left_out().empty());
  std::vector<double> first;
  for (const std::vector<double>& draw : process.drawn({{{0, 0}}, {{1, 1}}}, 2000, base::Stream(1, "draws")))
    first.push_back(draw[0]);
  EXPECT_NEAR(base::mean(first), -2, 0.1);
  EXPECT_GT(base::quantile(first, 0.95) - base::quantile(first, 0.05), 2 * 1.64 * 0.5);
}

TEST(GaussianProcess, FollowsAFunction) {
  base::Stream stream(2, "observations");
  const GaussianProcess process(groups_of(6, 0, stream), {0, 1});
  const std::vector<Place> points = {{{1, 0}, 1}, {{2.5, 0}, 1}, {{4, 0}, 1}};
  const auto draws = process.drawn(points, 1000, base::Stream(3, "draws"));
  for (std::size_t p = 0; p < points.size(); ++p) {
    std::vector<double> values;
    for (const std::vector<double>& draw : draws) values.push_back(draw[p]);
    EXPECT_NEAR(base::median(values), wave(points[p].at[0]), 0.2) << p;
  }
  EXPECT_EQ(draws, process.drawn(points, 1000, base::Stream(3, "draws")));
  ASSERT_EQ(process.left_out().size(), 60u);
  for (const GaussianProcess::LeftOut& each : process.left_out()) EXPECT_LT(std::abs(each.error), 0.7);
  EXPECT_GE(process.coverage(), 0.75);
}

// A new group's values are off together: its sum is within the interval as often as the interval says. Were their
// offsets taken as each one's own, the interval would be a third as wide.
TEST(GaussianProcess, IntervalsOfSumsHoldWhatTheySay) {
  constexpr int cases = 60;
  int inside = 0;
  std::vector<double> widths;
  for (int seed = 0; seed < cases; ++seed) {
    base::Stream stream(std::uint64_t(seed), "observations");
    std::vector<Observation> observations = groups_of(7, 0.4, stream);
    std::vector<Place> points;
    double sum = 0;
    for (; observations.back().group == 6; observations.pop_back())
      points.push_back(observations.back().place), sum += observations.back().value;
    std::vector<double> sums;
    for (const std::vector<double>& draw : GaussianProcess(observations, {0, 1}).drawn(points, 500, stream))
      sums.push_back(sum_of(draw));
    const double low = base::quantile(sums, 0.05), high = base::quantile(sums, 0.95);
    if (low <= sum && sum <= high) ++inside;
    widths.push_back(high - low);
  }
  EXPECT_GE(inside, 46) << "of " << cases;
  EXPECT_LT(base::median(widths), 2.5 * 2 * 1.64 * 10 * 0.4);
}

// What a kind has in common is known from a few of it; another kind at the same place is less certain.
TEST(GaussianProcess, KindsAreOffTogether) {
  std::vector<Observation> observations;
  base::Stream stream(4, "observations");
  for (int i = 0; i < 40; ++i) {
    const std::uint64_t kind = std::uint64_t(i % 4);
    observations.push_back({{{stream.uniform()}, kind}, double(kind) + 0.05 * stream.normal(), i % 5});
  }
  std::vector<double> known, unknown;
  for (const std::vector<double>& draw :
       GaussianProcess(observations, {0, 1}).drawn({{{0.5}, 3}, {{0.5}, 9}}, 1000, stream))
    known.push_back(draw[0]), unknown.push_back(draw[1]);
  const auto width = [](const std::vector<double>& draws) {
    return base::quantile(draws, 0.95) - base::quantile(draws, 0.05);
  };
  EXPECT_NEAR(base::median(known), 3, 0.2);
  EXPECT_GT(width(unknown), 2 * width(known));
}

}  // namespace
}  // namespace graft::meta
