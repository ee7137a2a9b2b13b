#include "meta/network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "tests/meta/torch/plugin.h"

namespace graft::meta {
namespace {

template <class T>
std::vector<T> normals(std::int64_t count, std::uint64_t seed, std::string_view name) {
  base::Stream stream(seed, name);
  std::vector<T> out;
  for (std::int64_t i = 0; i < count; ++i) out.push_back(T(stream.normal()));
  return out;
}

std::vector<double> start(const NetworkShape& shape, std::uint64_t seed) {
  const std::vector<float> theta = initial_parameters(shape, seed);
  std::vector<double> out(theta.begin(), theta.end());
  // Biases away from zero, so that no test passes because they are.
  const std::vector<double> shift = normals<double>(std::int64_t(out.size()), seed, "shift");
  for (std::size_t i = 0; i < out.size(); ++i) out[i] += 0.1 * shift[i];
  return out;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

std::vector<double> along(const std::vector<double>& theta, const std::vector<double>& v, double step) {
  std::vector<double> out = theta;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] += step * v[i];
  return out;
}

double relative(double got, double expected) {
  return std::abs(got - expected) / std::max(1e-3, std::abs(expected));
}

const std::vector<NetworkShape> shapes = {{7, {}},
                                          {5, {9}},
                                          {11, {8, 6}},
                                          {6, {7, 5, 4}},
                                          {.inputs = 5, .hidden = {6}, .outputs = 3},
                                          {.inputs = 4, .hidden = {}, .outputs = 2}};
// Programs of one row and of several.
const std::vector<std::int64_t> begins = {0, 1, 2, 5, 6, 8, 9, 10, 12, 13};
constexpr std::int64_t rows = 13, programs = 9;

template <class T>
Inputs<T> inputs(const std::vector<T>& x) {
  return {x, begins, {}};
}

std::vector<double> scores_of(const NetworkOf<double>& network, const std::vector<double>& theta,
                              const std::vector<double>& x) {
  std::vector<double> scores(std::size_t(programs * network.outputs()));
  network.forward(theta, inputs(x), scores);
  return scores;
}

std::vector<double> backward_of(const NetworkOf<double>& network, const std::vector<double>& theta,
                                const std::vector<double>& x, const std::vector<double>& u) {
  std::vector<double> scores(u.size()), gradient(theta.size());
  const auto tape = network.forward(theta, inputs(x), scores);
  network.backward(theta, *tape, u, gradient);
  return gradient;
}

TEST(Network, LayoutCoversTheParametersAndMarksTheHead) {
  const auto network = make_network({11, {8, 6}});
  std::int64_t offset = 0;
  for (const ParameterBlock& block : network->layout()) {
    EXPECT_EQ(block.offset, offset);
    offset += block.size;
    EXPECT_EQ(block.head, block.name.starts_with("layer2."));
  }
  EXPECT_EQ(offset, network->parameters());
  EXPECT_EQ(offset, 11 * 8 + 8 + 8 * 6 + 6 + 6 + 1);
}

TEST(Network, ForwardByHand) {
  const auto network = make_network_double({2, {2}});
  // weight (in x out) {{1, -1}, {2, 0}}, bias {0.5, 0}, head {3, 4}, bias -1
  const std::vector<double> theta = {1, -1, 2, 0, 0.5, 0, 3, 4, -1};
  const std::vector<double> x = {1, 2, /**/ -3, 1};
  std::vector<double> scores(2);
  const std::vector<std::int64_t> one_each = {0, 1, 2}, both = {0, 2};
  network->forward(theta, {x, one_each, {}}, scores);
  EXPECT_DOUBLE_EQ(scores[0], 3 * (1 + 4 + 0.5) + 4 * 0 - 1);  // second unit is -1: cut off
  EXPECT_DOUBLE_EQ(scores[1], 3 * 0 + 4 * 3 - 1);              // first unit is -0.5: cut off
  std::vector<double> sum(1);
  network->forward(theta, {x, both, {}}, sum);  // one program of two rows: units sum to 5.5 and 3
  EXPECT_DOUBLE_EQ(sum[0], 3 * 5.5 + 4 * 3 - 1);
  const std::vector<double> linear = {2, 3, 5};  // without hidden layers: of the sum of rows
  make_network_double({2, {}})->forward(linear, {x, both, {}}, sum);
  EXPECT_DOUBLE_EQ(sum[0], 2 * (1 - 3) + 3 * (2 + 1) + 5);
}

// Scoring cuts a batch into parts; a program's score does not depend on them.
TEST(Network, ScoresOfManyRowsAreThoseOfForward) {
  const NetworkShape shape{9, {17, 6}};
  const auto network = make_network(shape);
  const std::vector<float> theta = initial_parameters(shape, 2), x = normals<float>(900 * shape.inputs, 2, "x");
  std::vector<std::int64_t> ones(901), mixed{0};
  for (std::size_t p = 0; p < ones.size(); ++p) ones[p] = std::int64_t(p);
  while (mixed.back() < 900)
    mixed.push_back(std::min<std::int64_t>(900, mixed.back() + std::int64_t(mixed.size() * 3 % 40)));
  for (const std::vector<std::int64_t>& begins_of : {ones, mixed}) {
    std::vector<float> once(begins_of.size() - 1), scored(once);
    network->forward(theta, {x, begins_of, {}}, once);
    network->score(theta, {x, begins_of, {}}, scored);
    for (std::size_t p = 0; p < once.size(); ++p) EXPECT_NEAR(scored[p], once[p], 1e-4f) << p;
  }
}

TEST(Network, BackwardAgreesWithCentralDifferences) {
  for (const NetworkShape& shape : shapes) {
    const auto network = make_network_double(shape);
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      const std::vector<double> theta = start(shape, seed), x = normals<double>(rows * shape.inputs, seed, "x"),
                                u = normals<double>(programs * shape.outputs, seed, "u");
      const std::vector<double> gradient = backward_of(*network, theta, x, u);
      const std::vector<double> v = normals<double>(std::int64_t(theta.size()), seed, "v");
      const double step = 1e-6;
      const double difference = (dot(scores_of(*network, along(theta, v, step), x), u) -
                                 dot(scores_of(*network, along(theta, v, -step), x), u)) /
                                (2 * step);
      EXPECT_LT(relative(dot(gradient, v), difference), 1e-7) << "seed " << seed << ", layers " << shape.hidden.size();
    }
  }
}

TEST(Network, TangentsAgreeWithCentralDifferences) {
  for (const NetworkShape& shape : shapes) {
    const auto network = make_network_double(shape);
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      const std::vector<double> theta = start(shape, seed), x = normals<double>(rows * shape.inputs, seed, "x"),
                                u = normals<double>(programs * shape.outputs, seed, "u"),
                                du = normals<double>(programs * shape.outputs, seed, "du"),
                                v = normals<double>(std::int64_t(theta.size()), seed, "v"),
                                w = normals<double>(std::int64_t(theta.size()), seed, "w");
      std::vector<double> scores(u.size()), tangent(u.size()), gradient(theta.size());
      const auto tape = network->forward(theta, inputs(x), scores);
      const auto tangent_tape = network->tangent_forward(theta, *tape, v, tangent);
      network->tangent_backward(theta, *tape, *tangent_tape, v, u, du, gradient);

      const double step = 1e-6;
      const std::vector<double> up = scores_of(*network, along(theta, v, step), x),
                                down = scores_of(*network, along(theta, v, -step), x);
      for (std::size_t r = 0; r < u.size(); ++r) {
        EXPECT_NEAR(tangent[r], (up[r] - down[r]) / (2 * step), 1e-7 * std::max(1.0, std::abs(tangent[r])))
            << "seed " << seed;
      }
      const double difference = (dot(backward_of(*network, along(theta, v, step), x, along(u, du, step)), w) -
                                 dot(backward_of(*network, along(theta, v, -step), x, along(u, du, -step)), w)) /
                                (2 * step);
      EXPECT_LT(relative(dot(gradient, w), difference), 1e-7) << "seed " << seed << ", layers " << shape.hidden.size();
    }
  }
}

