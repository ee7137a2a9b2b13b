// Boosted trees: growing them, scoring them, what a file may not hold, ensembles.
#include "meta/forests/forest.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/random.h"
#include "meta/forests/boosting.h"
#include "meta/methods/adaptive.h"
#include "meta/methods/embedding_model.h"
#include "meta/methods/ensemble.h"
#include "meta/methods/gbt.h"
#include "meta/methods/kernel_model.h"
#include "meta/methods/methods.h"
#include "meta/methods/nearest.h"
#include "meta/methods/network_model.h"
#include "meta/methods/random.h"
#include "meta/methods/ridge.h"
#include "meta/metrics.h"
#include "tests/meta/synthetic.h"
#include "tests/support/forests.h"

namespace graft::meta {
namespace {

base::Matrix random_rows(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  base::Matrix out(rows, columns);
  base::Stream stream(seed, "rows");
  for (float& value : out.values) value = float(stream.normal());
  return out;
}

// Trees that stop anywhere, some of a single leaf.
DecisionForest random_forest(std::int64_t trees, std::int64_t features, int depth, std::uint64_t seed) {
  base::Stream stream(seed, "forest");
  DecisionForest out;
  out.features = features;
  for (std::int64_t t = 0; t < trees; ++t) {
    const std::size_t begin = out.nodes.size();
    out.nodes.push_back({});
    std::vector<int> level{0};
    for (std::size_t i = 0; i < level.size(); ++i) {
      DecisionForest::Node node{-1, float(stream.normal()), 0};
      if (level[i] < depth && stream.uniform() < 0.8) {
        // Few distinct numbers, as in trees of binned features; rows on the boundary, too.
        node = {std::int32_t(stream.below(features)), float(stream.below(9) - 4) / 2, std::int32_t(level.size())};
        level.insert(level.end(), {level[i] + 1, level[i] + 1});
        out.nodes.resize(out.nodes.size() + 2);
      }
      out.nodes[begin + i] = node;
    }
    out.begins.push_back(std::int64_t(out.nodes.size()));
  }
  return out;
}

TEST(Forest, ScoresByHand) {
  DecisionForest forest;
  forest.features = 2;
  forest.nodes = {{1, 0.5f, 1}, {-1, 10, 0}, {0, -1, 3}, {-1, 20, 0}, {-1, 30, 0}, {-1, 0.25f, 0}};
  forest.begins = {0, 5, 6};
  const auto score = [&](float a, float b) { return score_of(forest, std::vector<float>{a, b}); };
  EXPECT_EQ(score(0, 0.25f), 10.25f);
  EXPECT_EQ(score(-2, 0.5f), 20.25f);  // the boundary goes right
  EXPECT_EQ(score(-1, 0.75f), 30.25f);
  EXPECT_EQ(score(-2, std::numeric_limits<float>::quiet_NaN()), 20.25f);
}

TEST(Forest, BlocksScoreAsRowsDo) {
  for (int depth = 0; depth <= DecisionForest::deepest; ++depth) {
    const DecisionForest forest = random_forest(30, 7, depth, std::uint64_t(depth));
    const ForestScorer scorer(forest);
    for (const std::int64_t count : {0, 1, 8, 9, 16, 17, 511, 512, 513, 700}) {
      base::Matrix rows = random_rows(count, 7, 5);
      for (std::int64_t r = 0; r < count; ++r) rows.at(r, r % 7) = std::round(rows.at(r, r % 7));
      if (count > 3) rows.at(3, 2) = std::numeric_limits<float>::quiet_NaN();
      std::vector<float> scores(rows.values.size() / 7);
      scorer.score(rows, scores);
      for (std::int64_t r = 0; r < count; ++r) {
        ASSERT_EQ(scores[std::size_t(r)], score_of(forest, rows.row(r))) << "depth " << depth << ", row " << r;
      }
    }
  }
}

// Two rows share as much as adding a number to the leaves that one ends in changes for the other.
TEST(Leaves, SharesAndNewNumbersAreThoseOfTheDefinition) {
  for (const std::int64_t trees : {1, 64, 300}) {
    const DecisionForest forest = random_forest(trees, 5, DecisionForest::deepest, std::uint64_t(trees));
    const base::Matrix some = random_rows(7, 5, 1), others = random_rows(20, 5, 2);
    const LeafTable table(forest, some);
    ASSERT_EQ(table.rows(), 7);
    const base::Matrix shared = LeafTable(forest, others).shared(table);
    ASSERT_EQ(shared.rows, 20);
    ASSERT_EQ(shared.columns, 7);
    const ForestScorer scorer(forest);
    const std::vector<float> nothing(std::size_t(trees), 0.0f);
    for (std::size_t i = 0; i < 7; ++i) {
      std::vector<float> one(7, 0.0f);
      one[i] = 1;
      const DecisionForest marked = table.relabelled(forest, nothing, one);
      std::vector<float> counts(20);
      scorer.with_leaves_of(marked).score(others, counts);
      for (std::int64_t r = 0; r < 20; ++r) {
        EXPECT_EQ(counts[std::size_t(r)], score_of(marked, others.row(r)));
        EXPECT_NEAR(counts[std::size_t(r)], shared.at(r, std::int64_t(i)), 1e-5f);
      }
    }
    EXPECT_EQ(table.shared(table).at(3, 3), 1.0f);
  }
  // By hand: leaves 10, 20 and 30 of a tree, and a tree that is one leaf.
  DecisionForest forest;
  forest.features = 2;
  forest.nodes = {{1, 0.5f, 1}, {-1, 10, 0}, {0, -1, 3}, {-1, 20, 0}, {-1, 30, 0}, {-1, 0.25f, 0}};
  forest.begins = {0, 5, 6};
  base::Matrix rows(3, 2);
  rows.values = {0, 0.25f, -2, 0.75f, 3, 0};
  const LeafTable table(forest, rows);
  const base::Matrix shared = table.shared(table);
  // The first tree counts 255, the second one 3: 0.25 is 0.0116 of the root mean square of 10, 20 and 30.
  const float first = 255.0f / 258, second = 3.0f / 258;
  EXPECT_EQ(shared.values, (std::vector<float>{1, second, 1, second, 1, second, 1, second, 1}));
  const DecisionForest moved = table.relabelled(forest, std::vector<float>{2, -4}, std::vector<float>{1, 2, 4});
  const float both = -4 * 0.25f + 7 * second;
  EXPECT_NEAR(score_of(moved, rows.row(0)), 2 * 10 + (1 + 4) * first + both, 1e-5);
  EXPECT_NEAR(score_of(moved, rows.row(1)), 2 * 20 + 2 * first + both, 1e-5);
  EXPECT_NEAR(score_of(moved, std::vector<float>{5, 1}), 2 * 30 + both, 1e-5);
}

TEST(Forest, SumsOfPartsAndFilesAreTheWhole) {
  const DecisionForest forest = random_forest(12, 4, 5, 1);
  DecisionForest all = part(forest, 0, 5);
  append(all, part(forest, 5, 12));
  EXPECT_EQ(all, forest);
  base::Arrays arrays;
  put(forest, arrays);
  EXPECT_EQ(forest_from(arrays), forest);
}

TEST(Forest, FilesThatHoldNoForestAreRefused) {
  base::Arrays good;
  put(random_forest(6, 4, 3, 2), good);
  const auto refused = [&](const std::function<void(base::Arrays&)>& tamper) {
    base::Arrays bad = good;
    tamper(bad);
    try {
      forest_from(bad);
    } catch (const base::UserError&) {
      return true;
    }
    return false;
  };
  EXPECT_FALSE(refused([](auto&) {}));
  const std::vector<float>& features = good.arrays["forest/feature"].values;
  const std::size_t inner = std::size_t(
      std::find_if(features.begin(), features.end(), [](float feature) { return feature >= 0; }) - features.begin());
  for (const float left : {0.0f, -1.0f, 1e9f, 1.5f, std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_TRUE(refused([&](auto& file) { file.arrays["forest/left"].values[inner] = left; })) << left;
  }
  for (const float feature : {4.0f, -2.0f, 0.5f, std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_TRUE(refused([&](auto& file) { file.arrays["forest/feature"].values[inner] = feature; })) << feature;
  }
  for (const float number : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_TRUE(refused([&](auto& file) { file.arrays["forest/number"].values[inner] = number; })) << number;
  }
  EXPECT_TRUE(refused([](auto& file) { file.arrays["forest/sizes"].values.back() += 1; }));
  EXPECT_TRUE(refused([](auto& file) { file.arrays["forest/sizes"].values.front() = 0; }));
  EXPECT_TRUE(refused([](auto& file) { file.arrays["forest/number"].values.pop_back(); }));
  DecisionForest deep;  // a chain of one level too many
  deep.features = 1;
  deep.nodes = {{0, 0, 1}};
  for (int level = 1; level <= DecisionForest::deepest; ++level) {
    deep.nodes.push_back({0, 0, 2 * level + 1});
    deep.nodes.push_back({-1, 1, 0});
  }
  deep.nodes.insert(deep.nodes.end(), 2, DecisionForest::Node{-1, 1, 0});
  deep.begins = {0, std::int64_t(deep.nodes.size())};
  DecisionForest stray = deep;  // leaves that nothing leads to
  stray.nodes.assign(300, DecisionForest::Node{-1, 1, 0});
  stray.begins = {0, 300};
  DecisionForest shared = deep;  // two ways to one node
  shared.nodes = {{0, 0, 1}, {0, 0, 2}, {-1, 1, 0}, {-1, 1, 0}};
  shared.begins = {0, 4};
  for (const DecisionForest& bad : {deep, stray, shared}) {
    base::Arrays arrays;
    put(bad, arrays);
    EXPECT_THROW(forest_from(arrays), base::UserError);
  }
}

TEST(Boosting, AStumpIsANewtonStep) {
  // Two rows left, two right; speeds centred: -1.5, -0.5, 0.5, 1.5. Curvature of each row: 1 - 1/4, scaled to mean 1.
  base::Matrix rows(4, 1);
  rows.values = {0, 0, 1, 1};
  const std::vector<double> log_seconds = {4, 3, 2, 1};
  const Objective objective(Loss::squared, log_seconds, std::vector<std::int64_t>{4});
  BoostingSettings settings;
  settings.trees = 1;
  settings.depth = 1;
  settings.rate = 0.5;
  settings.lambda = 2;
  const DecisionForest forest = boosted(rows, objective, std::vector<float>(4, 0.0f), settings);
  ASSERT_EQ(forest.trees(), 1);
  const double slope = 2.0 / 0.75, leaf = 0.5 * slope / (2 + 2);
  EXPECT_NEAR(double(score_of(forest, rows.row(0))), -leaf, 1e-5);
  EXPECT_NEAR(double(score_of(forest, rows.row(3))), leaf, 1e-5);
}

TEST(Boosting, LessensEveryLossFromAnyStart) {
  const base::Matrix rows = random_rows(120, 5, 1);
  std::vector<double> log_seconds;
  std::vector<float> start;
  base::Stream stream(2, "start");
  for (std::int64_t r = 0; r < 120; ++r) {
    log_seconds.push_back(double(rows.at(r, 0)) + std::abs(double(rows.at(r, 2))));
    start.push_back(float(stream.normal()));
  }
  for (const Loss loss : {Loss::rank, Loss::squared, Loss::lambda}) {
    const Objective objective(loss, log_seconds, std::vector<std::int64_t>{50, 70});
    BoostingSettings settings;
    settings.trees = 40;
    settings.depth = 3;
    std::int64_t told = 0;
    const DecisionForest forest =
        boosted(rows, objective, start, settings, [&](std::int64_t tree) { EXPECT_EQ(tree, ++told); });
    EXPECT_EQ(forest.trees(), 40);
    EXPECT_EQ(told, 40);
    std::vector<float> scores(120);
    ForestScorer(forest).score(rows, scores);
    for (std::size_t r = 0; r < 120; ++r) scores[r] += start[r];
    EXPECT_LT(objective.value<float>(scores), 0.5f * objective.value<float>(start)) << name_of(loss);
    settings.threads = 3;
    EXPECT_EQ(boosted(rows, objective, start, settings), forest) << name_of(loss);
  }
}

TEST(Boosting, NothingToCompareGivesNoTrees) {
  const base::Matrix rows = random_rows(3, 2, 1);
  BoostingSettings settings;
  settings.trees = 5;
  const Objective ties(Loss::rank, std::vector<double>{1, 1, 1}, std::vector<std::int64_t>{3});
  EXPECT_EQ(boosted(rows, ties, std::vector<float>(3), settings).trees(), 0);
  const Objective objective(Loss::rank, std::vector<double>{1, 2, 3}, std::vector<std::int64_t>{3});
  EXPECT_EQ(boosted(base::Matrix(3, 2), objective, std::vector<float>(3), settings).trees(), 0) << "equal rows";
}

TEST(Boosting, ProgramsOfSeveralRowsAreTheirSums) {
  features::Encoded programs;
  programs.rows = base::Matrix(3, 2);
  programs.rows.values = {1, 2, 3, std::numeric_limits<float>::infinity(), 5, 6};
  programs.begins = {0, 2, 3};
  EXPECT_EQ(tree_rows(programs).values, (std::vector<float>{4, 0, 5, 6}));
}

TEST(Ensemble, MeanAndSpreadAreTheMembers) {
  const TaskSet tasks = synthetic::make({});
  const features::Encoded& programs = tasks.groups.front().features;
  std::vector<std::unique_ptr<CostModel>> members;
  for (const std::uint64_t seed : {1, 2, 3}) members.push_back(make_random_model(seed));
  std::vector<Scores> each;
  for (const auto& member : members) each.push_back(member->score(programs));
  const Scores scores = make_ensemble_model(std::move(members), 1)->score(programs);
  for (std::size_t p = 0; p < scores.mean.size(); ++p) {
    const double a = double(each[0].mean[p]), b = double(each[1].mean[p]), c = double(each[2].mean[p]);
    const double mean = (a + b + c) / 3;
    EXPECT_NEAR(double(scores.mean[p]), mean, 1e-6);
    EXPECT_NEAR(double(scores.spread[p]),
                std::sqrt(((a - mean) * (a - mean) + (b - mean) * (b - mean) + (c - mean) * (c - mean)) / 2), 1e-6);
  }
}

TEST(Ensemble, MembersSeeFourFifthsOfEachGroup) {
  const TaskSet tasks = synthetic::make({});
  const auto one = bootstrap_share(tasks.groups, 1, 0), other = bootstrap_share(tasks.groups, 1, 1);
  ASSERT_EQ(one.size(), tasks.groups.size());
  EXPECT_EQ(one.front().size(), 64);
  EXPECT_NE(one.front().program_hashes, other.front().program_hashes);
  EXPECT_EQ(one.front().program_hashes, bootstrap_share(tasks.groups, 1, 0).front().program_hashes);
}

// Halves of every workload of one platform.
std::pair<TaskSet, TaskSet> halves() {
  const TaskSet all = only_platforms(synthetic::make({.rows = 240}), {"p3"});
  std::pair<TaskSet, TaskSet> out{all, all};
  std::vector<std::int64_t> first(120), second(120);
  std::iota(first.begin(), first.end(), 0);
  std::iota(second.begin(), second.end(), 120);
  for (std::size_t g = 0; g < all.groups.size(); ++g) {
    out.first.groups[g] = chosen(all.groups[g], first);
    out.second.groups[g] = chosen(all.groups[g], second);
  }
  return out;
}

double quality(const CostModel& model, const TaskSet& tasks) {
  double sum = 0;
  for (const Examples& group : tasks.groups)
    sum += rank_correlation(model.score(group.features).mean, group.log_seconds) / double(tasks.groups.size());
  return sum;
}

TEST(Gbt, RanksOtherProgramsWithEveryLoss) {
  const auto [known, judged] = halves();
  base::Monitor monitor;
  for (const Loss loss : {Loss::rank, Loss::squared, Loss::lambda}) {
    LearnerSettings settings;
    settings.loss = loss;
    const auto model = make_learner("gbt")->train(known, settings, monitor);
    EXPECT_GT(quality(*model, judged), 0.75) << name_of(loss);
    // From nothing, with all of them as support.
    const auto scratch = make_learner("gbt-scratch")->train(known, settings, monitor);
    EXPECT_EQ(scratch->score(judged.groups.front().features).mean, std::vector<float>(120, 0.0f));
    EXPECT_GT(quality(*scratch->adapted(known.groups), judged), 0.75) << name_of(loss);
  }
}

TEST(Gbt, FurtherTreesCorrectAPriorOfAnotherPlatform) {
  const auto [known, judged] = halves();
  base::Monitor monitor;
  const LearnerSettings usual;
  const auto prior = make_learner("gbt")->train(only_platforms(synthetic::make({}), {"p1"}), usual, monitor);
  EXPECT_GT(quality(*prior->adapted(known.groups), judged), quality(*prior, judged) + 0.2);
}

TEST(Ensemble, BelievesOfAnyLearnerAndThroughFiles) {
  const auto [known, judged] = halves();
  LearnerSettings settings;
  settings.steps = 40;
  settings.members = 4;
  base::Monitor monitor;
  const auto prior = trained(*make_learner("gbt"), known, settings, monitor);
  EXPECT_EQ(prior->kind(), "ensemble");
  EXPECT_GT(quality(*prior, judged), 0.6);
  const auto back = model_from("ensemble", prior->state());
  EXPECT_EQ(back->state(), prior->state());
  const features::Encoded& programs = judged.groups.back().features;
  const Scores scores = prior->score(programs);
  EXPECT_EQ(back->score(programs).mean, scores.mean);
  EXPECT_EQ(back->score(programs).spread, scores.spread);
  for (const float spread : scores.spread) EXPECT_GT(spread, 0);
  EXPECT_EQ(prior->adapted({})->score(programs).mean, scores.mean);
  EXPECT_NE(prior->adapted(judged.groups)->score(programs).mean, scores.mean);
}

}  // namespace
}  // namespace graft::meta
