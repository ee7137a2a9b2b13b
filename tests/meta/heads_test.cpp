#include "meta/methods/heads.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "meta/methods/embedding.h"

namespace graft::meta {
namespace {

constexpr std::int64_t width = 4;

Embedded embedded(std::vector<std::int64_t> sizes, std::uint64_t seed) {
  base::Stream stream(seed, "embedded");
  Embedded out;
  out.width = width;
  out.sizes = std::move(sizes);
  for (const std::int64_t size : out.sizes) {
    for (std::int64_t r = 0; r < size; ++r) {
      out.log_seconds.push_back(stream.normal() - 3);
      for (std::int64_t c = 0; c < width; ++c) out.values.push_back(stream.normal());
    }
  }
  return out;
}

Head prior(HeadKind kind, std::uint64_t seed) {
  base::Stream stream(seed, "prior");
  Head out;
  out.kind = kind;
  out.noise = 0.7;
  out.sharpness = 0.3;
  std::vector<double> factor;
  for (std::int64_t c = 0; c < width; ++c) out.mean.push_back(stream.normal());
  for (std::int64_t i = 0; i < width * width; ++i) factor.push_back(0.6 * stream.normal());
  for (std::int64_t a = 0; a < width; ++a) {
    for (std::int64_t b = 0; b < width; ++b) {
      double sum = a == b ? 0.2 : 0;
      for (std::int64_t c = 0; c < width; ++c)
        sum += factor[std::size_t(a * width + c)] * factor[std::size_t(b * width + c)];
      out.covariance.push_back(sum);
    }
  }
  return out;
}

Head scaled(Head head, double factor) {
  for (double& value : head.covariance) value *= factor;
  head.sharpness *= factor;
  return head;
}

class EveryHead : public testing::TestWithParam<HeadKind> {};
INSTANTIATE_TEST_SUITE_P(Heads, EveryHead, testing::Values(HeadKind::ridge, HeadKind::matching, HeadKind::prototype),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

// By embeddings of support and query, the prior's mean and its scale.
TEST_P(EveryHead, GradientAgreesWithCentralDifferences) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const Head head = prior(GetParam(), seed);
    const Embedded support = embedded({6, 4}, seed), query = embedded({7}, seed + 100);
    base::Stream stream(seed, "weights of scores");
    std::vector<double> by_scores;
    for (std::int64_t r = 0; r < 7; ++r) by_scores.push_back(stream.normal());
    const HeadGradient gradient = head_gradient(head, support, query.values, by_scores);
    const auto value = [&](const Head& with, const Embedded& known, const std::vector<double>& asked) {
      const std::vector<double> scores = adapted(with, known).scores(asked);
      double sum = 0;
      for (std::size_t r = 0; r < scores.size(); ++r) sum += by_scores[r] * scores[r];
      return sum;
    };
    const double step = 1e-5;
    const auto expect = [&](double got, const auto& at, const std::string& what) {
      EXPECT_NEAR(got, (at(step) - at(-step)) / (2 * step), 1e-7 * std::max(1.0, std::abs(got)))
          << what << ", seed " << seed;
    };
    for (std::size_t i = 0; i < support.values.size(); ++i) {
      expect(
          gradient.support[i],
          [&](double by) {
            Embedded moved = support;
            moved.values[i] += by;
            return value(head, moved, query.values);
          },
          "support");
    }
    for (std::size_t i = 0; i < query.values.size(); ++i) {
      expect(
          gradient.query[i],
          [&](double by) {
            std::vector<double> moved = query.values;
            moved[i] += by;
            return value(head, support, moved);
          },
          "query");
    }
    for (std::size_t i = 0; i < head.mean.size(); ++i) {
      expect(
          gradient.mean[i],
          [&](double by) {
            Head moved = head;
            moved.mean[i] += by;
            return value(moved, support, query.values);
          },
          "mean");
    }
    expect(
        gradient.log_scale, [&](double by) { return value(scaled(head, std::exp(by)), support, query.values); },
        "scale");
  }
}

// The whole way: embedding of support and query, the head's solution, the query's ranking; by the network's parameters.
TEST_P(EveryHead, GradientThroughNetworksAgreesWithCentralDifferences) {
  for (const NetworkShape& shape :
       {NetworkShape{.inputs = 5, .hidden = {7}, .outputs = width},
        NetworkShape{.inputs = 5, .hidden = {6}, .kind = NetworkKind::treegru, .tree = {5, 4, 2}, .outputs = width}}) {
    const auto network = make_network_double(shape);
    int judged = 0;
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      base::Stream stream(seed, "episode");
      Batch<double> batches[2];
      Measured measured;
      for (int part = 0; part < 2; ++part) {
        const std::vector<std::int64_t> sizes =
            part == 0 ? std::vector<std::int64_t>{5, 4} : std::vector<std::int64_t>{6, 7};
        std::vector<double> log_seconds;
        for (const std::int64_t size : sizes) {
          for (std::int64_t r = 0; r < size; ++r) {
            log_seconds.push_back(stream.normal());
            const std::int64_t nodes = shape.kind == NetworkKind::treegru ? 1 + stream.below(4) : 1;
            for (std::int64_t i = 0; i < nodes; ++i) {
              for (std::int64_t c = 0; c < shape.inputs; ++c) batches[part].x.push_back(stream.normal());
              if (shape.kind == NetworkKind::treegru)
                batches[part].parents.push_back(i == 0 ? -1 : std::int32_t(stream.below(i)));
            }
            batches[part].begins.push_back(batches[part].begins.back() + nodes);
          }
        }
        batches[part].objective = Objective(Loss::rank, log_seconds, sizes);
        if (part == 0) measured = {log_seconds, sizes};
      }
      const Head head = prior(GetParam(), seed);
      std::vector<double> theta;
      for (const float value : initial_parameters(shape, seed)) theta.push_back(double(value) + 0.1 * stream.normal());
      const auto exact = embedding_gradient<double>(*network, theta, head, batches[0], measured, batches[1]);
      for (int direction = 0; direction < 3; ++direction) {
        std::vector<double> v;
        double along = 0;
        for (std::size_t i = 0; i < theta.size(); ++i) {
          v.push_back(stream.normal());
          along += v[i] * exact.theta[i];
        }
        const auto difference = [&](double step) {
          double sides[2];
          for (int side = 0; side < 2; ++side) {
            std::vector<double> moved = theta;
            for (std::size_t i = 0; i < v.size(); ++i) moved[i] += (side == 0 ? step : -step) * v[i];
            sides[side] =
                embedding_gradient<double>(*network, moved, head, batches[0], measured, batches[1]).query_loss;
          }
          return (sides[0] - sides[1]) / (2 * step);
        };
        const double expected = difference(1e-5);
        if (std::abs(expected - difference(5e-6)) > 1e-7 * std::max(1e-2, std::abs(expected))) continue;  // a kink
        ++judged;
        EXPECT_NEAR(along, expected, 1e-6 * std::max(1e-2, std::abs(expected)))
            << name_of(shape.kind) << ", seed " << seed;
      }
    }
    EXPECT_GE(judged, 8) << "too many directions cross a kink";
  }
}

