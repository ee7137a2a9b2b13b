#include "meta/methods/known_rows.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "base/error.h"
#include "base/random.h"
#include "meta/evaluate.h"
#include "meta/methods/methods.h"
#include "meta/methods/ridge.h"
#include "meta/metrics.h"
#include "meta/model_file.h"

namespace graft::meta {
namespace {

// Names of rows, and nothing else: what the encoding of tables leaves of them is the number of columns.
features::Encoding names_alone() {
  codegen::TableSchema schema;
  schema.columns = {{"net", {}, {"a", "b"}, false, 0, true}};
  schema.kernels = {{{"table(name=t)"}, {"net"}}};
  return features::made_for(features::encoding_named("columns"), schema);
}

// A platform's times of `rows` rows: a common order, with noise of this deviation.
Examples times_of(const std::string& platform, double noise, std::int64_t rows, std::int64_t features = 1,
                  double of_features = 0) {
  base::Stream common(1, "rows"), own(2, platform);
  Examples group;
  group.platform = platform;
  group.workload = codegen::Workload("table(name=t)");
  group.features = features::one_row_each(base::Matrix(rows, features));
  for (std::int64_t r = 0; r < rows; ++r) {
    double speed = 0.5 * common.normal() + noise * own.normal();
    for (std::int64_t f = 1; f < features; ++f) {
      group.features.rows.at(r, f) = float(common.normal());
      speed += of_features * double(group.features.rows.at(r, f));
    }
    group.features.identities.push_back(std::uint64_t(r + 1));
    group.log_seconds.push_back(-5 - speed);
    group.program_hashes.push_back(std::uint64_t(r + 1));
  }
  return group;
}

TaskSet tasks_of(std::vector<Examples> groups) {
  TaskSet tasks;
  tasks.own_encoding = std::make_shared<const features::Encoding>(names_alone());
  tasks.encoding = tasks.own_encoding.get();
  for (const Examples& group : groups) tasks.sources[group.platform] = "imported";
  tasks.groups = std::move(groups);
  return tasks;
}

EvaluationSettings settings_for(const std::vector<std::string>& methods) {
  EvaluationSettings settings;
  settings.methods = methods;
  settings.shots = {0, 10};
  settings.draws = 3;
  settings.learner.steps = 5;
  settings.learner.network.hidden = {4};
  return settings;
}

// The same rows by name on devices that agree up to noise: one like the target, one of more noise, one of much.
TEST(KnownRows, OfOtherDevicesRankTheTargetWithoutAMeasurement) {
  const TaskSet tasks = tasks_of({times_of("gpu0", 0.03, 300), times_of("gpu1", 0.03, 300), times_of("cpu", 0.12, 300),
                                  times_of("vpu", 0.4, 300)});
  base::Monitor monitor;
  EvaluationSettings settings = settings_for({"ridge", "zero-shot", "latent", "residual"});
  for (const EvaluationRow& row : evaluate(tasks, "gpu0", settings, monitor)) {
    EXPECT_GE(row.spearman.mean, 0.97) << row.method << " " << row.shots;
    EXPECT_GE(row.top1.mean, 0.8) << row.method << " " << row.shots;
  }
  settings.learner.known_rows = KnownRowsUse::no;  // nothing else says anything
  EXPECT_THROW(evaluate(tasks, "gpu0", settings, monitor), base::UserError);
}

TEST(KnownRows, OfTheTargetAreNeverEvidence) {
  TaskSet tasks = tasks_of({times_of("a", 0.1, 100), times_of("b", 0.1, 100), times_of("target", 0.1, 100)});
  base::Monitor monitor;
  const EvaluationSettings settings = settings_for({"ridge", "zero-shot"});
  const auto before = evaluate(tasks, "target", settings, monitor);
  const auto prior = trained(*make_learner("ridge"), without_platform(tasks, "target"), settings.learner, monitor);
  const std::vector<float> scores = prior->score(tasks.groups.back().features).mean;
  for (double& seconds : tasks.groups.back().log_seconds) seconds = -seconds;
  const auto again = trained(*make_learner("ridge"), without_platform(tasks, "target"), settings.learner, monitor);
  EXPECT_EQ(again->score(tasks.groups.back().features).mean, scores);
  EXPECT_LT(evaluate(tasks, "target", settings, monitor).front().spearman.mean, -before.front().spearman.mean + 1e-9);
}

TEST(KnownRows, NothingIsSaidOfRowsThatNobodyHas) {
  std::vector<Examples> groups = {times_of("a", 0.1, 50), times_of("b", 0.1, 50), times_of("target", 0.1, 50)};
  for (std::uint64_t& identity : groups.back().features.identities) identity += 1000;
  base::Monitor monitor;
  try {
    evaluate(tasks_of(groups), "target", settings_for({"ridge"}), monitor);
    FAIL() << "not refused";
  } catch (const base::UserError& error) {
    EXPECT_NE(std::string(error.what()).find("nothing can be said of its rows: no source has measured one of them"),
              std::string::npos)
        << error.what();
  }
}

// What a source counts is how far the others confirm it.
TEST(KnownRows, SharesAreOfACommonFactor) {
  const KnownRows three =
      known_rows(std::vector{times_of("gpu", 0.03, 400), times_of("cpu", 0.15, 400), times_of("vpu", 0.5, 400)});
  ASSERT_EQ(three.sources.size(), 3u);
  EXPECT_GT(three.sources[0].share, 2 * three.sources[1].share);
  EXPECT_GT(three.sources[1].share, 2 * three.sources[2].share);
  const KnownRows two = known_rows(std::vector{times_of("gpu", 0.03, 400), times_of("vpu", 0.5, 400)});
  EXPECT_EQ(two.sources[0].share, 0.5);
  EXPECT_EQ(two.sources[1].share, 0.5);
}

// A source that lacks the slowest rows is not taken for one on which all others are slow.
TEST(KnownRows, SpeedsAreAboutTheRowsInCommon) {
  Examples all = times_of("a", 0, 100), fast = times_of("b", 0, 100);
  std::vector<std::int64_t> rows;
  for (std::int64_t r = 0; r < 100; ++r) {
    if (fast.log_seconds[std::size_t(r)] < -4.8) rows.push_back(r);
  }
  fast = chosen(fast, rows);
  const KnownRows known = known_rows(std::vector{all, fast});
  const base::Matrix speeds = known.speeds(fast.features);
  double apart = 0;
  for (std::int64_t r = 0; r < speeds.rows; ++r)
    apart +=
        double(known.sources[0].speeds.at(fast.features.identities[std::size_t(r)])) * double(known.sources[0].spread) -
        double(known.sources[1].speeds.at(fast.features.identities[std::size_t(r)])) * double(known.sources[1].spread);
  EXPECT_NEAR(apart / double(speeds.rows), 0, 0.02);
  // Rows that occur twice are nobody's, and rows of programs have no identity.
  Examples twice = all;
  twice.features.identities[1] = twice.features.identities[0];
  EXPECT_EQ(known_rows(std::vector{twice}).sources[0].speeds.size(), 98u);
  twice.features.identities.clear();
  EXPECT_TRUE(known_rows(std::vector{twice}).sources.empty());
}

// Rows that nobody has are ranked as the model ranks them, and known rows of a misleading source are outvoted by
// measurements.
TEST(KnownRows, UnknownRowsAreTheModelsAndMeasurementsDecide) {
  constexpr std::int64_t features = 4;
  Examples source = times_of("a", 0.0, 200, features, 0.7), target = times_of("target", 0.0, 200, features, 0.7);
  for (std::size_t r = 0; r < 200; ++r) source.log_seconds[r] = -10 - source.log_seconds[r];  // reversed
  TaskSet tasks = tasks_of({source});
  features::Encoding wide = names_alone();
  wide.features.resize(features, wide.features.front());
  tasks.own_encoding = std::make_shared<const features::Encoding>(wide);
  tasks.encoding = tasks.own_encoding.get();
  LearnerSettings settings;
  settings.known_rows = KnownRowsUse::yes;
  settings.steps = 20;
  base::Monitor monitor;
  const auto with = trained(*make_learner("residual"), tasks, settings, monitor);
  settings.known_rows = KnownRowsUse::no;
  const auto without = trained(*make_learner("residual"), tasks, settings, monitor);
  EXPECT_EQ(with->kind(), known_rows_kind);
  EXPECT_EQ(without->kind(), "residual");
  EXPECT_LT(rank_correlation(with->score(target.features).mean, target.log_seconds), -0.9);
  std::vector<std::int64_t> first, others;
  for (std::int64_t r = 0; r < 200; ++r) (r < 40 ? first : others).push_back(r);
  const Examples support = chosen(target, first), query = chosen(target, others);
  EXPECT_GT(rank_correlation(with->adapted({&support, 1})->score(query.features).mean, query.log_seconds), 0.9);
  Examples unknown = query, unknown_support = support;
  for (std::uint64_t& identity : unknown.features.identities) identity += 1000;
  for (std::uint64_t& identity : unknown_support.features.identities) identity += 1000;
  const auto order = [&](const CostModel& model) {
    return rank_correlation(model.score(unknown.features).mean, query.log_seconds);
  };
  EXPECT_NEAR(order(*with), order(*without), 1e-4);
  EXPECT_NEAR(order(*with->adapted({&unknown_support, 1})), order(*without->adapted({&unknown_support, 1})), 1e-4);
}

// A table whose parameters say all, measured by devices of which each has an order of its own: their times say less.
TEST(KnownRows, AreUsedByDefaultWhereParametersSayNothing) {
  constexpr std::int64_t features = 4;
  const std::vector<Examples> noisy = {times_of("a", 2, 200, features, 2), times_of("b", 2, 200, features, 2),
                                       times_of("c", 2, 200, features, 2)};
  const KnownRowsQuality parameters = quality_of_known_rows(noisy);
  EXPECT_GT(parameters.by_features, parameters.by_times);
  const std::vector<Examples> alike = {times_of("a", 0.1, 200, features, 0), times_of("b", 0.1, 200, features, 0),
                                       times_of("c", 0.1, 200, features, 0)};
  const KnownRowsQuality times = quality_of_known_rows(alike);
  EXPECT_GT(times.by_times, 0.9);
  EXPECT_LT(times.by_features, 0.25);
  EXPECT_TRUE(parameters_say_nothing(times));
  EXPECT_FALSE(parameters_say_nothing(parameters));
  EXPECT_FALSE(parameters_say_nothing({.by_times = 0.97, .by_features = 0.6}));
  EXPECT_FALSE(parameters_say_nothing({}));  // no two sources have rows in common
}

TEST(KnownRows, ModelsAreReadBackAndContinue) {
  const TaskSet tasks = tasks_of({times_of("a", 0.1, 60), times_of("b", 0.1, 60)});
  LearnerSettings settings;
  settings.steps = 5;
  base::Monitor monitor;
  const auto model = trained(*make_learner("ridge"), tasks, settings, monitor);
  ASSERT_EQ(model->kind(), known_rows_kind);
  const Examples target = times_of("target", 0.1, 60);
  const Examples support = chosen(target, {0, 1, 2, 3, 4, 5, 6, 7});
  for (const auto& each : {model->clone(), model->adapted({&support, 1})}) {
    const auto read = model_from(std::string(each->kind()), each->state());
    EXPECT_EQ(read->score(target.features).mean, each->score(target.features).mean);
    EXPECT_EQ(read->state(), each->state());
  }
  base::Arrays bad = model->state();
  bad.arrays.at("spreads").values.front() = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(model_from(known_rows_kind, bad), base::UserError);
  const auto more = continued(*model, 2, tasks_of({times_of("c", 0.05, 60)}), settings, monitor);
  EXPECT_GT(rank_correlation(more->score(target.features).mean, target.log_seconds),
            rank_correlation(model->score(target.features).mean, target.log_seconds));
}

datasets::Dataset table_of(const std::string& platform, const std::vector<codegen::Sketch::Column>& columns,
                           const std::vector<std::vector<std::int64_t>>& rows, const std::vector<double>& seconds) {
  datasets::Dataset data;
  data.platform = platform;
  data.source = "imported";
  const auto sketch = std::make_shared<const codegen::Sketch>(codegen::Sketch::of_columns("t", columns));
  for (std::size_t r = 0; r < rows.size(); ++r) {
    datasets::Measurement measurement;
    measurement.seconds = {seconds[r]};
    data.add({0, {codegen::Workload("table(name=t)"), sketch, rows[r]}, 0, measurement});
  }
  return data;
}

// A model's file keeps the names and values of its tables, and sees another table through them.
TEST(KnownRows, ModelFilesMapNewTablesToTheirOwn) {
  std::vector<std::vector<std::int64_t>> rows, turned;
  std::vector<double> seconds, of_turned;
  const double by_algorithm[] = {4, 1, 2};  // direct, fft, gemm
  for (int a = 0; a < 3; ++a) {
    for (int n = 0; n < 20; ++n) {
      rows.push_back({a, n});
      seconds.push_back(by_algorithm[a] + 0.01 * n);
      if (a == 0) continue;
      turned.push_back({20 + n, a - 1, 7});  // of other sizes, without the first algorithm
      of_turned.push_back(3 * by_algorithm[a] + 0.03 * n);
    }
  }
  const TaskSet tasks = make_task_set(
      {table_of("import:a", {{"algo", {"direct", "fft", "gemm"}}, {"n", {}}}, rows, seconds)}, encoding_of_tables(), 1);
  LearnerSettings settings;
  settings.steps = 200;
  base::Monitor monitor;
  const auto model = trained(*make_learner("ridge"), tasks, settings, monitor);
  const auto path = std::filesystem::path(testing::TempDir()) / "graft_known_rows.h5";
  save_model(*model, *tasks.encoding, base::Document::map(), "", path);
  const ModelFile file = load_model(path);
  std::filesystem::remove(path);
  EXPECT_EQ(file.encoding->hash, tasks.encoding->hash);
  ASSERT_NE(file.encoding->schema, nullptr);
  EXPECT_EQ(*file.encoding->schema, *tasks.encoding->schema);
  EXPECT_EQ(file.model->score(tasks.groups[0].features).mean, model->score(tasks.groups[0].features).mean);

  const datasets::Dataset other =
      table_of("import:b", {{"n", {}}, {"algo", {"fft", "gemm"}}, {"id", {}}}, turned, of_turned);
  const TaskSet seen = make_task_set({other}, *file.encoding, 1);
  EXPECT_EQ(seen.encoding, file.encoding.get());
  ASSERT_EQ(seen.notes.size(), 1u);
  EXPECT_NE(seen.notes[0].find("does not know, and does not see: id"), std::string::npos) << seen.notes[0];
  EXPECT_GT(rank_correlation(file.model->score(seen.groups[0].features).mean, seen.groups[0].log_seconds), 0.8);
  const datasets::Dataset stranger = table_of("import:c", {{"x", {}}}, {{1}, {2}}, {1, 2});
  EXPECT_THROW(make_task_set({stranger}, *file.encoding, 1), base::UserError);
}

}  // namespace
}  // namespace graft::meta