TEST(Network, FloatFollowsDouble) {
  const NetworkShape shape{50, {64, 32}};
  const auto single = make_network(shape);
  const auto precise = make_network_double(shape);
  const std::vector<float> theta = initial_parameters(shape, 3), x = normals<float>(rows * 50, 3, "x"),
                           u = normals<float>(programs, 3, "u");
  std::vector<float> scores(programs), gradient(theta.size());
  const auto tape = single->forward(theta, inputs(x), scores);
  single->backward(theta, *tape, u, gradient);
  const std::vector<double> theta2(theta.begin(), theta.end()), x2(x.begin(), x.end()), u2(u.begin(), u.end());
  const std::vector<double> expected = scores_of(*precise, theta2, x2), slope = backward_of(*precise, theta2, x2, u2);
  for (std::size_t r = 0; r < programs; ++r) EXPECT_NEAR(double(scores[r]), expected[r], 1e-4);
  for (std::size_t i = 0; i < slope.size(); ++i) EXPECT_NEAR(double(gradient[i]), slope[i], 2e-4);
}

TEST(Network, InitialParametersAreHeNormalAndSeeded) {
  const NetworkShape shape{400, {100}};
  const std::vector<float> theta = initial_parameters(shape, 5);
  EXPECT_EQ(theta, initial_parameters(shape, 5));
  EXPECT_NE(theta, initial_parameters(shape, 6));
  double squares = 0;
  for (std::size_t i = 0; i < 40000; ++i) squares += double(theta[i]) * double(theta[i]);
  EXPECT_NEAR(squares / 40000, 2.0 / 400, 2e-4);
  for (std::size_t i = 40000; i < 40100; ++i) EXPECT_EQ(theta[i], 0.0f);
}

