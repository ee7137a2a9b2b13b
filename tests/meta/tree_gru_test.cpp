#include "meta/networks/tree_gru.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/error.h"
#include "base/random.h"
#include "meta/networks/packed_trees.h"
#include "tests/meta/torch/plugin.h"

namespace graft::meta {
namespace {

// Random trees, some of them grown from the same few subtrees, so that there is something to share.
template <class T>
struct Trees {
  std::vector<T> x;
  std::vector<std::int64_t> begins{0};
  std::vector<std::int32_t> parents;
  Inputs<T> inputs() const { return {x, begins, parents}; }
};

// Features are drawn from a few values: equal subtrees within a program and across programs come up by themselves.
template <class T>
Trees<T> random_trees(std::int64_t programs, std::int64_t columns, std::uint64_t seed, std::int64_t kinds = 3,
                      std::int64_t most_nodes = 9) {
  base::Stream stream(seed, "trees");
  std::vector<std::vector<double>> features;
  for (std::int64_t k = 0; k < kinds; ++k) {
    features.emplace_back();
    for (std::int64_t c = 0; c < columns; ++c) features.back().push_back(stream.normal());
  }
  Trees<T> trees;
  for (std::int64_t p = 0; p < programs; ++p) {
    const std::int64_t nodes = 1 + stream.below(most_nodes);
    for (std::int64_t i = 0; i < nodes; ++i) {
      // Programs may be forests: a later node without a parent is a root like the first.
      trees.parents.push_back(i == 0 || stream.below(8) == 0 ? -1 : std::int32_t(stream.below(i)));
      for (const double value : features[std::size_t(stream.below(kinds))]) trees.x.push_back(T(value));
    }
    trees.begins.push_back(std::int64_t(trees.parents.size()));
  }
  return trees;
}

NetworkShape shape_of(std::int64_t inputs, std::vector<std::int64_t> hidden, NetworkShape::Tree tree) {
  return {inputs, std::move(hidden), NetworkKind::treegru, tree};
}
const std::vector<NetworkShape> shapes = {shape_of(5, {}, {4, 6, 3}),
                                          shape_of(3, {5}, {7, 4, 1}),
                                          shape_of(20, {8, 3}, {16, 17, 2}),
                                          {4, {5}, NetworkKind::treegru, {4, 5, 2}, 3}};

template <class T>
std::vector<T> normals(std::int64_t count, std::uint64_t seed, std::string_view name) {
  base::Stream stream(seed, name);
  std::vector<T> out;
  for (std::int64_t i = 0; i < count; ++i) out.push_back(T(stream.normal()));
  return out;
}

std::vector<double> start(const NetworkShape& shape, std::uint64_t seed) {
  std::vector<double> theta;
  base::Stream stream(seed, "shift");  // biases away from zero, so that no test passes because they are
  for (const float value : initial_parameters(shape, seed)) theta.push_back(double(value) + 0.1 * stream.normal());
  return theta;
}

std::vector<double> along(const std::vector<double>& theta, const std::vector<double>& v, double step) {
  std::vector<double> out = theta;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] += step * v[i];
  return out;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

double relative(double got, double expected) {
  return std::abs(got - expected) / std::max(1e-3, std::abs(expected));
}

struct Results {
  std::vector<double> scores, gradient, tangent, second;
};

template <class T>
Results results_of(const NetworkOf<T>& network, const std::vector<T>& theta, const Inputs<T>& trees,
                   std::uint64_t seed) {
  const std::int64_t outputs = trees.programs() * network.outputs();
  const std::vector<T> u = normals<T>(outputs, seed, "u"), du = normals<T>(outputs, seed, "du"),
                       v = normals<T>(std::int64_t(theta.size()), seed, "v");
  std::vector<T> scores(u.size()), tangent(u.size()), gradient(theta.size()), second(theta.size());
  const auto tape = network.forward(theta, trees, scores);
  network.backward(theta, *tape, u, gradient);
  const auto tangent_tape = network.tangent_forward(theta, *tape, v, tangent);
  network.tangent_backward(theta, *tape, *tangent_tape, v, u, du, second);
  const auto doubles = [](const std::vector<T>& from) { return std::vector<double>(from.begin(), from.end()); };
  return {doubles(scores), doubles(gradient), doubles(tangent), doubles(second)};
}

void expect_near(const std::vector<double>& got, const std::vector<double>& expected, double tolerance,
                 const std::string& what) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], expected[i], tolerance * std::max(1.0, std::abs(expected[i]))) << what << " " << i;
}
void expect_near(const Results& got, const Results& expected, double tolerance) {
  expect_near(got.scores, expected.scores, tolerance, "score");
  expect_near(got.gradient, expected.gradient, tolerance, "gradient");
  expect_near(got.tangent, expected.tangent, tolerance, "tangent");
  expect_near(got.second, expected.second, tolerance, "second");
}

