#include "meta/gradient/inner_loop.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace graft::meta {
namespace {

struct Case {
  std::unique_ptr<NetworkOf<double>> network;
  std::vector<double> theta;
  Batch<double> support, query;

  explicit Case(std::uint64_t seed, const NetworkShape& shape = {6, {10, 7}}) : network(make_network_double(shape)) {
    base::Stream stream(seed, "inner loop case");
    for (const float value : initial_parameters(shape, seed)) theta.push_back(double(value) + 0.1 * stream.normal());
    const auto batch = [&](std::vector<std::int64_t> sizes) {
      Batch<double> out;
      std::vector<double> log_seconds;
      for (const std::int64_t size : sizes) {
        for (std::int64_t r = 0; r < size; ++r) {
          log_seconds.push_back(stream.normal());
          const std::int64_t nodes = shape.kind == NetworkKind::treegru ? 1 + stream.below(4) : 1;
          for (std::int64_t i = 0; i < nodes; ++i) {
            for (std::int64_t c = 0; c < shape.inputs; ++c) out.x.push_back(stream.normal());
            if (shape.kind == NetworkKind::treegru) out.parents.push_back(i == 0 ? -1 : std::int32_t(stream.below(i)));
          }
          out.begins.push_back(out.begins.back() + nodes);
        }
      }
      out.objective = Objective(Loss::rank, log_seconds, sizes);
      return out;
    };
    support = batch({5, 8});
    query = batch({9, 6});
  }

  // One set for each step.
  Rates<double> rates(std::int64_t steps, double rate) const {
    return {steps, false, std::vector<double>(std::size_t(steps) * network->layout().size(), rate)};
  }
  // The loss after each step, weighed.
  double query_loss(const Rates<double>& rates, const std::vector<double>& from,
                    const std::vector<double>& step_weights = {}) const {
    double sum = 0;
    for (std::int64_t after = 1; after <= rates.steps; ++after) {
      const double weight = step_weights.empty() ? double(after == rates.steps) : step_weights[std::size_t(after - 1)];
      Rates<double> until = rates;
      until.steps = after;
      const std::vector<double> adapted = adapt<double>(*network, until, from, support);
      std::vector<double> scores(std::size_t(query.objective.rows()));
      network->forward(adapted, query.inputs(), scores);
      sum += weight * query.objective.value<double>(scores);
    }
    return sum;
  }
};

double norm_of_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

// Directional derivative by central differences at two step sizes; where they disagree a ReLU kink lies between, and
// the direction says nothing.
template <class F>
bool smooth_difference(const F& f, double& difference) {
  const auto at = [&](double step) { return (f(step) - f(-step)) / (2 * step); };
  difference = at(1e-5);
  return std::abs(difference - at(5e-6)) < 1e-7 * std::max(1e-2, std::abs(difference));
}

class OnEachNetwork : public testing::TestWithParam<NetworkShape> {};
INSTANTIATE_TEST_SUITE_P(InnerLoop, OnEachNetwork,
                         testing::Values(NetworkShape{6, {10, 7}},
                                         NetworkShape{6, {5}, NetworkKind::treegru, {7, 6, 3}},
                                         NetworkShape{6, {8}, NetworkKind::mlp, {}, 1, {3, false}},
                                         NetworkShape{6, {4}, NetworkKind::treegru, {5, 4, 2}, 1, {2, true}}),
                         [](const auto& tested) {
                           const NetworkShape::Context& context = tested.param.context;
                           return std::string(name_of(tested.param.kind)) + (context.size == 0    ? ""
                                                                             : context.everywhere ? "_hyper"
                                                                                                  : "_context");
                         });

TEST_P(OnEachNetwork, HessianProductAgreesWithDifferencesOfGradients) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Case c(seed, GetParam());
    base::Stream stream(seed, "directions");
    std::vector<double> v(c.theta.size()), w(c.theta.size()), product(c.theta.size()), gradient(c.theta.size());
    for (double& value : v) value = stream.normal();
    for (double& value : w) value = stream.normal();
    loss_hessian_product<double>(*c.network, c.theta, c.support, v, product);
    const double step = 1e-6;
    double sides[2], expected = 0;
    for (int side = 0; side < 2; ++side) {
      std::vector<double> moved = c.theta;
      for (std::size_t i = 0; i < moved.size(); ++i) moved[i] += (side == 0 ? step : -step) * v[i];
      loss_gradient<double>(*c.network, moved, c.support, gradient);
      sides[side] = 0;
      for (std::size_t i = 0; i < moved.size(); ++i) sides[side] += gradient[i] * w[i];
    }
    for (std::size_t i = 0; i < v.size(); ++i) expected += product[i] * w[i];
    EXPECT_NEAR(expected, (sides[0] - sides[1]) / (2 * step), 1e-7 * std::max(1.0, std::abs(expected)))
        << "seed " << seed;
  }
}

