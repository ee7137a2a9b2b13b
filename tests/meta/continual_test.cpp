// A model that learns of a platform measured later, without the data it was trained on.
#include <gtest/gtest.h>

#include <numeric>

#include "base/error.h"
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
#include "meta/sources/trunk.h"
#include "meta/state.h"
#include "tests/meta/synthetic.h"

namespace graft::meta {
namespace {

// Mean rank correlation on a platform, adapted to its first `shots` programs of each workload and judged on the others.
double quality(const CostModel& model, const TaskSet& tasks, const std::string& platform, std::int64_t shots) {
  std::vector<Examples> support, query;
  for (const Examples& group : only_platforms(tasks, {platform}).groups) {
    std::vector<std::int64_t> rows(std::size_t(group.size()));
    std::iota(rows.begin(), rows.end(), 0);
    if (shots > 0) support.push_back(chosen(group, {rows.begin(), rows.begin() + shots}));
    query.push_back(chosen(group, {rows.begin() + shots, rows.end()}));
  }
  const auto adapted = model.adapted(support);
  double sum = 0;
  for (const Examples& group : query) sum += rank_correlation(adapted->score(group.features).mean, group.log_seconds);
  return sum / double(query.size());
}

class Continued : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Learners, Continued,
                         testing::Values("pooled", "reptile", "ridge", "bayes-ridge", "residual", "nearest", "latent",
                                         "adaptive"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST_P(Continued, LearnsTheNewAndKeepsTheOld) {
  const TaskSet all = synthetic::make({.platforms = 5}), old = without_platform(all, "p4"),
                fresh = only_platforms(all, {"p4"});
  LearnerSettings settings;
  settings.network.hidden = {16};
  settings.steps = 150;
  base::Monitor monitor;
  const auto before = make_learner(GetParam())->train(old, settings, monitor);
  const auto after = continued(*before, 4, fresh, settings, monitor);
  EXPECT_EQ(after->kind(), before->kind());
  double kept = 0, had = 0;
  for (const std::string& platform : platforms(old)) {
    had += quality(*before, all, platform, 20);
    kept += quality(*after, all, platform, 20);
  }
  EXPECT_GE(kept, 0.99 * had);
  EXPECT_GE(quality(*after, all, "p4", 0), quality(*before, all, "p4", 0));  // before any support
  EXPECT_NE(after->score(fresh.groups.front().features).mean, before->score(fresh.groups.front().features).mean);
}

TEST(ContinuedModel, ForestsComeBesideForests) {
  const TaskSet all = synthetic::make({.platforms = 4}), fresh = only_platforms(all, {"p3"});
  LearnerSettings settings;
  settings.trees = true;
  settings.steps = 60;
  base::Monitor monitor;
  for (const char* const name : {"residual", "adaptive"}) {
    const auto before = make_learner(name)->train(without_platform(all, "p3"), settings, monitor);
    settings.trees = false;  // the model says what it is made of
    const auto after = continued(*before, 3, fresh, settings, monitor);
    settings.trees = true;
    EXPECT_GT(quality(*after, all, "p3", 0), quality(*before, all, "p3", 0)) << name;
    EXPECT_GE(quality(*after, all, "p0", 20), 0.97 * quality(*before, all, "p0", 20)) << name;
    const auto prior = [](const CostModel& model) {
      base::Arrays state = model.state();
      return std::pair(state.arrays["stacking/moments"].values, state.arrays["member0/stacking/moments"].values);
    };
    EXPECT_FALSE(prior(*before) == prior(*make_random_model(1))) << name;
    EXPECT_EQ(prior(*after), prior(*before)) << name;
  }
}

TEST(ContinuedModel, TheContextBeginsAtZero) {
  const TaskSet all = synthetic::make({.platforms = 3});
  LearnerSettings settings;
  settings.network.hidden = {8};
  settings.steps = 10;
  base::Monitor monitor;
  const auto before = make_learner("cavia")->train(without_platform(all, "p2"), settings, monitor);
  const base::Arrays after = continued(*before, 2, only_platforms(all, {"p2"}), settings, monitor)->state();
  for (const ParameterBlock& block : layout_of(shape_from(after, 12))) {
    if (!block.context) continue;
    for (std::int64_t i = 0; i < block.size; ++i)
      EXPECT_EQ(after.arrays.at("theta").values[std::size_t(block.offset + i)], 0.0f);
  }
}

TEST(ContinuedModel, APlatformMeasuredAgainKeepsItsPlace) {
  const TaskSet all = synthetic::make({});
  LearnerSettings settings;
  settings.network.hidden = {8};
  settings.steps = 10;
  base::Monitor monitor;
  const auto before = make_learner("ridge")->train(all, settings, monitor);
  const auto after = continued(*before, 4, only_platforms(all, {"p2"}), settings, monitor);
  EXPECT_EQ(after->state().attributes.at("platforms"), before->state().attributes.at("platforms"));
}

// Some measurements of a platform of which there were many: trees follow those that it had, and give way to others when
// there are more measurements.
TEST(ContinuedModel, WhatAKnownPlatformLearntStaysWhenItIsExtended) {
  const TaskSet all = synthetic::make({.platforms = 4});
  TaskSet few = only_platforms(all, {"p3"});
  few.groups.resize(1);
  LearnerSettings settings;
  settings.trees = true;
  settings.steps = 60;
  base::Monitor monitor;
  const auto before = make_learner("residual")->train(all, settings, monitor);
  settings.steps = 20;
  settings.extended = {{"p3", 80}};
  const auto extended = continued(*before, 4, few, settings, monitor);
  const auto trees = [](const CostModel& model) { return model.state().attributes.at("source_trees"); };
  const auto settled = [](const CostModel& model) { return model.state().attributes.at("settled_trees"); };
  EXPECT_EQ(trees(*extended).substr(trees(*extended).rfind(',') + 1), "80") << trees(*extended);
  EXPECT_EQ(settled(*extended), trees(*before));
  const auto again = continued(*model_from("residual", extended->state()), 4, few, settings, monitor);
  EXPECT_EQ(again->state().arrays, extended->state().arrays);  // the same measurements again, from a file
  // What it learnt of other workloads is what it was, but for what the new trees add.
  settings.extended = {};
  const auto replaced = continued(*before, 4, few, settings, monitor);
  double kept = 0, had = 0, lost = 0;
  const std::vector<Examples> groups = only_platforms(all, {"p3"}).groups;
  for (std::size_t g = 1; g < groups.size(); ++g) {
    const Examples& group = groups[g];
    const auto of = [&](const CostModel& model) {
      return rank_correlation(model.of_source("p3")->score(group.features).mean, group.log_seconds);
    };
    had += of(*before), kept += of(*extended), lost += of(*replaced);
  }
  EXPECT_GT(kept, 0.95 * had);
  EXPECT_LT(lost, kept);
}

TEST(ContinuedModel, ANewPlatformThatIsExtendedIsLearntFromAllThatWasGiven) {
  const TaskSet all = synthetic::make({.platforms = 4}), fresh = only_platforms(all, {"p3"});
  TaskSet some = fresh;
  some.groups.resize(1);
  LearnerSettings settings;
  settings.trees = true;
  settings.steps = 40;
  settings.extended = {{"p3", 80}};
  base::Monitor monitor;
  const auto before = make_learner("residual")->train(without_platform(all, "p3"), settings, monitor);
  EXPECT_EQ(before->of_source("p3"), nullptr);
  const auto at_once = continued(*before, 3, fresh, settings, monitor);
  const auto in_turn = continued(*continued(*before, 3, some, settings, monitor), 4, fresh, settings, monitor);
  EXPECT_EQ(in_turn->state().arrays, at_once->state().arrays);

  // 80 measurements: its say without support is as much less as it was measured less.
  base::Arrays state = at_once->state();
  std::vector<float>& weights = state.arrays.at("source_weights").values;
  ASSERT_EQ(weights.size(), 4u);
  EXPECT_EQ(weights[0], 1.0f);
  EXPECT_FLOAT_EQ(weights[3], 80.0f / (80 + 512));
  EXPECT_FALSE(before->state().arrays.contains("source_weights"));
  const features::Encoded& programs = fresh.groups.front().features;
  const std::vector<float> scores = at_once->score(programs).mean;
  double expected = 0, sum = 0;
  for (std::size_t s = 0; s < 4; ++s) {
    const std::string platform = "p" + std::to_string(s);
    const float spread = state.arrays.at("source_spreads").values[s];
    double mean_spread = 0;
    for (const float each : state.arrays.at("source_spreads").values) mean_spread += double(each) / 4;
    expected +=
        double(weights[s] * at_once->of_source(platform)->score(programs).mean.front()) * mean_spread / double(spread);
    sum += double(weights[s]);
  }
  // The shared layers have their share of the mean.
  const Trunk trunk = trunk_from(state);
  const double share = double(state.arrays.at("trunk_share").values.front());
  const base::Matrix hidden = trunk.of(programs);
  const std::vector<float> head = trunk.head();
  const double by_trunk = std::inner_product(head.begin(), head.end(), hidden.row(0).begin(), 0.0);
  EXPECT_NEAR(scores.front(), (1 - share) * expected / sum + share * by_trunk, 1e-3 * std::abs(expected));
  weights[3] = 2;
  EXPECT_THROW(model_from("residual", state), base::UserError);
}

TEST(ContinuedModel, RefusesKindsThatCannotGoOn) {
  const TaskSet all = synthetic::make({.platforms = 2, .workloads = 1});
  LearnerSettings settings;
  settings.steps = 3;
  base::Monitor monitor;
  for (const std::string name : {"gbt", "random", "matching"}) {
    const auto model = make_learner(name)->train(all, settings, monitor);
    EXPECT_THROW(continued(*model, 2, all, settings, monitor), base::UserError) << name;
  }
}

}  // namespace
}  // namespace graft::meta