TEST(Network, AgreesWithLibTorch) {
  if (!has_torch()) GTEST_SKIP() << "configured without LibTorch";
  for (const NetworkShape& shape : shapes) {
    const auto native = make_network_double(shape);
    const auto torch = torch_network_double(shape);
    EXPECT_EQ(torch->inputs(), native->inputs());
    EXPECT_EQ(torch->parameters(), native->parameters());
    const std::vector<double> theta = start(shape, 7), x = normals<double>(rows * shape.inputs, 7, "x"),
                              u = normals<double>(programs * shape.outputs, 7, "u"),
                              du = normals<double>(programs * shape.outputs, 7, "du"),
                              v = normals<double>(std::int64_t(theta.size()), 7, "v");
    std::vector<double> results[2];
    for (int which = 0; which < 2; ++which) {
      const NetworkOf<double>& network = which == 0 ? *native : *torch;
      std::vector<double> scores(u.size()), tangent(u.size()), gradient(theta.size()), second(theta.size());
      const auto tape = network.forward(theta, inputs(x), scores);
      network.backward(theta, *tape, u, gradient);
      const auto tangent_tape = network.tangent_forward(theta, *tape, v, tangent);
      network.tangent_backward(theta, *tape, *tangent_tape, v, u, du, second);
      for (const auto* part : {&scores, &gradient, &tangent, &second}) {
        results[which].insert(results[which].end(), part->begin(), part->end());
      }
    }
    for (std::size_t i = 0; i < results[0].size(); ++i) {
      EXPECT_NEAR(results[0][i], results[1][i], 1e-10 * std::max(1.0, std::abs(results[0][i])))
          << "layers " << shape.hidden.size();
    }
  }
  const auto native = make_network({20, {16, 8}}), torch = torch_network_float({20, {16, 8}});
  const std::vector<float> theta = initial_parameters({20, {16, 8}}, 1), x = normals<float>(rows * 20, 1, "x");
  std::vector<float> a(programs), b(programs);
  native->forward(theta, inputs(x), a);
  torch->forward(theta, inputs(x), b);
  for (std::size_t r = 0; r < programs; ++r) EXPECT_NEAR(a[r], b[r], 1e-4f);
}

}  // namespace
}  // namespace graft::meta
