// The network that sources share, and the platforms that do not exist.
#include "meta/gradient/platform_heads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/monitor.h"
#include "base/random.h"
#include "meta/gradient/synthetic_platforms.h"
#include "meta/metrics.h"
#include "meta/sources/trunk.h"

namespace graft::meta {
namespace {

// Groups of 40 programs whose speed is the first input times the platform's factor; the second input is noise.
std::vector<PreparedGroup> groups_of(const std::vector<std::pair<std::string, double>>& platforms, int each) {
  std::vector<PreparedGroup> out;
  base::Stream stream(7, "rows");
  for (const auto& [platform, factor] : platforms) {
    for (int g = 0; g < each; ++g) {
      base::Matrix rows(40, 2);
      std::vector<double> log_seconds;
      for (std::int64_t r = 0; r < rows.rows; ++r) {
        for (float& value : rows.row(r)) value = float(stream.normal());
        log_seconds.push_back(-factor * double(rows.at(r, 0)));
      }
      out.push_back({platform, std::make_shared<const features::Encoded>(features::one_row_each(std::move(rows))),
                     std::move(log_seconds)});
    }
  }
  return out;
}

std::vector<float> trained(std::span<const PreparedGroup> groups, int threads) {
  NetworkShape shape;
  shape.inputs = 2;
  shape.hidden = {8, 4};
  HeadsSettings settings;
  settings.batches.steps = 200;
  base::Monitor monitor;
  Stage stage{"heads", 1, 0, nullptr, &monitor};
  stage.threads = threads;
  return train_platform_heads(shape, 1, groups, settings, stage);
}

TEST(PlatformHeads, LearnWhatAllPlatformsShareOnAnyNumberOfThreads) {
  const std::vector<PreparedGroup> groups = groups_of({{"a", 1}, {"b", 100}}, 3);
  NetworkShape shape;
  shape.inputs = 2;
  shape.hidden = {8, 4};
  const std::vector<float> theta = trained(groups, 1);
  ASSERT_EQ(std::int64_t(theta.size()), parameter_count(shape));
  EXPECT_EQ(trained(groups, 3), theta);
  const auto network = make_network(shape);
  std::vector<std::int64_t> all(40);
  std::iota(all.begin(), all.end(), 0);
  for (const PreparedGroup& group : groups) EXPECT_GT(rank_correlation_of(*network, theta, {&group, all}), 0.8);
}

TEST(PlatformHeads, UnitsAreEachPlatformsSpread) {
  const std::vector<PreparedGroup> equal = in_equal_units(groups_of({{"a", 1}, {"b", 100}}, 2));
  const auto spread = [&](std::size_t first) {
    double squares = 0;
    for (std::size_t g = first; g < first + 2; ++g) {
      const std::vector<double>& labels = equal[g].log_seconds;
      const double mean = std::accumulate(labels.begin(), labels.end(), 0.0) / 40;
      for (const double label : labels) squares += (label - mean) * (label - mean) / 80;
    }
    return std::sqrt(squares);
  };
  EXPECT_NEAR(spread(0), spread(2), 1e-9 * spread(0));
  EXPECT_GT(spread(0), 30);
  EXPECT_LT(spread(0), 80);
  // Equal times have no spread, and stay.
  std::vector<PreparedGroup> flat = groups_of({{"a", 0}}, 1);
  EXPECT_EQ(in_equal_units(flat)[0].log_seconds, flat[0].log_seconds);
}

// Against the network's own score: with the head, the last hidden layer is all of it but for the bias.
TEST(Trunk, HiddenOutputsAreWhatTheHeadSees) {
  Trunk trunk;
  trunk.normalisation = {{0, 0, 0}, {1, 1, 1}};
  trunk.shape.inputs = 3;
  trunk.shape.hidden = {7, 5};
  trunk.theta = initial_parameters(trunk.shape, 1);
  features::Encoded programs;
  base::Stream stream(1, "programs");
  for (std::int64_t p = 0; p < 300; ++p) {  // of one to three rows
    base::Matrix rows(1 + p % 3, 3);
    for (float& value : rows.values) value = float(stream.normal());
    features::Encoded one{rows, {0, rows.rows}, {}, {}};
    features::append(programs, one);
  }
  const base::Matrix hidden = trunk.of(programs);
  ASSERT_EQ(hidden.rows, 300);
  ASSERT_EQ(hidden.columns, 12);
  const std::vector<float> head = trunk.head();
  std::vector<float> scores(300);
  const features::Encoded x = trunk.normalisation.apply(programs);
  make_network(trunk.shape)->score(trunk.theta, inputs_of(x), scores);
  for (std::int64_t p = 0; p < 300; ++p) {
    const auto row = hidden.row(p);
    EXPECT_NEAR(std::inner_product(row.begin(), row.end(), head.begin(), trunk.theta.back()), scores[std::size_t(p)],
                1e-4)
        << p;
    EXPECT_TRUE(std::all_of(row.begin(), row.end(), [](float value) { return value >= 0; })) << p;
  }
}

TEST(SyntheticPlatforms, AreMixturesOfWhatSourcesSay) {
  const std::vector<PreparedGroup> groups = groups_of({{"a", 1}, {"b", 2}}, 2);
  std::vector<base::Matrix> predictions;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    base::Matrix each(40, 2);
    for (std::int64_t p = 0; p < 40; ++p) each.at(p, 0) = float(p % 7), each.at(p, 1) = float(p % 5);
    predictions.push_back(each);
  }
  const SyntheticPlatforms synthetic(groups, {"a", "b"}, predictions);
  EXPECT_TRUE(SyntheticPlatforms().empty());
  ASSERT_FALSE(synthetic.empty());
  EXPECT_FALSE(synthetic.only(groups).empty());
  EXPECT_TRUE(synthetic.only(std::span(groups).first(2)).empty());  // one platform has nothing to be mixed with
  base::Stream stream(1, "draws");
  bool differs = false;
  for (int draw = 0; draw < 10; ++draw) {
    const std::vector<PreparedGroup> mixed = synthetic.draw(stream);
    ASSERT_EQ(mixed.size(), 2u);
    ASSERT_EQ(mixed[0].platform, mixed[1].platform);
    const std::size_t first = mixed[0].platform == "a" ? 0 : 2, mine = mixed[0].platform == "a" ? 0 : 1;
    // Two weights explain all times but for an offset: solved from three programs, they hold for the others.
    const auto measured = [&](std::size_t p) { return -groups[first].log_seconds[p]; };
    const auto predicted = [&](std::size_t p) {
      return double(predictions[first].at(std::int64_t(p), 1 - std::int64_t(mine)));
    };
    const auto speed = [&](std::size_t p) { return -mixed[0].log_seconds[p]; };
    const double a1 = measured(1) - measured(0), b1 = predicted(1) - predicted(0), y1 = speed(1) - speed(0);
    const double a2 = measured(2) - measured(0), b2 = predicted(2) - predicted(0), y2 = speed(2) - speed(0);
    const double det = a1 * b2 - a2 * b1, u = (y1 * b2 - y2 * b1) / det, v = (a1 * y2 - a2 * y1) / det;
    for (std::size_t p = 3; p < 40; ++p)
      EXPECT_NEAR(speed(p) - speed(0), u * (measured(p) - measured(0)) + v * (predicted(p) - predicted(0)), 1e-3);
    differs = differs || std::abs(u - 1) > 0.1;
  }
  EXPECT_TRUE(differs);
}

}  // namespace
}  // namespace graft::meta