TEST_P(EveryHead, WithoutSupportChangesNothing) {
  const Head head = prior(GetParam(), 3);
  EXPECT_EQ(adapted(head, embedded({}, 1)), head);
  EXPECT_EQ(adapted(head, embedded({1, 1}, 1)), head);  // one row a group compares with nothing
  EXPECT_FALSE(adapted(head, embedded({3}, 1)) == head);
}

// A ridge's minimum: P^T (y - P w) / s = C^-1 (w - m), checked as C P^T (y - P w) = s (w - m).
TEST(RidgeHead, SolvesTheNormalEquations) {
  const Head head = prior(HeadKind::ridge, 5);
  const Embedded support = embedded({5, 3}, 5);
  const Head after = adapted(head, support);
  std::vector<double> right(width, 0.0);
  std::int64_t begin = 0;
  for (const std::int64_t size : support.sizes) {
    std::vector<double> mean(width, 0.0);
    double mean_speed = 0;
    for (std::int64_t r = begin; r < begin + size; ++r) {
      mean_speed -= support.log_seconds[std::size_t(r)] / double(size);
      for (std::int64_t c = 0; c < width; ++c)
        mean[std::size_t(c)] += support.values[std::size_t(r * width + c)] / double(size);
    }
    for (std::int64_t r = begin; r < begin + size; ++r) {
      double left = -support.log_seconds[std::size_t(r)] - mean_speed;
      for (std::int64_t c = 0; c < width; ++c) {
        left -= (support.values[std::size_t(r * width + c)] - mean[std::size_t(c)]) * after.mean[std::size_t(c)];
      }
      for (std::int64_t c = 0; c < width; ++c)
        right[std::size_t(c)] += (support.values[std::size_t(r * width + c)] - mean[std::size_t(c)]) * left;
    }
    begin += size;
  }
  for (std::int64_t a = 0; a < width; ++a) {
    double scaled_left = 0;
    for (std::int64_t b = 0; b < width; ++b)
      scaled_left += head.covariance[std::size_t(a * width + b)] * right[std::size_t(b)];
    EXPECT_NEAR(scaled_left, head.noise * (after.mean[std::size_t(a)] - head.mean[std::size_t(a)]), 1e-10);
  }
  // The belief narrows.
  const std::vector<double> x = {1, -2, 0.5, 3};
  EXPECT_LT(after.spread(x).front(), head.spread(x).front());
  EXPECT_GT(after.spread(x).front(), 0);
}

TEST(MatchingHead, IsAWeighedMeanOfTheSupport) {
  Head head = prior(HeadKind::matching, 6);
  const Embedded support = embedded({5}, 6);
  head.sharpness = 1e3;  // the nearest row alone
  const std::vector<double> at_second(support.values.begin() + width, support.values.begin() + 2 * width);
  double mean = 0;
  for (const double value : support.log_seconds) mean += value / 5;
  EXPECT_NEAR(adapted(head, support).scores(at_second).front(), mean - support.log_seconds[1], 1e-9);
  head.sharpness = 1e-12;  // all alike: nothing is left of centred speeds
  EXPECT_NEAR(adapted(head, support).scores(at_second).front(), 0, 1e-9);
}

TEST(PrototypeHead, HasThreePlaces) {
  const Head after = adapted(prior(HeadKind::prototype, 7), embedded({9, 6}, 7));
  ASSERT_EQ(after.labels.size(), 3u);
  EXPECT_GT(after.labels[0], after.labels[1]);
  EXPECT_GT(after.labels[1], after.labels[2]);
}

TEST(PrototypeHead, HasTwoPlacesForPairs) {
  const Head after = adapted(prior(HeadKind::prototype, 7), embedded({2, 2}, 7));
  ASSERT_EQ(after.labels.size(), 2u);
  EXPECT_GT(after.labels[0], after.labels[1]);
  for (const double place : after.places) EXPECT_TRUE(std::isfinite(place));
}

TEST(Heads, NamesAreKnown) {
  EXPECT_EQ(head_kind_named("matching"), HeadKind::matching);
  EXPECT_THROW(head_kind_named("ridges"), base::UserError);
}

}  // namespace
}  // namespace graft::meta
