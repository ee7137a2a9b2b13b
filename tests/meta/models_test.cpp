#include "meta/models/models.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>

#include "base/error.h"
#include "base/hash.h"
#include "base/random.h"
#include "datasets/hdf5.h"
#include "meta/learner.h"
#include "meta/metrics.h"
#include "meta/model_file.h"
#include "tests/meta/synthetic.h"

namespace graft::meta {
namespace {

// Networks without hidden layers, so that what each source scores is known: source s scores column s of the features.
SourceBasis columns_as_sources(std::int64_t sources) {
  SourceBasis basis;
  basis.shape = {sources, {}};
  basis.normalisation.mean.assign(std::size_t(sources), 0.0f);
  basis.normalisation.scale.assign(std::size_t(sources), 1.0f);
  for (std::int64_t s = 0; s < sources; ++s) {
    basis.platforms.push_back("p" + std::to_string(s));
    basis.thetas.emplace_back(std::size_t(sources + 1), 0.0f);
    basis.thetas.back()[std::size_t(s)] = 1;
  }
  return basis;
}

Examples examples(std::int64_t rows, std::int64_t columns, std::uint64_t seed,
                  const std::function<double(std::span<const float>)>& log_seconds) {
  Examples out;
  out.platform = "target";
  out.workload.text = "w";
  out.features = features::one_row_each(base::Matrix(rows, columns));
  base::Stream stream(seed, "examples");
  for (std::int64_t r = 0; r < rows; ++r) {
    for (float& value : out.features.rows.row(r)) value = float(stream.normal());
    out.log_seconds.push_back(log_seconds(out.features.rows.row(r)));
    out.program_hashes.push_back(stream.bits());
  }
  return out;
}

// What a platform that was held out looks like must not be known: the stored statistics are those of the training rows,
// and adapting keeps them.
TEST(Normalisation, IsOfTheTrainingRowsAlone) {
  TaskSet all = synthetic::make({.platforms = 3, .workloads = 2, .rows = 40, .features = 5});
  for (Examples& group : all.groups) {
    if (group.platform != "p2") continue;
    for (std::int64_t r = 0; r < group.size(); ++r) group.features.rows.at(r, 1) += 100;
  }
  const TaskSet training = without_platform(all, "p2");
  const std::vector<Examples> held_out = only_platforms(all, {"p2"}).groups;
  const Normalisation expected = fit_normalisation(training.groups);
  ASSERT_FALSE(expected == fit_normalisation(all.groups));
  LearnerSettings settings;
  settings.hidden = {8};
  settings.steps = 3;
  base::Monitor monitor;
  int models = 0;
  for (const LearnerEntry& learner : learners()) {
    const auto model = make_learner(learner.name)->train(training, settings, monitor);
    const auto adapted = model->adapted(held_out);
    for (const CostModel* each : {model.get(), adapted.get()}) {
      const base::Arrays state = each->state();
      if (!state.arrays.contains("mean")) continue;  // one that normalises nothing before it has support
      EXPECT_EQ(normalisation_from(state), expected) << learner.name;
      ++models;
    }
  }
  EXPECT_GE(models, 12);
}

TEST(Normalisation, CentresScalesClipsAndDropsConstants) {
  Examples group = examples(200, 3, 1, [](auto) { return 0.0; });
  for (std::int64_t r = 0; r < 200; ++r) {
    group.features.rows.at(r, 0) = 1000 + 5 * group.features.rows.at(r, 0);
    group.features.rows.at(r, 2) = 7;
  }
  const Normalisation normalisation = fit_normalisation({&group, 1});
  const base::Matrix x = normalisation.apply(group.features).rows;
  double mean = 0, squares = 0;
  for (std::int64_t r = 0; r < 200; ++r) {
    mean += double(x.at(r, 0)) / 200;
    squares += double(x.at(r, 0)) * double(x.at(r, 0)) / 200;
    EXPECT_EQ(x.at(r, 2), 0.0f);
  }
  EXPECT_NEAR(mean, 0, 1e-4);
  EXPECT_NEAR(squares, 1, 1e-2);
  base::Matrix odd(1, 3);
  odd.values = {1e9f, NAN, 9.0f};
  EXPECT_EQ(normalisation.apply(features::one_row_each(odd)).rows.values,
            (std::vector<float>{Normalisation::clip, 0.0f, 0.0f}));
}

TEST(Ridge, SatisfiesTheNormalEquations) {
  constexpr std::size_t sources = 3;
  const double lambda = 0.2;
  std::vector<BasisGroup> groups;
  base::Stream stream(4, "ridge");
  for (const std::int64_t rows : {7, 11}) {
    BasisGroup group{base::Matrix(rows, sources), {}};
    for (float& value : group.basis.values) value = float(stream.normal());
    for (std::int64_t r = 0; r < rows; ++r) group.log_seconds.push_back(stream.normal());
    groups.push_back(std::move(group));
  }
  const std::vector<double> prior = {0.5, 0.2, 0.3}, weights = ridge_weights(groups, prior, lambda);
  // B^T (y - B w) = lambda n (w - w0), B and y centred per group.
  double left[sources] = {};
  for (const BasisGroup& group : groups) {
    const auto rows = double(group.basis.rows);
    double column_mean[sources] = {}, time_mean = 0;
    for (std::int64_t r = 0; r < group.basis.rows; ++r) {
      for (std::size_t s = 0; s < sources; ++s) column_mean[s] += double(group.basis.at(r, std::int64_t(s))) / rows;
      time_mean += group.log_seconds[std::size_t(r)] / rows;
    }
    for (std::int64_t r = 0; r < group.basis.rows; ++r) {
      double residual = time_mean - group.log_seconds[std::size_t(r)];
      for (std::size_t s = 0; s < sources; ++s) {
        residual -= weights[s] * (double(group.basis.at(r, std::int64_t(s))) - column_mean[s]);
      }
      for (std::size_t s = 0; s < sources; ++s) {
        left[s] += (double(group.basis.at(r, std::int64_t(s))) - column_mean[s]) * residual;
      }
    }
  }
  for (std::size_t s = 0; s < sources; ++s) EXPECT_NEAR(left[s], lambda * 18 * (weights[s] - prior[s]), 1e-9);
  EXPECT_EQ(ridge_weights({}, prior, lambda), prior);
}

TEST(Ridge, WithoutSupportIsTheMeanOfTheSources) {
  const auto model = make_ridge_model(columns_as_sources(3), {}, 0.1);
  const Examples group = examples(5, 3, 2, [](auto) { return 0.0; });
  const Scores scores = model->score(group.features), same = model->adapted({})->score(group.features);
  const Scores residual = make_residual_model(columns_as_sources(3))->score(group.features);
  for (std::int64_t r = 0; r < 5; ++r) {
    const auto row = group.features.rows.row(r);
    EXPECT_NEAR(scores.mean[std::size_t(r)], (row[0] + row[1] + row[2]) / 3, 1e-6f);
    EXPECT_NEAR(residual.mean[std::size_t(r)], (row[0] + row[1] + row[2]) / 3, 1e-6f);
  }
  EXPECT_EQ(scores.mean, same.mean);
}

TEST(Ridge, FindsTheMixtureOfSources) {
  const auto speed = [](std::span<const float> row) { return -(0.2 * double(row[0]) + 0.9 * double(row[2])); };
  const Examples support = examples(30, 3, 3, speed), query = examples(50, 3, 4, speed);
  const auto model = make_ridge_model(columns_as_sources(3), {}, 1e-4)->adapted({&support, 1});
  EXPECT_GT(rank_correlation(model->score(query.features).mean, query.log_seconds), 0.999);
}

TEST(Nearest, PicksTheSourceThatRanksTheSupportBest) {
  const auto like_second = [](std::span<const float> row) { return -std::exp(double(row[1])); };
  const Examples support = examples(6, 3, 5, like_second), query = examples(20, 3, 6, like_second);
  const auto prior = make_nearest_model(columns_as_sources(3));
  const auto model = prior->adapted({&support, 1});
  EXPECT_DOUBLE_EQ(rank_correlation(model->score(query.features).mean, query.log_seconds), 1);
  EXPECT_LT(rank_correlation(prior->score(query.features).mean, query.log_seconds), 0.9);
}

TEST(Scratch, KnowsNothingThenLearnsFromSupportAlone) {
  const auto speed = [](std::span<const float> row) { return double(row[0]) - 0.5 * double(row[3]) * double(row[3]); };
  const Examples support = examples(60, 4, 7, speed), query = examples(200, 4, 8, speed);
  const auto prior = make_scratch_model(4);
  for (const float score : prior->score(query.features).mean) EXPECT_EQ(score, 0.0f);
  EXPECT_GT(rank_correlation(prior->adapted({&support, 1})->score(query.features).mean, query.log_seconds), 0.9);
}

TEST(Residual, FollowsGoodSourcesAndLeavesMisleadingOnes) {
  const auto like_sources = [](std::span<const float> row) { return -double(row[0]); };
  const auto against_them = [](std::span<const float> row) {
    return double(row[0] + row[1]) + 0.5 * double(row[1]) * double(row[1]);
  };
  const auto prior = make_residual_model(columns_as_sources(2));
  const Examples few = examples(8, 2, 9, like_sources), query = examples(200, 2, 10, like_sources);
  EXPECT_GT(rank_correlation(prior->adapted({&few, 1})->score(query.features).mean, query.log_seconds), 0.95);
  const Examples support = examples(40, 2, 11, against_them), judged = examples(200, 2, 12, against_them);
  EXPECT_LT(rank_correlation(prior->score(judged.features).mean, judged.log_seconds), 0);
  EXPECT_GT(rank_correlation(prior->adapted({&support, 1})->score(judged.features).mean, judged.log_seconds), 0.9);
}

TEST(RandomModel, ScoresAreAFunctionOfFeaturesAndSeed) {
  const Examples group = examples(50, 3, 13, [](auto) { return 0.0; });
  const auto scores = make_random_model(1)->score(group.features).mean;
  EXPECT_EQ(scores, make_random_model(1)->adapted({&group, 1})->score(group.features).mean);
  EXPECT_NE(scores, make_random_model(2)->score(group.features).mean);
}

// Every learner on a small task set: the model it makes, the same adapted, and both through a file.
class EveryLearner : public testing::TestWithParam<std::string> {
 protected:
  static LearnerSettings settings() {
    LearnerSettings out;
    out.hidden = {12, 8};
    out.steps = 20;
    return out;
  }
  static TaskSet sources() { return without_platform(synthetic::make({}), "p3"); }
  static std::vector<Examples> target() { return only_platforms(synthetic::make({}), {"p3"}).groups; }
  static std::vector<Examples> support() {
    std::vector<Examples> out;
    for (const Examples& group : target()) out.push_back(chosen(group, {3, 1, 4, 15, 9, 26, 5, 35, 8, 7}));
    return out;
  }
  static std::unique_ptr<CostModel> train(const LearnerSettings& with) {
    base::Monitor monitor;
    return make_learner(GetParam())->train(sources(), with, monitor);
  }
};

TEST_P(EveryLearner, AdaptsDeterministicallyAndNotWithoutSupport) {
  const auto model = train(settings());
  const features::Encoded programs = target().front().features;
  const auto before = model->score(programs).mean, after = model->adapted(support())->score(programs).mean;
  ASSERT_EQ(before.size(), std::size_t(programs.programs()));
  EXPECT_EQ(before, model->adapted({})->score(programs).mean);
  EXPECT_EQ(after, model->adapted(support())->score(programs).mean);
  EXPECT_EQ(before == after, GetParam() == "random");
  for (const float score : after) EXPECT_TRUE(std::isfinite(score));
}

TEST_P(EveryLearner, SeedDecidesAndThreadsDoNot) {
  LearnerSettings with = settings();
  const features::Encoded programs = target().front().features;
  const auto scores = train(with)->score(programs).mean;
  with.threads = 3;
  EXPECT_EQ(scores, train(with)->score(programs).mean);
  with.seed = 2;
  EXPECT_EQ(scores == train(with)->score(programs).mean, GetParam() == "scratch");
}

TEST_P(EveryLearner, ScoresOneByOneAsTogether) {
  const auto model = train(settings())->adapted(support());
  const Examples group = target().front();
  const auto together = model->score(group.features).mean;
  for (const std::int64_t r : {0, 17, 79}) {
    const float alone = model->score(chosen(group, {r}).features).mean.front();
    EXPECT_NEAR(alone, together[std::size_t(r)], 1e-4f * std::max(1.0f, std::abs(alone))) << "row " << r;
  }
  EXPECT_TRUE(model->score(features::one_row_each(base::Matrix(0, group.features.rows.columns))).mean.empty());
}

TEST_P(EveryLearner, StateRoundTrips) {
  const features::Encoded programs = target().front().features;
  const auto model = train(settings());
  for (const CostModel* each : {model.get(), model->adapted(support()).release()}) {
    const auto back = model_from(std::string(each->kind()), each->state());
    EXPECT_EQ(back->kind(), each->kind());
    EXPECT_EQ(back->state(), each->state());
    const auto a = each->score(programs).mean, b = back->score(programs).mean;
    for (std::size_t r = 0; r < a.size(); ++r) EXPECT_NEAR(a[r], b[r], 1e-5f * std::max(1.0f, std::abs(a[r])));
    if (each != model.get()) delete each;
  }
}

TEST_P(EveryLearner, FileRoundTrips) {
  const features::Encoding& encoding = features::encodings().front();
  const auto path = std::filesystem::path(testing::TempDir()) / ("graft_model_" + GetParam() + ".h5");
  const auto model = train(settings())->adapted(support());
  base::Document provenance;
  provenance.set("learner", GetParam()).set("seed", 1);
  save_model(*model, encoding, provenance, "# A card\n", path);
  const ModelFile file = load_model(path);
  EXPECT_EQ(file.encoding, encoding.name);
  EXPECT_EQ(file.card, "# A card\n");
  EXPECT_EQ(file.provenance, provenance);
  EXPECT_EQ(file.model->state(), model->state());
  std::filesystem::remove(path);
}

INSTANTIATE_TEST_SUITE_P(All, EveryLearner,
                         testing::Values("scratch", "pooled", "nearest", "ridge", "residual", "maml", "fomaml",
                                         "reptile", "anil", "random"),
                         [](const auto& tested) { return tested.param; });

TEST(Learners, TableIsWhatTheTestsCover) {
  std::vector<std::string> names;
  for (const LearnerEntry& entry : learners()) names.push_back(entry.name);
  EXPECT_EQ(names.size(), 10u);
  EXPECT_THROW(make_learner("mamll"), base::UserError);
}

TEST(Learners, NothingToTrainOnIsRefused) {
  TaskSet none = synthetic::make({});
  none.groups.clear();
  base::Monitor monitor;
  EXPECT_THROW(make_learner("pooled")->train(none, {}, monitor), base::UserError);
}

TEST(Learners, OnePlatformIsEnough) {
  const TaskSet one = only_platforms(synthetic::make({}), {"p1"});
  LearnerSettings settings;
  settings.hidden = {8};
  settings.steps = 5;
  base::Monitor monitor;
  for (const LearnerEntry& entry : learners()) {
    EXPECT_NE(make_learner(entry.name)->train(one, settings, monitor), nullptr) << entry.name;
  }
}

TEST(Learners, StopWhenAsked) {
  class Stop : public base::Monitor {
    bool stop_requested() override { return true; }
  } monitor;
  for (const std::string name : {"pooled", "ridge", "maml"}) {
    EXPECT_THROW(make_learner(name)->train(synthetic::make({}), {}, monitor), base::Failure) << name;
  }
}

// What load_model says about a file that was tampered with.
std::string refusal(const std::function<void(base::Arrays&)>& tamper) {
  const auto path = std::filesystem::path(testing::TempDir()) / "graft_model_refused.h5";
  save_model(*make_scratch_model(3), features::encodings().front(), base::Document::map(), "", path);
  base::Arrays file = datasets::read_arrays(path);
  tamper(file);
  datasets::write_arrays(file, path);
  std::string what = "accepted";
  try {
    load_model(path);
  } catch (const base::UserError& error) {
    what = error.what();
    EXPECT_TRUE(what.starts_with(path.string())) << what;
  }
  std::filesystem::remove(path);
  return what;
}

TEST(ModelFile, RefusesWhatDoesNotFit) {
  EXPECT_EQ(refusal([](base::Arrays&) {}), "accepted");
  const std::string hash =
      refusal([](base::Arrays& file) { file.attributes["model/encoding_hash"] = base::to_hex(1); });
  EXPECT_NE(hash.find("made with encoding"), std::string::npos) << hash;
  EXPECT_NE(hash.find("train again"), std::string::npos) << hash;
  const auto says = [](const std::string& what, const std::string& part) {
    return what.find(part) != std::string::npos ? testing::AssertionSuccess() : testing::AssertionFailure() << what;
  };
  EXPECT_TRUE(
      says(refusal([](base::Arrays& file) { file.attributes["model/kind"] = "scatch"; }), "did you mean 'scratch'"));
  EXPECT_TRUE(says(refusal([](base::Arrays& file) { file.attributes.erase("model/kind"); }), "not a model"));
  EXPECT_TRUE(says(refusal([](base::Arrays& file) { file.attributes["model/schema"] = "9"; }), "schema 9"));
  EXPECT_TRUE(says(refusal([](base::Arrays& file) { file.attributes["model/kind"] = "network"; }), "is missing"));
  EXPECT_TRUE(says(refusal([](base::Arrays& file) { file.attributes["features"] = "-3"; }), "less than 1"));
  EXPECT_THROW(load_model("/nowhere/model.h5"), base::UserError);
}

TEST(ModelState, RefusesArraysOfTheWrongLength) {
  base::Arrays state = make_ridge_model(columns_as_sources(2), {}, 0.1)->state();
  state.arrays["theta/1"].values.pop_back();
  try {
    model_from("ridge", state);
    FAIL();
  } catch (const base::UserError& error) {
    EXPECT_NE(std::string(error.what()).find("array 'theta/1': 2 values, expected 3"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace graft::meta