TEST_P(OnEachNetwork, MetaGradientAgreesWithCentralDifferences) {
  for (const std::int64_t steps : {1, 3, 5}) {
    int judged = 0;
    double first_order_error = 0;
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      const Case c(seed, GetParam());
      const Rates<double> rates = c.rates(steps, 0.3);
      const auto exact = meta_gradient<double>(*c.network, OuterRule::second_order, rates, c.theta, c.support, c.query);
      const auto first = meta_gradient<double>(*c.network, OuterRule::first_order, rates, c.theta, c.support, c.query);
      EXPECT_DOUBLE_EQ(exact.query_loss, c.query_loss(rates, c.theta));
      base::Stream stream(seed, "directions");
      for (int direction = 0; direction < 5; ++direction) {
        std::vector<double> v(c.theta.size());
        double by_exact = 0, by_first = 0, difference = 0;
        for (std::size_t i = 0; i < v.size(); ++i) {
          v[i] = stream.normal();
          by_exact += v[i] * exact.theta[i];
          by_first += v[i] * first.theta[i];
        }
        const auto along = [&](double step) {
          std::vector<double> moved = c.theta;
          for (std::size_t i = 0; i < moved.size(); ++i) moved[i] += step * v[i];
          return c.query_loss(rates, moved);
        };
        if (!smooth_difference(along, difference)) continue;
        ++judged;
        EXPECT_LT(std::abs(by_exact - difference), 1e-6 * std::max(1e-2, std::abs(difference)))
            << steps << " steps, seed " << seed << ", direction " << direction;
        first_order_error = std::max(first_order_error, std::abs(by_first - difference) / std::abs(difference));
      }
    }
    EXPECT_GE(judged, 15) << steps << " steps: too many directions cross a kink";
    EXPECT_GT(first_order_error, 1e-2) << steps << " steps: the check could not tell first order from second";
  }
}

TEST(InnerLoop, GradientByRatesAgreesWithCentralDifferences) {
  const Case c(2);
  const Rates<double> rates = c.rates(3, 0.2);
  const auto exact = meta_gradient<double>(*c.network, OuterRule::second_order, rates, c.theta, c.support, c.query);
  int judged = 0;
  for (std::size_t i = 0; i < rates.values.size(); ++i) {
    double difference = 0;
    const auto along = [&](double step) {
      Rates<double> moved = rates;
      moved.values[i] += step;
      return c.query_loss(moved, c.theta);
    };
    if (!smooth_difference(along, difference)) continue;
    ++judged;
    EXPECT_NEAR(exact.rates[i], difference, 1e-6 * std::max(1e-2, std::abs(difference))) << "rate " << i;
  }
  EXPECT_GE(judged, 12);
}

