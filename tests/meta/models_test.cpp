#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <numeric>

#include "base/error.h"
#include "base/hash.h"
#include "base/random.h"
#include "datasets/hdf5.h"
#include "meta/evaluate.h"
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
#include "meta/model_file.h"
#include "meta/state.h"
#include "tests/meta/synthetic.h"
#include "tests/support/refusal.h"

namespace graft::meta {
namespace {

// Networks without hidden layers, so that what each source scores is known: source s scores column s of the features.
SourceBasis columns_as_sources(std::int64_t sources) {
  SourceBasis basis;
  basis.shape = {sources, {}};
  basis.normalisation.mean.assign(std::size_t(sources), 0.0f);
  basis.normalisation.scale.assign(std::size_t(sources), 1.0f);
  for (std::int64_t s = 0; s < sources; ++s) {
    std::vector<float> theta(std::size_t(sources + 1), 0.0f);
    theta[std::size_t(s)] = 1;
    add(basis, {"p" + std::to_string(s), 1, {}}, std::move(theta));
  }
  return basis;
}

constexpr std::int64_t regressions_of_networks = 104;  // (sources alone + 3 mixtures x 4 kernels) x 4 noises x 2 means
constexpr std::int64_t regressions_with_trunk =
    92;  // 4 x 4 x 2 of leaves, 2 x 3 x 2 of hidden layers and 4 x 2 x 3 x 2 of features

Examples examples(std::int64_t rows, std::int64_t columns, std::uint64_t seed,
                  const std::function<double(std::span<const float>)>& log_seconds) {
  Examples out;
  out.platform = "target";
  out.workload = codegen::Workload("w");
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
  settings.network.hidden = {8};
  settings.steps = 3;
  base::Monitor monitor;
  int models = 0;
  for (const Method& learner : methods()) {
    if (learner.name == "analytic") continue;  // of one encoding only, and it normalises nothing
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

// A platform whose programs differ four times as much does not decide on the mean of all.
TEST(Ridge, TakesSourcesInUnitsOfTheirSpread) {
  SourceBasis basis = columns_as_sources(2);
  add(basis, {"p1", 4, {}}, std::vector<float>{0, 4, 0});
  const Examples group = examples(5, 2, 2, [](auto) { return 0.0; });
  const std::unique_ptr<CostModel> models[] = {make_ridge_model(basis, {}, 0.1), make_residual_model(basis)};
  for (const auto& model : models) {
    const Scores scores = model_from(std::string(model->kind()), model->state())->score(group.features);
    for (std::int64_t r = 0; r < 5; ++r) {
      const auto row = group.features.rows.row(r);
      EXPECT_NEAR(scores.mean[std::size_t(r)], 2.5f * (row[0] + row[1]) / 2, 1e-5f);  // times the mean spread
    }
  }
}

// Columns of the target say which sources are like it: one octave away counts e^-0.5 of what the very same does.
TEST(Residual, TrustsSourcesLikeItsTarget) {
  SourceBasis basis = columns_as_sources(3);
  basis.target_columns = {2};
  const float octaves[] = {2, 3, 5};
  for (std::size_t s = 0; s < 3; ++s) basis.sources[s].target = {octaves[s]};
  Examples support = examples(20, 3, 2, [](std::span<const float> row) { return -double(row[0]); });
  for (std::int64_t r = 0; r < 20; ++r) support.features.rows.at(r, 2) = 2;
  const base::Matrix shares = basis.shares(support.features);
  const double sum = 1 + std::exp(-0.5) + std::exp(-4.5);
  EXPECT_NEAR(shares.at(7, 0), 1 / sum, 1e-6);
  EXPECT_NEAR(shares.at(7, 1), std::exp(-0.5) / sum, 1e-6);
  EXPECT_NEAR(shares.at(7, 2), std::exp(-4.5) / sum, 1e-6);

  const auto prior = make_residual_model(basis);
  const auto model = prior->adapted({&support, 1});
  const auto read = model_from("adapted", model->state()), unadapted = model_from("residual", prior->state());
  EXPECT_EQ(read->score(support.features).mean, model->score(support.features).mean);
  const std::vector<float> scores = unadapted->score(support.features).mean;
  for (std::int64_t r = 0; r < 20; ++r) {
    const auto row = support.features.rows.row(r);
    EXPECT_NEAR(scores[std::size_t(r)], (double(row[0]) + std::exp(-0.5) * double(row[1]) + std::exp(-4.5) * 2) / sum,
                1e-5);
  }
  EXPECT_GT(rank_correlation(model->score(support.features).mean, support.log_seconds), 0.99);

  base::Arrays bad = prior->state();
  put_integers(bad, "target_columns", {3});
  EXPECT_THROW(model_from("residual", bad), base::UserError);
}

// A platform with reversed times orders programs against all others: it does no harm.
TEST(Residual, DoubtsSourcesThatContradictTheOthers) {
  SourceBasis basis = columns_as_sources(2);
  add(basis, {"p0", 1, {}}, std::vector<float>{1, 0, 0});
  add(basis, {"p1", 1, {}}, std::vector<float>{1, 0.1f, 0});
  const Examples group = examples(30, 2, 2, [](auto) { return 0.0; });
  SourceBasis two = basis;
  add(two, {"p1", 1, {}}, std::vector<float>{-1, 0, 0});
  doubt_contrary_sources(two, {&group, 1});
  EXPECT_FALSE(two.sources[0].doubted || two.sources[1].doubted);  // either may be right
  add(basis, {"p2", 1, {}}, std::vector<float>{1, -0.1f, 0});
  add(basis, {"reversed", 1, {}}, std::vector<float>{-1, 0, 0});
  doubt_contrary_sources(basis, {&group, 1});
  for (std::size_t s = 0; s < 4; ++s) EXPECT_EQ(basis.sources[s].doubted, s == 3) << s;

  const std::unique_ptr<CostModel> models[] = {make_ridge_model(basis, {}, 0.1), make_residual_model(basis),
                                               make_nearest_model(basis)};
  for (const auto& model : models) {
    const Scores scores = model_from(std::string(model->kind()), model->state())->score(group.features);
    for (std::int64_t r = 0; r < 30; ++r) EXPECT_NEAR(scores.mean[std::size_t(r)], group.features.rows.at(r, 0), 1e-5f);
  }
  base::Arrays bad = models[1]->state();
  put_integers(bad, "doubted_sources", {4});
  EXPECT_THROW(model_from("residual", bad), base::UserError);

  basis.target_columns = {1};
  for (std::size_t s = 0; s < 4; ++s) basis.sources[s].target = {s == 3 ? group.features.rows.at(0, 1) : 9.0f};
  const base::Matrix shares = basis.shares(group.features);  // though it is the one of such a target
  EXPECT_EQ(shares.at(0, 3), 0);
  EXPECT_NEAR(shares.at(0, 0), 1.0f / 3, 1e-6f);
  for (SourceBasis::Source& source : basis.sources) source.doubted = true;  // none is left to tell who is right
  EXPECT_GT(basis.shares(group.features).at(0, 3), 0.9f);
}

// A reversed source also lowers the agreement of honest ones: each of these two agrees less with the other than it
// disagrees with the reversed one.
TEST(Residual, DoubtsOneAfterTheOther) {
  SourceBasis basis = columns_as_sources(2);
  add(basis, {"p0", 1, {}}, std::vector<float>{1, 0.8f, 0});
  add(basis, {"p1", 1, {}}, std::vector<float>{1, -0.8f, 0});
  add(basis, {"reversed", 1, {}}, std::vector<float>{-1, 0, 0});
  const Examples group = examples(200, 2, 2, [](auto) { return 0.0; });
  doubt_contrary_sources(basis, {&group, 1});
  for (std::size_t s = 0; s < 3; ++s) EXPECT_EQ(basis.sources[s].doubted, s == 2) << s;
}

// Nor does it say which regression is worth believing: on the others the mean of the sources is all there is to know,
// on itself that would be the worst to begin with.
TEST(Residual, ADoubtedSourceIsNoTargetToLearnFrom) {
  TaskSet tasks = synthetic::make({.platforms = 4});
  for (Examples& group : tasks.groups) {
    for (std::int64_t r = 0; r < group.size(); ++r) {
      const auto row = group.features.rows.row(r);
      group.log_seconds[std::size_t(r)] = double(row[0] + row[1] / 2);
    }
  }
  LearnerSettings settings;
  settings.trees = true;
  settings.steps = 60;
  base::Monitor monitor;
  const base::Arrays state =
      make_learner("residual")->train(with_reversed_labels(tasks, {"p1"}), settings, monitor)->state();
  ASSERT_EQ(state.attributes.at("doubted_sources"), "1");
  const StackingPrior prior = stacking_prior_from(state, regressions_with_trunk);
  ASSERT_EQ(prior.regimes.size(), 4u);
  EXPECT_LT(prior.regimes[0].moments[0], 0.3f);  // the first regression is the one that keeps nearest to the mean
}

// A contradictory source is used as soon as measurements show its sign: it alone knows the third column.
TEST(Residual, LearnsFromMeasurementsWhatADoubtedSourceIsWorth) {
  SourceBasis basis = columns_as_sources(30);
  while (basis.sources.size() > 3) basis = without(std::move(basis), 3);
  const auto weights = [](float first, float second, float third) {
    std::vector<float> theta(31, 0.0f);
    theta[0] = first;
    theta[1] = second;
    theta[2] = third;
    return theta;
  };
  add(basis, {"p0", 1, {}}, weights(1, 0, 0));
  add(basis, {"p1", 1, {}}, weights(1, 0.3f, 0));
  add(basis, {"p2", 1, {}}, weights(1, -0.3f, 0));
  add(basis, {"reversed", 1, {}}, weights(-1, 0, -1));
  const auto speed = [](std::span<const float> row) { return -(double(row[0]) + double(row[2])); };
  const Examples support = examples(12, 30, 2, speed), query = examples(200, 30, 3, speed);
  doubt_contrary_sources(basis, {&query, 1});
  ASSERT_TRUE(basis.sources[3].doubted);
  const auto correlation = [&](const SourceBasis& some) {
    return rank_correlation(make_residual_model(some)->adapted({&support, 1})->score(query.features).mean,
                            query.log_seconds);
  };
  EXPECT_GT(correlation(basis), 0.95);
  EXPECT_LT(correlation(without(basis, 3)), 0.85);
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

// What one regression leaves over, on the diagonal of the moments of a model of networks.
template <class Number>
double own_moment(const std::vector<Number>& moments, std::int64_t regression, std::int64_t first = 0) {
  std::int64_t at = first;
  for (std::int64_t a = 0; a < regression; ++a) at += regressions_of_networks - a;
  return double(moments[std::size_t(at)]);
}

// Regressions whose errors are all the same large one but for one's, that leaves over less.
StackingPrior prior_for(std::int64_t regression, float left) {
  StackingPrior out{{8, 64}, {{1, {}}}, regressions_of_networks};
  for (int rows = 0; rows < 2; ++rows) {
    for (std::int64_t a = 0; a < out.regressions; ++a) {
      for (std::int64_t b = a; b < out.regressions; ++b)
        out.regimes[0].moments.push_back(a != regression && b != regression ? 2.0f : a == b ? left : 0.0f);
    }
  }
  return out;
}

// With few rows what the sources taught decides which regressions speak, with many the rows do.
TEST(Residual, FirstTrustsTheRegressionsThatWereGoodOnItsSources) {
  const auto against = [](std::span<const float> row) {
    return double(row[0] + row[1]) + 0.5 * double(row[1]) * double(row[1]);
  };
  const auto prior = make_residual_model(columns_as_sources(2), {}, prior_for(1, 1e-4f));
  const Examples few = examples(8, 2, 9, against), support = examples(200, 2, 11, against),
                 judged = examples(200, 2, 12, against);
  const base::Arrays fit = regressions_of(*prior->fitted({&few, 1}));
  const std::vector<float>& fitted = fit.arrays.at("fit/regressions").values;
  // Sources alone, not from their mean, much noise.
  EXPECT_EQ(std::vector<float>(fitted.begin(), fitted.begin() + 6), (std::vector<float>{0, 0.5f, 1, 1, 0, 2}));
  EXPECT_GT(fitted[6], 0.85f);
  const auto quality = [&](const Examples& measured) {
    return rank_correlation(prior->adapted({&measured, 1})->score(judged.features).mean, judged.log_seconds);
  };
  EXPECT_GT(quality(support), 0.9);
  EXPECT_LT(quality(few), quality(support));

  const auto back = model_from("residual", prior->state());
  EXPECT_EQ(back->adapted({&few, 1})->score(judged.features).mean,
            prior->adapted({&few, 1})->score(judged.features).mean);
  base::Arrays bad = prior->state();
  bad.arrays.at("stacking/moments").values.pop_back();
  EXPECT_THROW(model_from("residual", bad), base::UserError);
  bad = prior->state();
  put_integers(bad, "stacking/rows", {64, 8});
  EXPECT_THROW(model_from("residual", bad), base::UserError);
  bad = prior->state();
  bad.arrays.at("stacking/probabilities").values[0] = 0;
  EXPECT_THROW(model_from("residual", bad), base::UserError);
}

// The moments of one regression are those of its residuals; sources that see other programs have larger
// ones.
TEST(Residual, SaysWhatItsRegressionsLeaveOver) {
  const auto like_first = [](std::span<const float> row) { return -double(row[0]); };
  const Examples pool = examples(52, 2, 1, like_first);
  StackingTrial honest{12, std::vector<std::int64_t>(52)};
  std::iota(honest.view.begin(), honest.view.end(), 0);
  StackingTrial misled = honest;
  std::reverse(misled.view.begin(), misled.view.end());
  const StackingTrial trials[] = {honest, misled};
  const StackingMoments of_two(columns_as_sources(2));
  const std::vector<std::vector<double>> left = of_two.of(pool, trials);
  ASSERT_EQ(left.size(), 2u);
  ASSERT_EQ(stacking_regressions(columns_as_sources(2), false), regressions_of_networks);
  ASSERT_EQ(std::int64_t(left[0].size()), triangle(regressions_of_networks));
  // The diagonal: of sources alone with the least noise, from nothing; then with the most noise.
  EXPECT_LT(own_moment(left[0], 7), 0.01);
  EXPECT_GT(own_moment(left[0], 1), 3 * own_moment(left[0], 7));
  EXPECT_GT(own_moment(left[1], 7), 0.5);
  // Features alone, linear, do not care.
  EXPECT_LT(own_moment(left[1], 31), 0.2);
  EXPECT_NEAR(own_moment(left[1], 31), own_moment(left[0], 31), 1e-6);
  const std::vector<double> still = of_two.of(examples(52, 2, 3, [](auto) { return 0.5; }), {&honest, 1})[0];
  EXPECT_EQ(still, std::vector<double>(still.size(), 0.0));

  // The first source alone does not know the second one's order.
  const Examples other = examples(52, 2, 1, [](std::span<const float> row) { return -double(row[1]); });
  EXPECT_GT(own_moment(StackingMoments(without(columns_as_sources(2), 1)).of(other, {&honest, 1})[0], 7), 0.5);
  EXPECT_LT(own_moment(StackingMoments(without(columns_as_sources(2), 0)).of(other, {&honest, 1})[0], 7), 0.01);
}

// Sources that are forests of depth one: of each feature whether it is above zero.
SourceBasis stumps_as_sources() {
  SourceBasis basis;
  const Examples unit = examples(50, 2, 3, [](auto) { return 0.0; });
  basis.normalisation = fit_normalisation({&unit, 1});
  basis.shape.inputs = 2;
  for (const int feature : {0, 1}) {
    DecisionForest forest;
    forest.features = 2;
    for (const float number : {-0.5f, 0.0f, 0.5f, 1.0f}) {
      forest.nodes.insert(forest.nodes.end(),
                          {{feature, number, 1}, {-1, -0.25f * float(feature + 1), 0}, {-1, 0.25f, 0}});
      forest.begins.push_back(std::int64_t(forest.nodes.size()));
    }
    add(basis, {feature == 0 ? "first" : "second", feature == 0 ? 0.5f : 1.5f, {}}, std::move(forest));
  }
  return basis;
}

// The adapted trees and sums of kernels hold what the regressions say, and a file brings them back.
void expect_sum_of_regressions(const std::optional<SharedTrunk>& trunk) {
  SourceBasis basis = stumps_as_sources();
  basis.target_columns = {0};
  basis.sources[0].target = {0.5f}, basis.sources[1].target = {-1.5f};
  DecisionForest all = basis.forests[0];
  append(all, basis.forests[1]);
  const auto prior = make_residual_model(basis, trunk);
  const auto seconds = [&](std::span<const float> row) {
    double out = double(row[1] > 0.5f) - 2 * double(row[0] > 0) - 0.2 * double(row[1]);
    if (trunk) {
      base::Matrix one(1, 2);
      std::copy(row.begin(), row.end(), one.values.begin());
      for (const float hidden : trunk->trunk.of(features::one_row_each(std::move(one))).values)
        out -= 2 * double(hidden);
    }
    return out;
  };
  const Examples support = examples(12, 2, 31, seconds), query = examples(30, 2, 32, [](auto) { return 0.0; });
  const auto model = prior->adapted({&support, 1});
  const base::Arrays state = model->state(), fit = regressions_of(*prior->fitted({&support, 1}));
  const std::vector<float>&choices = fit.arrays.at("fit/regressions").values,
        &alphas = fit.arrays.at("fit/alpha").values, &sources = fit.arrays.at("fit/sources").values,
        &scale = fit.arrays.at("fit/source_scale").values, &shares = fit.arrays.at("fit/shares").values;
  const Normalisation own{fit.arrays.at("fit/mean").values, fit.arrays.at("fit/scale").values};
  EXPECT_NEAR(shares[0] + shares[1], 1, 1e-6);
  EXPECT_GT(shares[0], shares[1] + 0.1f);
  const base::Matrix shared = LeafTable(all, query.features.rows).shared(LeafTable(all, support.features.rows)),
                     predicted = basis.predict(query.features), x = own.apply(support.features).rows,
                     q = own.apply(query.features).rows;
  const std::vector<float> scores = model->score(query.features).mean;
  // The outputs of hidden layers about their mean in the support, each layer with mean square 1 / layers there.
  base::Matrix hidden_support, hidden_query, hidden;
  std::vector<float> head;
  if (trunk) {
    head = trunk->trunk.head();
    hidden_support = trunk->trunk.of(support.features), hidden_query = hidden = trunk->trunk.of(query.features);
    std::int64_t first = 0;
    for (const std::int64_t width : trunk->trunk.shape.hidden) {
      double squares = 0;
      for (std::int64_t c = first; c < first + width; ++c) {
        float mean = 0;
        for (std::int64_t r = 0; r < 12; ++r) mean += hidden_support.at(r, c) / 12;
        for (std::int64_t r = 0; r < 12; ++r) squares += std::pow(double(hidden_support.at(r, c) -= mean), 2) / 12;
        for (std::int64_t r = 0; r < 30; ++r) hidden_query.at(r, c) -= mean;
      }
      const auto scaled = float(1 / std::sqrt(squares * double(trunk->trunk.shape.hidden.size())));
      for (base::Matrix* const each : {&hidden_support, &hidden_query}) {
        for (std::int64_t r = 0; r < each->rows; ++r) {
          for (std::int64_t c = first; c < first + width; ++c) each->at(r, c) *= scaled;
        }
      }
      first += width;
    }
  }
  const auto dot_of = [](std::span<const float> a, std::span<const float> b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  };
  const double trunk_share = trunk ? double(trunk->share) : 0;
  std::vector<int> kinds(3, 0);
  for (std::int64_t row = 0; row < 30; ++row) {
    double expected = 0;
    for (std::size_t c = 0; 8 * c < choices.size(); ++c) {
      const float* const choice = choices.data() + 8 * c;
      const double share = double(choice[1]), width = double(choice[2]), trust = double(choice[3]);
      const auto kind = std::size_t(choice[0]);
      ++kinds[kind];
      const double by_shares = double(shares[0] * predicted.at(row, 0) + shares[1] * predicted.at(row, 1));
      double score = double(choice[4]) * (1 - trunk_share) * by_shares;
      if (trunk) score += double(choice[4]) * trunk_share * dot_of(hidden.row(row), head);
      for (std::size_t i = 0; i < 12; ++i) {
        double agreement = 0, dot = 0, distance = 0;
        for (std::int64_t s = 0; s < 2; ++s) {
          agreement += double(predicted.at(row, s) * scale[std::size_t(s)] * sources[2 * i + std::size_t(s)]) / 2;
          dot += double(q.at(row, s) * x.at(std::int64_t(i), s)) / 2;
          distance += std::pow(double(q.at(row, s) - x.at(std::int64_t(i), s)), 2) / 2;
        }
        const double features = (1 - share) * dot + share * std::exp(-distance / (2 * width * width));
        const double alike = kind == 0   ? features
                             : kind == 1 ? double(shared.at(row, std::int64_t(i)))
                                         : dot_of(hidden_query.row(row), hidden_support.row(std::int64_t(i)));
        score += double(alphas[12 * c + i]) * ((1 - trust) * alike + trust * agreement);
      }
      expected += double(choice[6]) * score;
    }
    EXPECT_NEAR(double(scores[std::size_t(row)]), expected, 1e-3) << row;
  }
  EXPECT_GT(kinds[0], 0);  // of features; of leaves, or of the hidden layers that the speed follows
  EXPECT_GT(kinds[trunk ? 2 : 1], 0);
  const auto back = model_from("adapted", state);
  EXPECT_EQ(back->score(query.features).mean, scores);
  const Scores believed = model->score_with_spread(query.features);
  EXPECT_EQ(believed.mean, scores);
  EXPECT_EQ(back->score_with_spread(query.features).spread, believed.spread);
  EXPECT_GT(believed.spread[0], 0);
  if (trunk) {
    const Scores mean = prior->score(query.features);
    for (std::int64_t row = 0; row < 30; ++row) {
      const base::Matrix usual = basis.shares(query.features);
      const double expected =
          (1 - trunk_share) * dot_of(usual.row(row), predicted.row(row)) + trunk_share * dot_of(hidden.row(row), head);
      EXPECT_NEAR(double(mean.mean[std::size_t(row)]), expected, 1e-5) << row;
    }
    base::Arrays wrong = prior->state();
    wrong.arrays.at("trunk_share").values = {1.5f};
    EXPECT_THROW(model_from("residual", wrong), base::UserError);
    wrong = prior->state();
    wrong.arrays.at("trunk/theta").values.pop_back();
    EXPECT_THROW(model_from("residual", wrong), base::UserError);
  }
  base::Arrays old = prior->state();
  put_values(old, "fit/alpha", {1});
  EXPECT_THROW(model_from("residual", old), base::UserError);
}

TEST(Residual, OfForestsIsTheSameTreesWithOtherNumbers) {
  expect_sum_of_regressions({});
}

TEST(Residual, WithATrunkIsAlsoALinearFunctionOfItsHiddenLayers) {
  Trunk trunk;
  trunk.normalisation = {{0.1f, -0.2f}, {1, 2}};
  trunk.shape.inputs = 2;
  trunk.shape.hidden = {6, 5};
  trunk.theta = initial_parameters(trunk.shape, 3);
  expect_sum_of_regressions(SharedTrunk{trunk, 0.3f});
}

// Sources that mislead are left for scratch; good ones are kept, however few rows there are.
TEST(Chosen, IsAGuardAgainstNegativeTransfer) {
  const auto guarded = [] {
    Members members;
    members.push_back(make_ridge_model(columns_as_sources(2), {}, 10));
    members.push_back(make_scratch_model(2));
    return make_chosen_model(std::move(members));
  };
  const auto against = [](std::span<const float> row) { return double(row[0] + row[1]); };
  const auto alike = [](std::span<const float> row) { return -double(row[0] + row[1]); };
  const auto prior = guarded();
  const Examples support = examples(24, 2, 21, against), judged = examples(200, 2, 22, against);
  EXPECT_LT(rank_correlation(prior->score(judged.features).mean, judged.log_seconds), -0.9);
  const auto adapted = prior->adapted({&support, 1});
  EXPECT_GT(rank_correlation(adapted->score(judged.features).mean, judged.log_seconds), 0.9);
  const auto back = model_from("adapted", adapted->state());
  EXPECT_EQ(back->score(judged.features).mean, adapted->score(judged.features).mean);
  for (const std::int64_t rows : {2, 5, 24}) {
    const Examples few = examples(rows, 2, 23, alike);
    const Examples query = examples(200, 2, 24, alike);
    EXPECT_GT(rank_correlation(prior->adapted({&few, 1})->score(query.features).mean, query.log_seconds), 0.99) << rows;
  }
  EXPECT_EQ(prior->adapted({})->score(judged.features).mean, prior->score(judged.features).mean);
}

// Evidence prefers to stay with the sources if they explain the support, and to leave them if they do not.
TEST(BayesRidge, ShrinksByTheSupport) {
  const std::vector<double> shares = {0.5, 0.5};
  const auto groups = [](std::uint64_t seed, double by_sources, double noise) {
    base::Stream stream(seed, "rows");
    BasisGroup group{base::Matrix(40, 2), {}};
    for (std::int64_t r = 0; r < 40; ++r) {
      for (float& value : group.basis.row(r)) value = float(stream.normal());
      const double mean = 0.5 * double(group.basis.at(r, 0) + group.basis.at(r, 1));
      group.log_seconds.push_back(-mean - by_sources * double(group.basis.at(r, 0)) - noise * stream.normal());
    }
    return std::vector<BasisGroup>{group};
  };
  EXPECT_GT(likeliest_lambda(groups(1, 0, 0.5), shares), 1);
  EXPECT_LT(likeliest_lambda(groups(2, 3, 0.1), shares), 0.01);
  EXPECT_EQ(likeliest_lambda({}, shares), 1);
}

TEST(Ridge, SpreadIsThePosteriorOfTheWeights) {
  // One source b, weight w ~ 1: A = b^T b + lambda n, w = 1 + b^T r / A, s^2 = (|y - b w|^2 + lambda n (w - 1)^2) / n.
  const Examples support = examples(20, 1, 4, [](std::span<const float> row) { return -1.7 * double(row[0]) + 0.3; });
  const Examples query = examples(5, 1, 5, [](auto) { return 0.0; });
  const double lambda = 0.1, n = 20;
  std::vector<double> b, y;
  double mean_b = 0, mean_y = 0;
  for (std::int64_t r = 0; r < 20; ++r) {
    b.push_back(double(support.features.rows.at(r, 0)));
    y.push_back(-support.log_seconds[std::size_t(r)]);
    mean_b += b.back() / n;
    mean_y += y.back() / n;
  }
  double bb = 0, by = 0;
  for (std::size_t r = 0; r < 20; ++r) {
    b[r] -= mean_b;
    y[r] -= mean_y;
    bb += b[r] * b[r];
    by += b[r] * (y[r] - b[r]);
  }
  const double a = bb + lambda * n, w = 1 + by / a;
  double least = lambda * n * (w - 1) * (w - 1);
  for (std::size_t r = 0; r < 20; ++r) least += (y[r] - b[r] * w) * (y[r] - b[r] * w);
  const auto prior = make_ridge_model(columns_as_sources(1), {}, lambda);
  const Scores believed = prior->adapted({&support, 1})->score_with_spread(query.features);
  for (std::int64_t r = 0; r < 5; ++r) {
    const double x = double(query.features.rows.at(r, 0));
    EXPECT_NEAR(double(believed.mean[std::size_t(r)]), w * x, 1e-5);
    EXPECT_NEAR(double(believed.spread[std::size_t(r)]), std::abs(x) * std::sqrt(least / n / a), 1e-5);
  }
  for (const float spread : prior->score_with_spread(query.features).spread) EXPECT_EQ(spread, 0.0f);
}

// The kernel's own numbers are chosen by the model: they are read from its state, and the variance is computed again.
TEST(Scratch, IsAMixtureOfRegressionsByStackingTheirLeaveOneOutErrors) {
  constexpr int rows = 6;
  const Examples support =
      examples(rows, 2, 7, [](std::span<const float> row) { return double(row[0]) - std::sin(2 * double(row[1])); });
  const Examples query = examples(4, 2, 8, [](auto) { return 0.0; });
  const auto model = make_scratch_model(2)->adapted({&support, 1});
  const base::Arrays fit = regressions_of(*make_scratch_model(2)->fitted({&support, 1}));
  const std::vector<float>& choices = fit.arrays.at("fit/regressions").values;
  const Normalisation normalisation{fit.arrays.at("fit/mean").values, fit.arrays.at("fit/scale").values};
  const base::Matrix x = normalisation.apply(support.features).rows, q = normalisation.apply(query.features).rows;
  std::vector<double> y;
  for (const double value : support.log_seconds) y.push_back(-value);
  const double mean = std::accumulate(y.begin(), y.end(), 0.0) / rows;
  for (double& value : y) value -= mean;

  ASSERT_EQ(choices.size() % 8, 0u);
  ASSERT_GE(choices.size(), 16u);  // six rows cannot decide between all
  double sum_of_weights = 0;
  std::vector<double> weights, means(4, 0.0), squares(4, 0.0);
  std::vector<std::vector<double>> left;  // by regression, leave one out
  for (std::size_t c = 0; c < choices.size(); c += 8) {
    const double share = double(choices[c + 1]), width = double(choices[c + 2]), noise = double(choices[c + 5]),
                 weight = double(choices[c + 6]);
    const auto k = [&](std::span<const float> a, std::span<const float> b) {
      double dot = 0, distance = 0;
      for (std::size_t f = 0; f < 2; ++f) {
        dot += double(a[f]) * double(b[f]) / 2;
        distance += double(a[f] - b[f]) * double(a[f] - b[f]) / 2;
      }
      return (1 - share) * dot + share * std::exp(-distance / (2 * width * width));
    };
    // A: kernel, offset of the group, noise; all relative to the variance within the group.
    double diagonal = 0, all = 0;
    for (int i = 0; i < rows; ++i) {
      diagonal += k(x.row(i), x.row(i)) / rows;
      for (int j = 0; j < rows; ++j) all += k(x.row(i), x.row(j)) / (rows * rows);
    }
    const double within = diagonal - all;
    // The inverse of A without one row (all rows for -1), by Gauss and Jordan; that row's place is zero.
    const auto solve = [&](std::vector<double> right, int without) {
      std::vector<std::vector<double>> m(rows, std::vector<double>(rows));
      for (int i = 0; i < rows; ++i) {
        for (int j = 0; j < rows; ++j) m[i][j] = k(x.row(i), x.row(j)) + 30 * within + (i == j ? noise * within : 0);
      }
      for (int i = 0; i < rows && without >= 0; ++i) m[without][i] = m[i][without] = i == without ? 1 : 0;
      if (without >= 0) right[std::size_t(without)] = 0;
      for (int p = 0; p < rows; ++p) {
        for (int i = 0; i < rows; ++i) {
          if (i == p) continue;
          const double factor = m[i][p] / m[p][p];
          for (int j = 0; j < rows; ++j) m[i][j] -= factor * m[p][j];
          right[std::size_t(i)] -= factor * right[std::size_t(p)];
        }
      }
      for (int p = 0; p < rows; ++p) right[std::size_t(p)] /= m[p][p];
      return right;
    };
    left.emplace_back();
    for (int out = 0; out < rows; ++out) {
      const std::vector<double> others = solve(y, out);
      double guess = 0;
      for (int i = 0; i < rows; ++i)
        if (i != out) guess += (k(x.row(out), x.row(i)) + 30 * within) * others[std::size_t(i)];
      left.back().push_back(guess - y[std::size_t(out)]);
    }
    weights.push_back(weight);
    sum_of_weights += weight;

    const std::vector<double> alpha = solve(y, -1);
    double amplitude = 0;
    for (std::size_t i = 0; i < rows; ++i) amplitude += y[i] * alpha[i] / rows;
    for (int r = 0; r < 4; ++r) {
      std::vector<double> to;
      for (int i = 0; i < rows; ++i) to.push_back(k(q.row(r), x.row(i)));
      const std::vector<double> solved = solve(to, -1);
      double variance = k(q.row(r), q.row(r)), score = 0;
      for (std::size_t i = 0; i < rows; ++i) variance -= to[i] * solved[i], score += to[i] * alpha[i];
      means[std::size_t(r)] += weight * score;
      squares[std::size_t(r)] += weight * (amplitude * variance + score * score);
    }
  }
  EXPECT_NEAR(sum_of_weights, 1, 1e-5);
  // Faster programs count more: (2 r - 1) / 6 for the r-th slowest.
  std::vector<double> importance;
  for (std::size_t i = 0; i < rows; ++i) {
    const auto slower = std::count_if(y.begin(), y.end(), [&](double other) { return other < y[i]; });
    importance.push_back((2 * double(slower) + 1) / rows);
  }
  // The least of sum (w . left)^2 + 4 / 6 sum w^2 left^2, so weighted: all regressions with a positive weight have the
  // same slope.
  const auto slope = [&](std::size_t a) {
    double out = 0;
    for (std::size_t b = 0; b < left.size(); ++b) {
      double moment = 0;
      for (std::size_t i = 0; i < rows; ++i) moment += importance[i] * left[a][i] * left[b][i];
      out += weights[b] * moment * (a == b ? 1 + 4.0 / rows : 1);
    }
    return out;
  };
  for (std::size_t a = 1; a < left.size(); ++a) EXPECT_NEAR(slope(a), slope(0), 0.03 * slope(0)) << a;
  const Scores believed = model->score_with_spread(query.features);
  EXPECT_EQ(believed.mean, model->score(query.features).mean);
  for (std::size_t r = 0; r < 4; ++r) {
    EXPECT_NEAR(double(believed.mean[r]), means[r], 2e-3) << r;
    EXPECT_NEAR(double(believed.spread[r]), std::sqrt(squares[r] - means[r] * means[r]), 2e-3) << r;
    EXPECT_GT(believed.spread[r], 0);
  }
}

TEST(RandomModel, ScoresAreAFunctionOfFeaturesAndSeed) {
  const Examples group = examples(50, 3, 13, [](auto) { return 0.0; });
  const auto scores = make_random_model(1)->score(group.features).mean;
  EXPECT_EQ(scores, make_random_model(1)->adapted({&group, 1})->score(group.features).mean);
  EXPECT_NE(scores, make_random_model(2)->score(group.features).mean);
}

// Every learner on a small task set: the model it makes, the same adapted, and both through a file.
class EveryLearner : public testing::TestWithParam<std::tuple<std::string, NetworkKind, bool>> {
 public:
  static std::string test_name(const testing::TestParamInfo<ParamType>& tested) {
    std::string name = std::get<0>(tested.param);
    std::erase(name, '-');
    std::replace(name.begin(), name.end(), '+', 'p');
    return name + "_" + (std::get<2>(tested.param) ? "trees" : std::string(name_of(std::get<1>(tested.param))));
  }

 protected:
  static std::string learner() { return std::get<0>(GetParam()); }
  static NetworkKind kind() { return std::get<1>(GetParam()); }
  static LearnerSettings settings() {
    LearnerSettings out;
    out.network.hidden = {12, 8};
    out.network.kind = kind();
    out.network.tree = {10, 8, 3};
    out.steps = 20;
    out.trees = std::get<2>(GetParam());
    return out;
  }
  static TaskSet all() {
    synthetic::Settings with;
    with.trees = kind() == NetworkKind::treegru;
    return synthetic::make(with);
  }
  static TaskSet sources() { return without_platform(all(), "p3"); }
  static std::vector<Examples> target() { return only_platforms(all(), {"p3"}).groups; }
  static std::vector<Examples> support() {
    std::vector<Examples> out;
    for (const Examples& group : target()) out.push_back(chosen(group, {3, 1, 4, 15, 9, 26, 5, 35, 8, 7}));
    return out;
  }
  static std::unique_ptr<CostModel> train(const LearnerSettings& with) {
    base::Monitor monitor;
    return make_learner(learner())->train(sources(), with, monitor);
  }
};

TEST_P(EveryLearner, AdaptsDeterministicallyAndNotWithoutSupport) {
  const auto model = train(settings());
  const features::Encoded programs = target().front().features;
  const auto before = model->score(programs).mean, after = model->adapted(support())->score(programs).mean;
  ASSERT_EQ(before.size(), std::size_t(programs.programs()));
  EXPECT_EQ(before, model->adapted({})->score(programs).mean);
  EXPECT_EQ(after, model->adapted(support())->score(programs).mean);
  if (learner() != "gbt") {  // which may choose that no tree is best
    EXPECT_EQ(before == after, learner() == "random");
  }
  for (const float score : after) EXPECT_TRUE(std::isfinite(score));
}

TEST_P(EveryLearner, SeedDecidesAndThreadsDoNot) {
  LearnerSettings with = settings();
  const features::Encoded programs = target().front().features;
  const auto scores = [&] { return train(with)->adapted(support())->score(programs).mean; };
  const std::vector<float> first = scores();
  with.threads = 3;
  EXPECT_EQ(first, scores());
  const base::Arrays prior = train(with)->state();
  with.seed = 2;
  if (learner() == "adaptive") {  // which may choose to be scratch with either: what it chooses from differs
    EXPECT_FALSE(train(with)->state() == prior);
  } else {
    EXPECT_EQ(first == scores(), learner() == "scratch" || learner() == "gbt-scratch");
  }
}

// A model is informed by training or by support; one that is not scores all programs alike, or by chance.
TEST_P(EveryLearner, IsInformedByTrainingOrSupport) {
  const auto model = train(settings());
  const Method& row = method_named(learner());
  const bool by_chance = learner() == "random";
  EXPECT_EQ(model->is_informed(), row.informed);
  const features::Encoded programs = target().front().features;
  const std::vector<float> before = model->score(programs).mean;
  const bool alike = std::equal(before.begin() + 1, before.end(), before.begin());
  EXPECT_EQ(alike, !row.informed && !by_chance);
  // One program of a workload has no order.
  std::vector<Examples> ones;
  for (const Examples& group : target()) ones.push_back(chosen(group, {3}));
  const auto by_ones = model->adapted(ones);
  EXPECT_EQ(by_ones->is_informed(), row.informed);
  EXPECT_EQ(by_ones->score(programs).mean, before);

  const auto adapted = model->adapted(support());
  EXPECT_EQ(adapted->is_informed(), !by_chance);
  for (const CostModel* each : {model.get(), adapted.get()})
    EXPECT_EQ(model_from(std::string(each->kind()), each->state())->is_informed(), each->is_informed());
}

// What a board has taught is not forgotten: the contract of CostModel::adapted.
TEST_P(EveryLearner, AdaptingTwiceIsAdaptingToBoth) {
  const auto model = train(settings());
  const features::Encoded programs = target().front().features;
  const auto scores = [&](const CostModel& adapted) { return adapted.score(programs).mean; };
  const std::vector<Examples> all = support();
  std::vector<Examples> first = {chosen(all[0], {0, 1, 2, 3, 4, 5})}, second(all.begin() + 1, all.end()), both = all;
  second.push_back(chosen(all[0], {5, 6, 7, 8, 9}));  // one program again, which then was faster
  second.back().log_seconds[0] -= 1;
  both[0].log_seconds[5] -= 1;
  both[0] = chosen(both[0], {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  const auto once = model->adapted(first);
  EXPECT_EQ(scores(*once->adapted(second)), scores(*model->adapted(both)));
  const auto read = model_from(std::string(once->kind()), once->state());
  const std::vector<float> of_read = scores(*read->adapted(second)), of_both = scores(*model->adapted(both));
  for (std::size_t p = 0; p < of_both.size(); ++p) EXPECT_NEAR(of_read[p], of_both[p], 1e-3f) << p;
  EXPECT_EQ(scores(*once->adapted({})), scores(*once));
  EXPECT_EQ(scores(*once->prior()), scores(*model));
  ASSERT_EQ(once->support().size(), 1u);
  EXPECT_EQ(once->support()[0].log_seconds.size(), 6u);

  // Another platform begins from the prior.
  std::vector<Examples> elsewhere = second;
  for (Examples& group : elsewhere) group.platform = "another";
  EXPECT_EQ(scores(*once->adapted(elsewhere)), scores(*model->adapted(elsewhere)));
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
  const auto adapted = model->adapted(support());
  for (const CostModel* each : {model.get(), adapted.get()}) {
    const auto back = model_from(std::string(each->kind()), each->state());
    EXPECT_EQ(back->kind(), each->kind());
    EXPECT_EQ(back->state(), each->state());
    const auto a = each->score(programs).mean, b = back->score(programs).mean;
    for (std::size_t r = 0; r < a.size(); ++r) EXPECT_NEAR(a[r], b[r], 1e-5f * std::max(1.0f, std::abs(a[r])));
  }
}

TEST_P(EveryLearner, FileRoundTrips) {
  // With as many columns as the encoding that the file names.
  const bool trees = kind() == NetworkKind::treegru;
  const features::Encoding& encoding = features::encoding_named(trees ? "tree" : "analytic");
  const TaskSet tasks = synthetic::make(
      {.platforms = 2, .workloads = 2, .rows = 24, .features = int(encoding.features.size()), .trees = trees});
  LearnerSettings few = settings();
  few.steps = 3;
  base::Monitor monitor;
  const auto path = std::filesystem::path(testing::TempDir()) / ("graft_model_" + test_name({GetParam(), 0}) + ".h5");
  const auto model = make_learner(learner())->train(tasks, few, monitor)->adapted(tasks.groups);
  base::Document provenance;
  provenance.set("learner", learner()).set("seed", 1);
  save_model(*model, encoding, provenance, "# A card\n", path);
  const ModelFile file = load_model(path);
  EXPECT_EQ(file.encoding->name, encoding.name);
  EXPECT_EQ(file.card, "# A card\n");
  EXPECT_EQ(file.provenance, provenance);
  EXPECT_EQ(file.model->state(), model->state());
  EXPECT_EQ(file.model->is_informed(), model->is_informed());
  EXPECT_EQ(file.hash.size(), 16u);
  EXPECT_TRUE(file.known.empty());
  std::filesystem::remove(path);
}

std::vector<std::string> names_of_methods(const std::function<bool(const Method&)>& wanted) {
  std::vector<std::string> out;
  for (const Method& method : methods()) {
    if (wanted(method)) out.push_back(method.name);
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(All, EveryLearner,
                         testing::Combine(testing::ValuesIn(names_of_methods([](const Method& method) {
                                            return method.name != "analytic";  // of one encoding only
                                          })),
                                          testing::Values(NetworkKind::mlp, NetworkKind::treegru),
                                          testing::Values(false)),
                         EveryLearner::test_name);
// Those whose sources may be forests.
INSTANTIATE_TEST_SUITE_P(OfTrees, EveryLearner,
                         testing::Combine(testing::ValuesIn(names_of_methods([](const Method& method) {
                                            return method.made_of == MadeOf::either;
                                          })),
                                          testing::Values(NetworkKind::mlp), testing::Values(true)),
                         EveryLearner::test_name);

// The entries of a row hold for its models, and a file restores them: new rows are tested by
// this.
TEST(Methods, RowsSayWhatTheirModelsAre) {
  const features::Encoding& encoding = features::encoding_named("analytic");
  TaskSet tasks =
      synthetic::make({.platforms = 3, .workloads = 2, .rows = 24, .features = int(encoding.features.size())});
  tasks.encoding = &encoding;
  const auto path = std::filesystem::path(testing::TempDir()) / "graft_model_of_row.h5";
  for (const Method& method : methods()) {
    SCOPED_TRACE(method.name);
    for (const bool trees : {false, true}) {
      if (trees && !prefers_trees(method)) continue;
      LearnerSettings settings;
      settings.network.hidden = {6};
      settings.steps = 3;
      settings.trees = trees;
      base::Monitor monitor;
      const auto model = make_learner(method.name)->train(tasks, settings, monitor);
      EXPECT_EQ(model->kind(), method.kind);
      EXPECT_EQ(model->is_informed(), method.informed);
      EXPECT_EQ(model->can_continue(), method.continues);
      EXPECT_EQ(method.read(model->state())->state(), model->state());
      save_model(*model, encoding, {}, "", path);
      EXPECT_EQ(load_model(path).model->state(), model->state());
      const auto more = [&] { return continued(*model, 3, only_platforms(tasks, {"p1"}), settings, monitor); };
      if (method.continues) {
        EXPECT_EQ(more()->kind(), method.kind);
      } else {
        EXPECT_THROW(more(), base::UserError);
      }
      bool forests = false;  // in the model, or in one that it is made of
      for (const auto& [name, array] : model->state().arrays) forests |= name.find("forest/") != std::string::npos;
      EXPECT_EQ(forests, method.made_of == MadeOf::trees || trees);
    }
  }
  std::filesystem::remove(path);
}

TEST(Methods, TreesAreTakenWhereTheMethodCanHaveThem) {
  EXPECT_EQ(learner_with("pooled", true), "gbt");
  EXPECT_EQ(learner_with("scratch", true), "gbt-scratch");
  EXPECT_EQ(learner_with("residual", true), "residual");
  for (const Method& method : methods()) {
    EXPECT_EQ(learner_with(method.name, false), method.name);
    if (method.made_of == MadeOf::networks && method.with_trees.empty()) {
      EXPECT_THROW(learner_with(method.name, true), base::UserError) << method.name;
    }
    EXPECT_EQ(prefers_trees(method), method.made_of == MadeOf::either || method.made_of == MadeOf::trees);
  }
  EXPECT_EQ(usual_encoding(true, NetworkKind::mlp).name, "context_relation+on_target");
  EXPECT_EQ(usual_encoding(false, NetworkKind::mlp).name, "context_relation");
  EXPECT_EQ(usual_encoding(false, NetworkKind::treegru).name, "tree");
}

TEST(Learners, AnalyticIsTheFirstColumnOfItsEncodingAndOfNoOther) {
  TaskSet tasks = synthetic::make({});
  base::Monitor monitor;
  const LearnerSettings settings;
  EXPECT_THROW(make_learner("analytic")->train(tasks, settings, monitor), base::UserError);
  tasks.encoding = &features::encoding_named("analytic");
  const auto model = make_learner("analytic")->train(tasks, settings, monitor);
  const auto again = model_from(std::string(model->kind()), model->state());
  const features::Encoded& programs = tasks.groups.front().features;
  const Scores scores = again->adapted(tasks.groups)->score(programs);
  for (std::int64_t p = 0; p < programs.programs(); ++p)
    EXPECT_EQ(scores.mean[std::size_t(p)], -programs.rows.at(p, 0));
}

TEST(Learners, UntrainedModelsNeedNoData) {
  base::Monitor monitor;
  const LearnerSettings settings;
  std::vector<std::string> names;
  for (const UntrainedModel& untrained : untrained_models()) {
    EXPECT_NE(untrained_model(untrained.name, settings, monitor), nullptr) << untrained.name;
    names.push_back(untrained.name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"scratch", "black-box", "analytic", "random", "trees", "mlp", "treegru"}));
  EXPECT_EQ(untrained_named("tree"), nullptr);
  EXPECT_EQ(untrained_named("trees:rank")->name, "trees");
  EXPECT_THROW(untrained_model("trees:odd", settings, monitor), base::UserError);
  EXPECT_THROW(untrained_model("scratch:rank", settings, monitor), base::UserError);
}

// Networks and trees without sources rank what they were not shown better than chance, by either loss; the same seed
// gives the same model, a stored one is the same.
TEST(Learners, ModelsFromScratchLearnTheSupport) {
  base::Monitor monitor;
  for (const std::string name : {"network-scratch", "gbt-scratch"}) {
    for (const NetworkKind kind : {NetworkKind::mlp, NetworkKind::treegru}) {
      if (kind == NetworkKind::treegru && name == "gbt-scratch") continue;
      const TaskSet tasks =
          synthetic::make({.platforms = 1, .workloads = 1, .rows = 160, .trees = kind == NetworkKind::treegru});
      std::vector<std::int64_t> shown, others;
      for (std::int64_t p = 0; p < 160; ++p) (p < 96 ? shown : others).push_back(p);
      const Examples support = chosen(tasks.groups.front(), shown), query = chosen(tasks.groups.front(), others);
      for (const Loss loss : {Loss::rank, Loss::squared}) {
        LearnerSettings settings;
        settings.loss = loss;
        settings.network.kind = kind;
        settings.network.hidden = {16};
        settings.network.tree = {8, 8, 4};
        const auto prior = make_learner(name)->train(tasks, settings, monitor);
        EXPECT_FALSE(prior->is_informed());
        const auto model = prior->adapted({&support, 1});
        EXPECT_TRUE(model->is_informed());
        const std::vector<float> scores = model->score(query.features).mean;
        EXPECT_GT(rank_correlation(scores, query.log_seconds), 0.4) << name << " " << name_of(loss) << int(kind);
        EXPECT_EQ(prior->adapted({&support, 1})->score(query.features).mean, scores);
        const auto again = model_from(std::string(prior->kind()), prior->state());
        EXPECT_EQ(again->adapted({&support, 1})->score(query.features).mean, scores);
      }
    }
  }
}

// As published: a frozen model never moves; f_global fades by 2^(-n / 64) and is gone after 277 programs.
TEST(Learners, PublishedWaysToTransfer) {
  base::Monitor monitor;
  const TaskSet tasks = synthetic::make({.platforms = 2, .workloads = 1, .rows = 300});
  LearnerSettings settings;
  settings.steps = 20;
  settings.network.hidden = {8};
  const auto model = make_learner("pooled")->train(only_platforms(tasks, {platforms(tasks)[0]}), settings, monitor);
  const Examples& target = tasks.groups.back();
  const std::vector<float> scores = model->score(target.features).mean;
  const auto some = [&](std::int64_t count) {
    std::vector<std::int64_t> rows(std::size_t(count), 0);
    std::iota(rows.begin(), rows.end(), 0);
    return chosen(target, rows);
  };
  EXPECT_THROW(with_transfer(model->clone(), "thawed", *tasks.encoding), base::UserError);
  EXPECT_EQ(with_transfer(model->clone(), "adapted", *tasks.encoding)->score(target.features).mean, scores);

  const auto frozen = with_transfer(model->clone(), "frozen", *tasks.encoding);
  const Examples hundred = some(100);
  EXPECT_EQ(frozen->adapted({&hundred, 1})->score(target.features).mean, scores);

  const auto both = with_transfer(model->clone(), "global-local", *tasks.encoding);
  EXPECT_EQ(both->score(target.features).mean, scores);
  for (const auto& [rows, weight] : {std::pair{64, 0.5}, {128, 0.25}, {276, 0.05}, {277, 0.0}}) {
    const Examples support = some(rows);
    const auto fitted = both->fitted({&support, 1});
    EXPECT_NEAR(fitted->state().arrays.at("weight").values.front(), weight, 0.002) << rows;
    const auto again = model_from(std::string(fitted->kind()), fitted->state());
    EXPECT_EQ(again->score(target.features).mean, fitted->score(target.features).mean);
    EXPECT_GT(rank_correlation(fitted->score(target.features).mean, target.log_seconds), 0.5) << rows;
  }
}

TEST(Learners, NetworkAndEncodingMustFit) {
  synthetic::Settings with;
  with.trees = true;
  const TaskSet trees = synthetic::make(with), rows = synthetic::make({});
  base::Monitor monitor;
  LearnerSettings mlp, treegru;
  treegru.network.kind = NetworkKind::treegru;
  for (const std::string name : {"pooled", "residual", "reptile"}) {
    EXPECT_THROW(make_learner(name)->train(trees, mlp, monitor), base::UserError) << name;
    EXPECT_THROW(make_learner(name)->train(rows, treegru, monitor), base::UserError) << name;
  }
}

TEST(ModelState, KindOfNetworkIsKeptAndOnceWasMlp) {
  NetworkShape shape{7, {5}, NetworkKind::treegru, {3, 4, 2}};
  base::Arrays arrays;
  put(shape, arrays);
  EXPECT_EQ(shape_from(arrays, 7), shape);
  arrays.attributes["tree"] = "3,4";
  EXPECT_THROW(shape_from(arrays, 7), base::UserError);
  arrays.attributes["tree"] = "3,4,100000000";
  EXPECT_THROW(shape_from(arrays, 7), base::UserError);
  arrays.attributes["network"] = "treegr";
  EXPECT_THROW(shape_from(arrays, 7), base::UserError);
  arrays.attributes.erase("network");
  EXPECT_EQ(shape_from(arrays, 7).kind, NetworkKind::mlp);
}

TEST(Learners, UnknownNamesAreRefused) {
  EXPECT_THROW(make_learner("mamll"), base::UserError);
}

// What a text sets is what the learner does; what it leaves is the method's own.
TEST(Learners, TakeSettings) {
  const TaskSet tasks = synthetic::make({});
  LearnerSettings settings;
  settings.network.hidden = {4};
  settings.steps = 2;
  base::Monitor monitor;
  const auto state_of = [&](const std::string& learner) {
    return make_learner(learner)->train(tasks, settings, monitor)->state();
  };
  EXPECT_EQ(state_of("fomaml:inner_steps=10"), state_of("fomaml"));
  EXPECT_NE(state_of("fomaml:inner_steps=2"), state_of("fomaml"));
  EXPECT_EQ(state_of("fomaml:tasks=2,inner_steps=2"), state_of("fomaml:inner_steps=2, tasks=2"));
  EXPECT_NE(state_of("gbt:depth=2"), state_of("gbt"));
  EXPECT_EQ(learner_with("gbt:depth=2", true), "gbt:depth=2");
  EXPECT_EQ(evaluated_method_named("gbt-zero-shot:depth=2").learner, "gbt:depth=2");
  EXPECT_EQ(joined_learners({"ridge", "maml:inner_steps=5", "inner_rate=0.5", "maml"}),
            (std::vector<std::string>{"ridge", "maml:inner_steps=5,inner_rate=0.5", "maml"}));
}

TEST(Learners, RefuseSettingsThatTheyDoNotHave) {
  const auto said = [](const std::string& learner) { return codegen::refusal([&] { return make_learner(learner); }); };
  EXPECT_EQ(said("maml:iner_steps=5"),
            "learner 'maml:iner_steps=5': no setting 'iner_steps'; did you mean 'inner_steps'?; there are inner_steps, "
            "inner_rate, outer_steps, outer_rate, tasks");
  EXPECT_EQ(said("maml:inner_steps=2.5"),
            "learner 'maml:inner_steps=2.5': inner_steps is a whole number from 1 to 1000, not '2.5'");
  EXPECT_EQ(said("maml:inner_rate="), "learner 'maml:inner_rate=': inner_rate is a number from 1e-06 to 1000, not ''");
  EXPECT_EQ(said("maml:inner_steps"),
            "learner 'maml:inner_steps': inner_steps is a whole number from 1 to 1000, not ''");
  EXPECT_EQ(said("maml:tasks=2,tasks=3"), "learner 'maml:tasks=2,tasks=3': 'tasks' is set twice");
  EXPECT_EQ(said("ridge:depth=3"), "learner 'ridge:depth=3': ridge has no settings");
  EXPECT_EQ(said("maml:"), "learner 'maml:': sets nothing");
}

// Wrappers know what their parts know.
TEST(Learners, EnsemblesAndGuardedModelsAreInformedByTheirParts) {
  const TaskSet tasks = synthetic::make({});
  base::Monitor monitor;
  for (const bool guard : {false, true}) {
    for (const std::string name : {"scratch", "gbt-scratch", "ridge"}) {
      LearnerSettings settings;
      settings.steps = 3;
      settings.network.hidden = {4};
      settings.guard = guard;
      settings.members = guard ? 1 : 2;
      const auto model = trained(*make_learner(name), tasks, settings, monitor);
      EXPECT_EQ(model->is_informed(), name == "ridge") << name;
      const auto adapted = model->adapted(tasks.groups);
      EXPECT_TRUE(adapted->is_informed()) << name;
      EXPECT_TRUE(model_from(std::string(adapted->kind()), adapted->state())->is_informed()) << name;
    }
  }
}

TEST(Learners, UntrainedModelsAreInformedAsTheirLearnersSay) {
  for (const UntrainedModel& untrained : untrained_models()) {
    base::Monitor monitor;
    const LearnerSettings settings;
    const auto model = untrained_model(untrained.name, settings, monitor);
    EXPECT_EQ(model->is_informed(), untrained.name == "analytic") << untrained.name;
    EXPECT_EQ(model->is_informed(), method_named(untrained.learner).informed) << untrained.name;
  }
}

// The same training at another time with another command is the same model; one other weight is another.
TEST(ModelFiles, HashIsOfTheModelAlone) {
  const auto path = std::filesystem::path(testing::TempDir()) / "graft_model_hash.h5";
  const features::Encoding& encoding = features::encoding_named("analytic");
  const TaskSet tasks =
      synthetic::make({.platforms = 2, .workloads = 2, .rows = 24, .features = int(encoding.features.size())});
  LearnerSettings settings;
  settings.steps = 3;
  settings.network.hidden = {4};
  const auto train = [&] {
    base::Monitor monitor;
    return make_learner("pooled")->train(tasks, settings, monitor);
  };
  const auto hash_of = [&](const CostModel& model, const char* date, const features::Encoding& with) {
    base::Document provenance;
    provenance.set("date", date).set("command", std::string("graft train ") + date);
    save_model(model, with, provenance, std::string("# Trained on ") + date, path);
    return load_model(path).hash;
  };
  const auto model = train();
  const std::string hash = hash_of(*model, "2026-01-01", encoding);
  EXPECT_EQ(hash_of(*train(), "2026-02-02", encoding), hash);
  EXPECT_EQ(hash_of(*load_model(path).model, "2026-03-03", encoding), hash);
  base::Arrays state = model->state();
  float& weight = state.arrays.at("theta").values.front();
  weight = std::nextafter(weight, 1e9f);
  EXPECT_NE(hash_of(*model_from("network", state), "2026-01-01", encoding), hash);
  settings.seed = 2;
  EXPECT_NE(hash_of(*train(), "2026-01-01", encoding), hash);
  // The same numbers for other features.
  const auto scratch = make_random_model(1);
  EXPECT_NE(hash_of(*scratch, "2026-01-01", encoding),
            hash_of(*scratch, "2026-01-01", features::encoding_named("knobs")));
  std::filesystem::remove(path);
}

TEST(Learners, NothingToTrainOnIsRefused) {
  TaskSet none = synthetic::make({});
  none.groups.clear();
  base::Monitor monitor;
  const LearnerSettings usual;
  EXPECT_THROW(make_learner("pooled")->train(none, usual, monitor), base::UserError);
  // One program of each workload: nothing to compare it with. Two of one will do.
  for (const bool two : {false, true}) {
    TaskSet ones = synthetic::make({});
    for (Examples& group : ones.groups) group = chosen(group, {3});
    if (two) ones.groups.front() = chosen(synthetic::make({}).groups.front(), {3, 4});
    for (const char* const name : {"pooled", "residual", "gbt", "maml", "latent"}) {
      LearnerSettings settings;
      settings.steps = 2;
      settings.network.hidden = {4};
      try {
        make_learner(name)->train(ones, settings, monitor);
        EXPECT_TRUE(two) << name;
      } catch (const base::UserError& error) {
        EXPECT_FALSE(two) << name;
        EXPECT_NE(std::string(error.what()).find("no workload has two programs"), std::string::npos) << error.what();
      }
    }
  }
}

TEST(Learners, OnePlatformIsEnough) {
  const TaskSet one = only_platforms(synthetic::make({}), {"p1"});
  LearnerSettings settings;
  settings.network.hidden = {8};
  settings.steps = 5;
  base::Monitor monitor;
  for (const Method& entry : methods()) {
    if (entry.name == "analytic") continue;  // of another encoding
    EXPECT_NE(make_learner(entry.name)->train(one, settings, monitor), nullptr) << entry.name;
  }
}

// Each of the platforms was the target of the others, and only the others could say what its programs are like.
TEST(Learners, ResidualLearnsWhichRegressionsToBelieve) {
  LearnerSettings settings;
  settings.network.hidden = {16};
  settings.steps = 400;
  base::Monitor monitor;
  const auto prior_of = [&](const TaskSet& tasks) {
    return stacking_prior_from(make_learner("residual")->train(tasks, settings, monitor)->state(),
                               regressions_of_networks);
  };
  const StackingPrior prior = prior_of(synthetic::make({.platforms = 4, .workloads = 2, .rows = 40}));
  ASSERT_EQ(prior.rows, (std::vector<std::int64_t>{4, 8, 16, 32, 64}));
  ASSERT_EQ(prior.regimes.size(), 4u);
  for (std::int64_t row = 0; row < 5; ++row) {
    const auto moment = [&](std::size_t regime, std::int64_t regression) {
      return own_moment(prior.regimes[regime].moments, regression, row * triangle(regressions_of_networks));
    };
    // Features alone, from nothing; sources alone, from their mean.
    EXPECT_GT(moment(0, regressions_of_networks - 1), moment(0, 4)) << row;
    EXPECT_GT(moment(1, 4), moment(0, 4)) << row;  // sources that take a quarter of the programs for others
    EXPECT_GT(moment(3, 4), moment(1, 4)) << row;  // all of them
  }
  // The only source cannot tell what an honest one is worth.
  EXPECT_EQ(prior_of(synthetic::make({.platforms = 1, .workloads = 2, .rows = 40})).regimes.size(), 3u);
  EXPECT_TRUE(prior_of(synthetic::make({.platforms = 3, .rows = 7})).rows.empty());  // too few to judge by
}

TEST(Learners, GuardAddsTheChoiceOfScratch) {
  LearnerSettings settings;
  settings.network.hidden = {8};
  settings.steps = 5;
  settings.guard = true;
  base::Monitor monitor;
  const auto model = trained(*make_learner("ridge"), synthetic::make({}), settings, monitor);
  EXPECT_EQ(model->kind(), "chosen");
  EXPECT_EQ(model->state().attributes.at("member0/kind"), "ridge");
  EXPECT_EQ(model->state().attributes.at("member1/kind"), "scratch");
}

// The same learner descends another loss.
TEST(Learners, LossIsASetting) {
  base::Monitor monitor;
  const TaskSet tasks = synthetic::make({.platforms = 3});
  for (const std::string name : {"pooled", "maml", "reptile", "cavia", "r2d2", "latent", "ridge"}) {
    std::vector<std::vector<float>> scores;
    for (const Loss loss : {Loss::rank, Loss::squared, Loss::lambda}) {
      LearnerSettings settings;
      settings.network.hidden = {8};
      settings.steps = 5;
      settings.loss = loss;
      scores.push_back(make_learner(name)->train(tasks, settings, monitor)->score(tasks.groups.front().features).mean);
    }
    EXPECT_NE(scores[0], scores[1]) << name;
    EXPECT_NE(scores[0], scores[2]) << name;
  }
}

TEST(Learners, StopWhenAsked) {
  class Stop : public base::Monitor {
    bool stop_requested() override { return true; }
  } monitor;
  for (const std::string name : {"pooled", "ridge", "maml", "gbt"}) {
    const LearnerSettings usual;
    EXPECT_THROW(make_learner(name)->train(synthetic::make({}), usual, monitor), base::Failure) << name;
  }
}

// What load_model says about a file that was tampered with.
std::string refusal(const std::function<void(base::Arrays&)>& tamper) {
  const auto path = std::filesystem::path(testing::TempDir()) / "graft_model_refused.h5";
  const features::Encoding& encoding = features::encodings().front();
  save_model(*make_scratch_model(std::int64_t(encoding.features.size())), encoding, base::Document::map(), "", path);
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
  EXPECT_TRUE(says(refusal([](base::Arrays& file) { file.attributes["features"] = "3"; }), "other features"));
  EXPECT_THROW(load_model("/nowhere/model.h5"), base::UserError);
}

TEST(ModelState, OnlyOneNumberIsAScore) {
  for (const std::string kind : {"network", "ridge"}) {
    NetworkState network;
    network.shape = {2, {}};
    network.normalisation = {{0, 0}, {1, 1}};
    network.theta.assign(3, 0.0f);
    const auto good =
        kind == "network" ? make_network_model(network) : make_ridge_model(columns_as_sources(2), {}, 0.1);
    base::Arrays state = good->state();
    state.attributes["outputs"] = "2";
    for (auto& [name, array] : state.arrays) {
      if (name.starts_with("theta")) array = {{6}, std::vector<float>(6, 0.0f)};  // of such a network
    }
    try {
      model_from(kind, state);
      ADD_FAILURE() << kind;
    } catch (const base::UserError& error) {
      EXPECT_NE(std::string(error.what()).find("a score is one number"), std::string::npos) << error.what();
    }
  }
}

TEST(ModelState, ModelsTakeTheirOwnEncoding) {
  const TaskSet rows = synthetic::make({.platforms = 2}), trees = synthetic::make({.platforms = 2, .trees = true}),
                wider = synthetic::make({.platforms = 2, .features = 13});
  LearnerSettings settings;
  settings.steps = 2;
  settings.network.hidden = {4};
  settings.members = 2;
  settings.guard = true;
  base::Monitor monitor;
  for (const std::string name : {"pooled", "r2d2", "ridge", "residual", "scratch", "gbt"}) {
    const auto model = trained(*make_learner(name), rows, settings, monitor);
    EXPECT_TRUE(model->takes(*rows.encoding)) << name;
    EXPECT_FALSE(model->takes(*wider.encoding)) << name;
    EXPECT_EQ(model->takes(*trees.encoding), name == "scratch" || name == "gbt") << name;
  }
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