TEST(TreeGru, LayoutCoversTheParametersAndMarksTheHead) {
  for (const NetworkShape& shape : shapes) {
    const auto network = make_network(shape);
    std::int64_t offset = 0;
    for (const ParameterBlock& block : network->layout()) {
      EXPECT_EQ(block.offset, offset);
      offset += block.size;
      EXPECT_EQ(block.head, block.name.starts_with("decoder" + std::to_string(shape.hidden.size())));
    }
    EXPECT_EQ(offset, network->parameters());
    EXPECT_EQ(offset, parameter_count(shape));
  }
}

// The definition of tree_gru.h, one node after the other, in plain loops.
TEST(TreeGru, ScoresAreThoseOfTheDefinition) {
  const NetworkShape shape = shapes[1];  // one hidden layer behind one slot
  const auto network = make_network_double(shape);
  const std::vector<double> theta = start(shape, 3);
  const Trees<double> trees = random_trees<double>(12, shape.inputs, 4);
  std::map<std::string, const double*> at;
  for (const ParameterBlock& block : network->layout()) at[block.name] = theta.data() + block.offset;
  const auto layer = [&](const std::vector<double>& in, const std::string& name, std::size_t out) {
    std::vector<double> y(at[name + ".bias"], at[name + ".bias"] + out);
    for (std::size_t i = 0; i < in.size(); ++i) {
      for (std::size_t j = 0; j < out; ++j) y[j] += in[i] * at[name + ".weight"][i * out + j];
    }
    return y;
  };
  const auto rectified = [](std::vector<double> values) {
    for (double& value : values) value = std::max(value, 0.0);
    return values;
  };
  const auto joined = [](std::vector<double> a, const std::vector<double>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  const std::size_t units = std::size_t(shape.tree.units);
  const auto columns = std::size_t(shape.inputs);
  std::vector<double> expected;
  for (std::size_t p = 0; p + 1 < trees.begins.size(); ++p) {
    const std::int64_t first = trees.begins[p], count = trees.begins[p + 1] - first;
    std::vector<std::vector<double>> sums(std::size_t(count), std::vector<double>(units, 0.0));
    std::vector<double> slot(units, 0.0);
    for (std::int64_t i = count; i-- > 0;) {
      const double* x = trees.x.data() + std::size_t(first + i) * columns;
      const std::vector<double> e = rectified(layer({x, x + columns}, "embedding", std::size_t(shape.tree.embedding)));
      const std::vector<double>& s = sums[std::size_t(i)];
      std::vector<double> gates = layer(joined(s, e), "gates", 2 * units), rs = s;
      for (double& gate : gates) gate = 1 / (1 + std::exp(-gate));
      for (std::size_t j = 0; j < units; ++j) rs[j] *= gates[j];
      const std::vector<double> n = layer(joined(e, rs), "state", units);
      const std::int32_t parent = trees.parents[std::size_t(first + i)];
      for (std::size_t j = 0; j < units; ++j) {
        const double z = gates[units + j], h = (1 - z) * std::tanh(n[j]) + z * s[j];
        slot[j] += h;  // the one slot takes everything
        if (parent >= 0) sums[std::size_t(parent)][j] += h;
      }
    }
    expected.push_back(layer(rectified(layer(slot, "decoder0", 5)), "decoder1", 1)[0]);
  }
  std::vector<double> scores(expected.size());
  network->score(theta, trees.inputs(), scores);
  expect_near(scores, expected, 1e-12, "program");
}

TEST(TreeGru, DerivativesAgreeWithCentralDifferences) {
  for (const NetworkShape& shape : shapes) {
    const auto network = make_network_double(shape);
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      const std::vector<double> theta = start(shape, seed);
      const Trees<double> trees = random_trees<double>(10, shape.inputs, seed);
      const std::int64_t outputs = trees.inputs().programs() * shape.outputs, count = std::int64_t(theta.size());
      const Results at = results_of(*network, theta, trees.inputs(), seed);
      const std::vector<double> u = normals<double>(outputs, seed, "u"), du = normals<double>(outputs, seed, "du"),
                                v = normals<double>(count, seed, "v"), w = normals<double>(count, seed, "w");
      const auto scores = [&](double step) {
        std::vector<double> out(u.size());
        network->score(along(theta, v, step), trees.inputs(), out);
        return out;
      };
      const auto gradient = [&](double step) {
        std::vector<double> out(u.size()), slope(theta.size());
        const std::vector<double> moved = along(theta, v, step);
        const auto tape = network->forward(moved, trees.inputs(), out);
        network->backward(moved, *tape, along(u, du, step), slope);
        return slope;
      };
      const double step = 1e-6;
      const std::vector<double> up = scores(step), down = scores(-step);
      EXPECT_LT(relative(dot(at.gradient, v), (dot(up, u) - dot(down, u)) / (2 * step)), 1e-6) << "seed " << seed;
      for (std::size_t p = 0; p < up.size(); ++p)
        EXPECT_LT(relative(at.tangent[p], (up[p] - down[p]) / (2 * step)), 1e-6) << "seed " << seed;
      EXPECT_LT(relative(dot(at.second, w), (dot(gradient(step), w) - dot(gradient(-step), w)) / (2 * step)), 1e-6)
          << "seed " << seed;
    }
  }
}

