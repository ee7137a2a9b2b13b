#include "meta/evaluate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/statistics.h"
#include "meta/methods/methods.h"
#include "tests/meta/synthetic.h"

namespace graft::meta {
namespace {

EvaluationSettings small() {
  EvaluationSettings out;
  out.methods = {"zero-shot", "scratch", "finetune", "ridge", "random"};
  out.shots = {0, 5, 20};
  out.draws = 4;
  out.learner.network.hidden = {16, 8};
  out.learner.steps = 120;
  return out;
}

std::string text_of(const std::vector<EvaluationRow>& rows) {
  std::string out;
  for (const EvaluationRow& row : rows) {
    out += row.method + " " + std::to_string(row.shots) + " " + std::to_string(row.measurements);
    for (const base::Interval& interval : {row.spearman, row.top1, row.top5}) {
      for (const double value : {interval.low, interval.mean, interval.high}) out += " " + std::to_string(value);
    }
    out += " " + std::to_string(row.spearman_best30) + "\n";
  }
  return out;
}

TEST(Evaluate, RowsAreCompleteOrderedAndSensible) {
  const TaskSet tasks = synthetic::make({});
  base::Monitor monitor;
  const auto rows = evaluate(tasks, "p2", small(), monitor);
  ASSERT_EQ(rows.size(), 15u);
  std::map<std::pair<std::string, int>, EvaluationRow> by_name;
  for (const EvaluationRow& row : rows) {
    by_name[{row.method, row.shots}] = row;
    EXPECT_EQ(row.target, "p2");
    EXPECT_EQ(row.draws, 4);
    EXPECT_LE(row.spearman.low, row.spearman.mean + 1e-12);
    EXPECT_LE(row.spearman.mean, row.spearman.high + 1e-12);
    EXPECT_GT(row.top1.mean, 0);
    EXPECT_LE(row.top1.mean, row.top5.mean + 1e-12);
    EXPECT_LE(row.top5.high, 1 + 1e-12);
    EXPECT_EQ(row.workloads, 3);
    EXPECT_LE(std::abs(row.kendall), std::abs(row.spearman.mean) + 0.05);  // nearer to 0, and of the same sign:
    if (row.spearman.mean > 0.5) {
      EXPECT_GT(row.kendall, 0.3) << row.method;
    }
    EXPECT_GE(row.trials_to_95, 1);
    EXPECT_LE(row.trials_to_95, row.best_place + 1e-9);
    EXPECT_LE(row.best_place, 80);
    ASSERT_EQ(row.spearman_draws.size(), 4u);
    EXPECT_NEAR(base::mean(row.spearman_draws), row.spearman.mean, 1e-12);
    EXPECT_NEAR(base::mean(row.top1_draws), row.top1.mean, 1e-12);
    EXPECT_NEAR(base::mean(row.top5_draws), row.top5.mean, 1e-12);
    const bool adapts = evaluated_method_named(row.method).adapts;
    EXPECT_EQ(row.measurements, adapts ? row.shots * 3 : 0) << row.method;
  }
  EXPECT_EQ((by_name[{"scratch", 0}].spearman.mean), 0);
  EXPECT_EQ((by_name[{"finetune", 0}].spearman.mean), (by_name[{"zero-shot", 0}].spearman.mean));
  EXPECT_GT((by_name[{"scratch", 20}].spearman.mean), 0.6);
  EXPECT_GT((by_name[{"ridge", 20}].spearman.mean), 0.7);
  EXPECT_NE((by_name[{"ridge", 20}].spearman.mean), (by_name[{"ridge", 0}].spearman.mean));
  EXPECT_NE((by_name[{"finetune", 20}].spearman.mean), (by_name[{"zero-shot", 20}].spearman.mean));
  EXPECT_LT(std::abs(by_name[{"random", 5}].spearman.mean), 0.3);
}

TEST(Evaluate, SeedDecidesAndThreadsDoNot) {
  const TaskSet tasks = synthetic::make({});
  base::Monitor monitor;
  EvaluationSettings settings = small();
  settings.methods = {"zero-shot", "ridge", "maml", "scratch"};
  settings.shots = {5};
  settings.learner.steps = 10;
  const std::string one = text_of(evaluate(tasks, "p0", settings, monitor));
  settings.learner.threads = 3;
  EXPECT_EQ(one, text_of(evaluate(tasks, "p0", settings, monitor)));
  settings.learner.seed = 2;
  EXPECT_NE(one, text_of(evaluate(tasks, "p0", settings, monitor)));
}

// What the target was measured at must not matter before there is support: nothing of it may reach training.
TEST(Evaluate, TargetIsNotInTheTraining) {
  TaskSet tasks = synthetic::make({}), changed = tasks;
  for (Examples& group : changed.groups) {
    if (group.platform != "p1") continue;
    for (double& value : group.log_seconds) value = -value;
  }
  base::Monitor monitor;
  EvaluationSettings settings = small();
  settings.methods = {"zero-shot", "ridge", "maml"};
  settings.shots = {0};
  settings.learner.steps = 20;
  const auto a = evaluate(tasks, "p1", settings, monitor), b = evaluate(changed, "p1", settings, monitor);
  for (std::size_t r = 0; r < a.size(); ++r) {
    EXPECT_NEAR(a[r].spearman.mean, -b[r].spearman.mean, 1e-9) << a[r].method;
    EXPECT_NE(a[r].spearman.mean, 0) << a[r].method;
  }
}

TEST(Evaluate, UnseenWorkloadsGetNoSupport) {
  const TaskSet tasks = synthetic::make({.workloads = 4});
  base::Monitor monitor;
  EvaluationSettings settings = small();
  settings.methods = {"scratch", "ridge"};
  settings.shots = {10};
  settings.regime = Regime::unseen;
  const auto rows = evaluate(tasks, "p0", settings, monitor);
  for (const EvaluationRow& row : rows)
    EXPECT_EQ(row.measurements, 2 * 10) << row.method;  // half of the workloads support
  EXPECT_GT(rows[1].spearman.mean, 0.3);
}

// What a search of one workload has: the measurements of others say nothing to it.
TEST(Evaluate, AloneEachWorkloadHasItsOwnSupport) {
  TaskSet tasks = synthetic::make({.workloads = 3});
  base::Monitor monitor;
  EvaluationSettings settings = small();
  settings.methods = {"scratch", "ridge", "zero-shot"};
  settings.shots = {0, 10};
  const auto together = evaluate(tasks, "p0", settings, monitor);
  settings.regime = Regime::alone;
  const auto alone = evaluate(tasks, "p0", settings, monitor);
  ASSERT_EQ(alone.size(), together.size());
  for (std::size_t r = 0; r < alone.size(); ++r) {
    EXPECT_EQ(alone[r].measurements, together[r].measurements);
    const bool adapts = alone[r].method != "zero-shot" && alone[r].shots > 0;
    EXPECT_EQ(alone[r].spearman.mean != together[r].spearman.mean, adapts) << alone[r].method << alone[r].shots;
  }

  // For one workload both are the same.
  const std::string first = tasks.groups.front().workload.text();
  std::erase_if(tasks.groups,
                [&](const Examples& group) { return group.platform == "p0" && group.workload.text() != first; });
  const auto one = evaluate(tasks, "p0", settings, monitor);
  settings.regime = Regime::seen;
  const auto same = evaluate(tasks, "p0", settings, monitor);
  for (std::size_t r = 0; r < one.size(); ++r) EXPECT_EQ(one[r].spearman_draws, same[r].spearman_draws);
}

// Sources that are not named, and programs that are judged, may be anything: nothing of them is learned from.
TEST(Evaluate, OnlyNamedSourcesAndOpenProgramsAreLearnedFrom) {
  const TaskSet tasks = synthetic::make({});
  TaskSet changed = tasks;
  for (Examples& group : changed.groups) {
    for (std::int64_t r = 0; r < group.size(); ++r) {
      if (group.platform == "p3" || (group.platform != "p1" && r >= 50)) group.log_seconds[std::size_t(r)] *= -3;
    }
  }
  base::Monitor monitor;
  EvaluationSettings settings = small();
  settings.methods = {"zero-shot", "ridge"};
  settings.shots = {0, 10};
  settings.sources = {"p0", "p1", "p2"};
  settings.judge_last = 30;
  settings.learner.steps = 20;
  const std::string one = text_of(evaluate(tasks, "p1", settings, monitor));
  EXPECT_EQ(one, text_of(evaluate(changed, "p1", settings, monitor)));
  settings.sources = {"p0"};
  EXPECT_NE(one, text_of(evaluate(tasks, "p1", settings, monitor)));
  settings.judge_last = 75;
  EXPECT_THROW(evaluate(tasks, "p1", settings, monitor), base::UserError);  // 10 shots of 5 open rows
}

class Notes : public base::Monitor {
 public:
  void note(std::string_view line) override { text += line; }
  std::string text;
};

TEST(Evaluate, WorkloadsOfTooFewProgramsAreLeftOut) {
  TaskSet tasks = synthetic::make({});
  Examples& small_one = *std::find_if(tasks.groups.begin(), tasks.groups.end(),
                                      [](const Examples& group) { return group.platform == "p1"; });
  std::vector<std::int64_t> first(21);
  std::iota(first.begin(), first.end(), 0);
  small_one = chosen(small_one, first);
  Notes notes;
  EvaluationSettings settings = small();
  settings.methods = {"zero-shot", "ridge"};
  settings.learner.steps = 20;
  const auto rows = evaluate(tasks, "p1", settings, notes);
  EXPECT_NE(notes.text.find("1 of 3 workloads (21 rows) are left out"), std::string::npos) << notes.text;
  EXPECT_EQ(rows[0].workloads, 2);
  EXPECT_EQ(rows.back().measurements, 2 * 20);
  notes.text.clear();
  settings.shots = {19};  // and two to judge on
  EXPECT_EQ(evaluate(tasks, "p1", settings, notes)[0].workloads, 3);
  EXPECT_EQ(notes.text, "");
}

// Targets that leave the same sources are judged with the same models as if each were evaluated alone.
TEST(Evaluate, ModelsAreTrainedOnceForTheSameSources) {
  const TaskSet tasks = synthetic::make({});
  base::Monitor monitor;
  EvaluationSettings settings = small();
  settings.methods = {"zero-shot", "ridge"};
  settings.sources = {"p0", "p1"};
  settings.learner.steps = 20;
  Priors priors;
  const std::string second = text_of(evaluate(tasks, "p2", settings, monitor, priors));
  EXPECT_EQ(second, text_of(evaluate(tasks, "p2", settings, monitor)));
  EXPECT_EQ(priors.sources, (std::vector<std::string>{"p0", "p1"}));
  const CostModel* const trained = &priors.of(evaluated_method_named("ridge"));
  EXPECT_EQ(text_of(evaluate(tasks, "p3", settings, monitor, priors)),
            text_of(evaluate(tasks, "p3", settings, monitor)));
  EXPECT_EQ(&priors.of(evaluated_method_named("ridge")), trained);
  settings.methods = {"nearest"};
  train(tasks, "p3", settings, monitor, priors);  // what is missing
  EXPECT_EQ(priors.models.size(), 3U);
  EXPECT_EQ(&priors.of(evaluated_method_named("ridge")), trained);
  settings.methods = {"ridge"};
  evaluate(tasks, "p1", settings, monitor, priors);  // of p0 alone
  EXPECT_EQ(priors.models.size(), 1U);
}

// Programs in the middle of the query's times differ less than all of them.
TEST(Evaluate, MiddleOfTheQueryIsHarder) {
  const TaskSet tasks = synthetic::make({});
  base::Monitor monitor;
  EvaluationSettings settings = small();
  settings.methods = {"ridge"};
  settings.shots = {20};
  for (const EvaluationRow& row : evaluate(tasks, "p1", settings, monitor)) {
    EXPECT_LT(row.spearman_middle80, row.spearman.mean);
    EXPECT_GT(row.spearman_middle80, 0);
  }
}

// One or two draws have no spread that an interval could say.
TEST(Evaluate, FewDrawsHaveNoInterval) {
  const TaskSet tasks = synthetic::make({});
  base::Monitor monitor;
  EvaluationSettings settings = small();
  settings.methods = {"ridge"};
  settings.learner.steps = 5;
  for (const int draws : {1, 2, 3}) {
    settings.draws = draws;
    for (const EvaluationRow& row : evaluate(tasks, "p1", settings, monitor)) {
      for (const base::Interval& interval : {row.spearman, row.top1, row.top5}) {
        EXPECT_TRUE(std::isfinite(interval.mean));
        EXPECT_EQ(std::isfinite(interval.low) && std::isfinite(interval.high), draws == 3);
      }
    }
  }
}

// Whichever learner it is: a model that knows nothing before support is given what others were trained on.
TEST(Evaluate, InDomainUninformedModelsGetTheTrainingRowsAsSupport) {
  const TaskSet tasks = synthetic::make({});
  base::Monitor monitor;
  EvaluationSettings settings = small();
  settings.methods = {"scratch", "gbt-scratch", "matching"};
  settings.shots = {40};
  settings.draws = 2;
  settings.learner.steps = 60;
  for (const EvaluationRow& row : evaluate_in_domain(tasks, "p1", settings, monitor))
    EXPECT_GT(row.spearman.mean, 0.2) << row.method;
}

TEST(Evaluate, RefusesWhatCannotWork) {
  const TaskSet tasks = synthetic::make({.workloads = 1});
  base::Monitor monitor;
  const auto says = [&](const EvaluationSettings& settings, const std::string& target) -> std::string {
    try {
      evaluate(tasks, target, settings, monitor);
    } catch (const base::UserError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_NE(says(small(), "p9").find("no measurements of platform 'p9'"), std::string::npos);
  EvaluationSettings settings = small();
  settings.shots = {79};
  EXPECT_NE(says(settings, "p0").find("no workload has the 81 programs that 79 shots need"), std::string::npos);
  settings = small();
  settings.methods = {"mmal"};
  EXPECT_NE(says(settings, "p0").find("did you mean 'maml'"), std::string::npos);
  settings = small();
  settings.regime = Regime::unseen;
  EXPECT_NE(says(settings, "p0").find("one workload only"), std::string::npos);
  settings = small();
  settings.methods = {"ridge"};
  settings.sources = {"p0"};
  EXPECT_NE(says(settings, "p0").find("no platform is left"), std::string::npos) << says(settings, "p0");
  settings = small();
  settings.draws = 0;
  EXPECT_NE(says(settings, "p0").find("at least 1"), std::string::npos);
}

TEST(Methods, NameLearnersThatExist) {
  for (const EvaluatedMethod& method : evaluated_methods())
    EXPECT_NO_THROW(make_learner(method.learner)) << method.name;
}

TEST(TaskSetCuts, ByPlatform) {
  const TaskSet tasks = synthetic::make({});
  EXPECT_EQ(platforms(tasks), (std::vector<std::string>{"p0", "p1", "p2", "p3"}));
  const TaskSet rest = without_platform(tasks, "p1");
  EXPECT_EQ(platforms(rest), (std::vector<std::string>{"p0", "p2", "p3"}));
  EXPECT_EQ(rest.groups.size(), 9u);
  EXPECT_FALSE(rest.sources.contains("p1"));
  EXPECT_EQ(platforms(only_platforms(tasks, {"p3", "p1"})), (std::vector<std::string>{"p1", "p3"}));
  EXPECT_THROW(without_platform(tasks, "q1"), base::UserError);
  const Examples rows = chosen(tasks.groups[0], {5, 2});
  EXPECT_EQ(rows.size(), 2);
  EXPECT_EQ(rows.log_seconds[0], tasks.groups[0].log_seconds[5]);
  EXPECT_EQ(rows.features.rows.at(1, 3), tasks.groups[0].features.rows.at(2, 3));
  EXPECT_EQ(rows.program_hashes[1], tasks.groups[0].program_hashes[2]);
}

TEST(TaskSetCuts, ReversedLabelsTurnTheOrderOfNamedPlatformsRound) {
  const TaskSet tasks = synthetic::make({}), reversed = with_reversed_labels(tasks, {"p2"});
  ASSERT_EQ(reversed.groups.size(), tasks.groups.size());
  for (std::size_t g = 0; g < tasks.groups.size(); ++g) {
    const std::vector<double>&before = tasks.groups[g].log_seconds, &after = reversed.groups[g].log_seconds;
    if (tasks.groups[g].platform != "p2") {
      EXPECT_EQ(after, before);
      continue;
    }
    EXPECT_NEAR(base::spearman(before, after), -1, 1e-12);
    EXPECT_NEAR(*std::min_element(after.begin(), after.end()), *std::min_element(before.begin(), before.end()), 1e-12);
    EXPECT_NEAR(*std::max_element(after.begin(), after.end()), *std::max_element(before.begin(), before.end()), 1e-12);
  }
  EXPECT_THROW(with_reversed_labels(tasks, {"p9"}), base::UserError);
}

}  // namespace
}  // namespace graft::meta