// MAML++'s outer loss, and Meta-SGD's rates: one a parameter, the same for all steps.
TEST_P(OnEachNetwork, StepLossesAndRatesOfParametersAgreeWithCentralDifferences) {
  const std::vector<double> step_weights = {0.2, 0.3, 0.5};
  int judged = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const Case c(seed, GetParam());
    base::Stream stream(seed, "directions");
    Rates<double> rates{3, true, {}};
    for (std::size_t i = 0; i < c.theta.size(); ++i) rates.values.push_back(0.2 * stream.normal());
    const auto exact =
        meta_gradient<double>(*c.network, OuterRule::second_order, rates, c.theta, c.support, c.query, step_weights);
    EXPECT_NEAR(exact.query_loss, c.query_loss(rates, c.theta, step_weights), 1e-12);
    for (const bool by_rates : {false, true}) {
      for (int direction = 0; direction < 3; ++direction) {
        std::vector<double> v(c.theta.size());
        double by_exact = 0, difference = 0;
        for (std::size_t i = 0; i < v.size(); ++i) {
          v[i] = stream.normal();
          by_exact += v[i] * (by_rates ? exact.rates[i] : exact.theta[i]);
        }
        const auto along = [&](double step) {
          std::vector<double> moved = c.theta;
          Rates<double> moved_rates = rates;
          for (std::size_t i = 0; i < v.size(); ++i) (by_rates ? moved_rates.values[i] : moved[i]) += step * v[i];
          return c.query_loss(moved_rates, moved, step_weights);
        };
        if (!smooth_difference(along, difference)) continue;
        ++judged;
        EXPECT_LT(std::abs(by_exact - difference), 1e-6 * std::max(1e-2, std::abs(difference)))
            << "seed " << seed << (by_rates ? ", by rates" : ", by parameters");
      }
    }
  }
  EXPECT_GE(judged, 12) << "too many directions cross a kink";
}

TEST(InnerLoop, FirstOrderTendsToSecondOrderLinearlyInTheRate) {
  const Case c(3);
  std::vector<double> gaps;
  for (const double rate : {1e-3, 1e-4, 1e-5}) {
    const Rates<double> rates = c.rates(3, rate);
    const auto exact = meta_gradient<double>(*c.network, OuterRule::second_order, rates, c.theta, c.support, c.query);
    const auto first = meta_gradient<double>(*c.network, OuterRule::first_order, rates, c.theta, c.support, c.query);
    gaps.push_back(norm_of_difference(exact.theta, first.theta));
  }
  EXPECT_GT(gaps[2], 0);
  EXPECT_NEAR(gaps[0] / gaps[1], 10, 1);
  EXPECT_NEAR(gaps[1] / gaps[2], 10, 0.1);
}

TEST(InnerLoop, FirstOrderIsTheGradientAtTheAdaptedParameters) {
  const Case c(4);
  const Rates<double> rates = c.rates(4, 0.1);
  const auto first = meta_gradient<double>(*c.network, OuterRule::first_order, rates, c.theta, c.support, c.query);
  std::vector<double> gradient(c.theta.size());
  loss_gradient<double>(*c.network, adapt<double>(*c.network, rates, c.theta, c.support), c.query, gradient);
  EXPECT_EQ(first.theta, gradient);
}

TEST(InnerLoop, ReptileIsTheWayBack) {
  const Case c(5);
  const Rates<double> rates = c.rates(4, 0.1);
  const std::vector<double> adapted = adapt<double>(*c.network, rates, c.theta, c.support);
  const auto towards = meta_gradient<double>(*c.network, OuterRule::towards, rates, c.theta, c.support, c.query);
  for (std::size_t i = 0; i < adapted.size(); ++i) EXPECT_DOUBLE_EQ(towards.theta[i], c.theta[i] - adapted[i]);
}

TEST(InnerLoop, BlocksWithRateZeroStayWhereTheyAre) {
  const Case c(6);
  Rates<double> rates{3, false, {}};  // one set for all steps
  for (const ParameterBlock& block : c.network->layout()) rates.values.push_back(block.head ? 0.2 : 0.0);
  const std::vector<double> adapted = adapt<double>(*c.network, rates, c.theta, c.support);
  bool head_moved = false;
  for (const ParameterBlock& block : c.network->layout()) {
    for (std::int64_t i = block.offset; i < block.offset + block.size; ++i) {
      const bool moved = adapted[std::size_t(i)] != c.theta[std::size_t(i)];
      if (block.head) {
        head_moved |= moved;
      } else {
        EXPECT_FALSE(moved) << block.name;
      }
    }
  }
  EXPECT_TRUE(head_moved);
}

TEST(InnerLoop, EmptySupportChangesNothing) {
  const Case c(7);
  EXPECT_EQ(adapt<double>(*c.network, c.rates(3, 0.5), c.theta, Batch<double>{}), c.theta);
}

}  // namespace
}  // namespace graft::meta