TEST(TreeGru, SharingEqualSubtreesChangesNothing) {
  for (const NetworkShape& shape : shapes) {
    const Trees<double> trees = random_trees<double>(40, shape.inputs, 8);
    const PackedTrees shared = pack(trees.inputs(), shape.inputs, true),
                      plain = pack(trees.inputs(), shape.inputs, false);
    EXPECT_EQ(plain.nodes(), trees.inputs().rows());
    EXPECT_LT(shared.nodes(), plain.nodes() * 3 / 4);
    const std::vector<double> theta = start(shape, 8);
    expect_near(results_of(*make_native_tree_gru<double>(shape, true), theta, trees.inputs(), 8),
                results_of(*make_native_tree_gru<double>(shape, false), theta, trees.inputs(), 8), 1e-11);
  }
}

TEST(TreeGru, EqualNodesAreThereOnceAndOthersAreKeptApart) {
  // Two programs: a root over (leaf a, leaf a), and the same root over (leaf a, leaf b); features of one column.
  const std::vector<double> x = {7, 1, 1, /**/ 7, 1, 2};
  const std::vector<std::int64_t> begins = {0, 3, 6};
  const std::vector<std::int32_t> parents = {-1, 0, 0, -1, 0, 0};
  const PackedTrees packed = pack<double>({x, begins, parents}, 1, true);
  EXPECT_EQ(packed.levels, (std::vector<std::int64_t>{0, 2, 4}));  // leaves a and b; two roots
  EXPECT_EQ(packed.node_of_row[1], packed.node_of_row[2]);
  EXPECT_EQ(packed.node_of_row[1], packed.node_of_row[4]);
  EXPECT_NE(packed.node_of_row[4], packed.node_of_row[5]);
  EXPECT_NE(packed.node_of_row[0], packed.node_of_row[3]);
  for (std::int64_t node = 0; node < packed.nodes(); ++node) {
    EXPECT_EQ(packed.node_of_row[std::size_t(packed.rows[std::size_t(node)])], node);
  }
}

TEST(TreeGru, ABatchScoresAsItsProgramsOneByOne) {
  const NetworkShape shape = shape_of(20, {16}, {32, 24, 4});
  const auto network = make_network(shape);
  const std::vector<float> theta = initial_parameters(shape, 5);
  const Trees<float> trees = random_trees<float>(50, shape.inputs, 5, 6, 30);
  std::vector<float> together(50), taped(50);
  network->score(theta, trees.inputs(), together);
  network->forward(theta, trees.inputs(), taped);
  EXPECT_EQ(together, taped);
  for (std::size_t p = 0; p < together.size(); ++p) {
    const std::int64_t first = trees.begins[p], count = trees.begins[p + 1] - first;
    const std::vector<std::int64_t> begins = {0, count};
    float alone = 0;
    network->score(theta,
                   {std::span(trees.x).subspan(std::size_t(first * 20), std::size_t(count * 20)), begins,
                    std::span(trees.parents).subspan(std::size_t(first), std::size_t(count))},
                   {&alone, 1});
    EXPECT_NEAR(alone, together[p], 2e-4f * std::max(1.0f, std::abs(alone))) << p;
  }
}

TEST(TreeGru, FloatFollowsDouble) {
  const NetworkShape shape = shape_of(30, {16}, {32, 40, 8});
  const std::vector<float> theta = initial_parameters(shape, 6);
  const Trees<double> trees = random_trees<double>(20, shape.inputs, 6, 9, 25);
  const Trees<float> rounded{{trees.x.begin(), trees.x.end()}, trees.begins, trees.parents};
  const std::vector<double> precise(theta.begin(), theta.end());
  // Directions are rounded in one and not in the other; hence the tolerance.
  expect_near(results_of(*make_network(shape), theta, rounded.inputs(), 6),
              results_of(*make_network_double(shape), precise, trees.inputs(), 6), 2e-3);
}

TEST(TreeGru, AgreesWithLibTorch) {
  if (!has_torch()) GTEST_SKIP() << "configured without LibTorch";
  for (const NetworkShape& shape : shapes) {
    const auto torch = torch_network_double(shape);
    EXPECT_EQ(torch->inputs(), shape.inputs);
    EXPECT_EQ(torch->parameters(), parameter_count(shape));
    const std::vector<double> theta = start(shape, 9);
    const Trees<double> trees = random_trees<double>(15, shape.inputs, 9);
    expect_near(results_of(*make_network_double(shape), theta, trees.inputs(), 9),
                results_of(*torch, theta, trees.inputs(), 9), 1e-10);
  }
  // Single precision, and without a graph.
  const NetworkShape shape = shape_of(30, {16}, {32, 40, 8});
  const std::vector<float> theta = initial_parameters(shape, 2);
  const Trees<float> trees = random_trees<float>(20, 30, 2, 9, 25);
  std::vector<float> ours(20), theirs(20);
  make_network(shape)->score(theta, trees.inputs(), ours);
  torch_network_float(shape)->score(theta, trees.inputs(), theirs);
  for (std::size_t p = 0; p < ours.size(); ++p)
    EXPECT_NEAR(ours[p], theirs[p], 1e-4f * std::max(1.0f, std::abs(theirs[p])));
}

}  // namespace
}  // namespace graft::meta
