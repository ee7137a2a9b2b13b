#include "study/flows/adapt.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/error.h"

namespace graft::study {
namespace {

TEST(Quality, NeedsTwoProgramsForAMeanAndThreeForAnInterval) {
  EXPECT_TRUE(std::isnan(quality_of({1}, {0.5}, 1).mean));
  const base::Interval two = quality_of({2, 1}, {0.1, 0.2}, 1);
  EXPECT_DOUBLE_EQ(two.mean, 1);
  EXPECT_TRUE(std::isnan(two.low) && std::isnan(two.high));
  const base::Interval reversed = quality_of({1, 2, 3, 4, 5}, {1, 2, 3, 4, 5}, 1);
  EXPECT_DOUBLE_EQ(reversed.mean, -1);
  EXPECT_DOUBLE_EQ(reversed.low, -1);
}

TEST(Quality, HasTheSameIntervalForTheSameSeed) {
  const std::vector<float> predicted = {3, 5, 1, 4, 2, 6};
  const std::vector<double> log_seconds = {0.4, 0.1, 0.5, 0.3, 0.6, 0.2};
  const base::Interval one = quality_of(predicted, log_seconds, 7), same = quality_of(predicted, log_seconds, 7);
  EXPECT_LT(one.low, one.mean);
  EXPECT_GT(one.high, one.mean);
  EXPECT_EQ(one.low, same.low);
  EXPECT_EQ(one.high, same.high);
}

// Scores a program by its only feature, and far above all others if it was adapted to it.
class Cheat final : public meta::CostModel {
 public:
  meta::Scores score(const features::Encoded& programs) const override {
    std::vector<float> scores;
    for (std::int64_t p = 0; p < programs.programs(); ++p) {
      const float value = programs.rows.at(p, 0);
      scores.push_back(seen_.contains(value) ? 1000 : value);
    }
    return meta::certain(std::move(scores));
  }
  std::unique_ptr<meta::CostModel> fitted(std::span<const meta::Examples> support) const override {
    auto model = std::make_unique<Cheat>(*this);
    for (const meta::Examples& examples : support) {
      for (std::int64_t p = 0; p < examples.size(); ++p) model->seen_.insert(examples.features.rows.at(p, 0));
    }
    return model;
  }
  std::unique_ptr<meta::CostModel> clone() const override { return std::make_unique<Cheat>(*this); }
  bool is_informed() const override { return true; }
  bool takes(const features::Encoding&) const override { return true; }
  std::string_view kind() const override { return "cheat"; }
  base::Arrays state() const override { return {}; }

 private:
  std::set<float> seen_;
};

meta::Examples examples(std::int64_t programs) {
  meta::Examples out;
  out.platform = "p";
  out.workload = codegen::Workload("w");
  base::Matrix rows(programs, 1);
  for (std::int64_t p = 0; p < programs; ++p) {
    rows.at(p, 0) = float(p);
    out.log_seconds.push_back(-double(p));
    out.program_hashes.push_back(std::uint64_t(p));
  }
  out.features = features::one_row_each(std::move(rows));
  return out;
}

// 20 programs, folds of 4: what was seen is scored above, so programs of the judged fold share the last four places.
TEST(CrossValidation, JudgesEachProgramByAModelThatHasNotSeenIt) {
  base::Monitor monitor;
  const auto places = cross_validated(Cheat(), {examples(20)}, 1, monitor);
  ASSERT_EQ(places.size(), 1U);
  ASSERT_EQ(places[0].size(), 20U);
  for (const float place : places[0]) {
    EXPECT_GT(place, 0);
    EXPECT_LE(place, 4.0F / 20);
  }
  EXPECT_EQ(cross_validated(Cheat(), {examples(20)}, 1, monitor), places);
}

TEST(CrossValidation, IsOfWorkloadsWithAProgramForEachFold) {
  base::Monitor monitor;
  const auto places = cross_validated(Cheat(), {examples(20), examples(cross_validation_folds - 1)}, 1, monitor);
  ASSERT_EQ(places.size(), 2U);
  EXPECT_EQ(places[0].size(), 20U);
  EXPECT_TRUE(places[1].empty());
  EXPECT_EQ(cross_validated(Cheat(), {examples(cross_validation_folds)}, 1, monitor)[0].size(),
            std::size_t(cross_validation_folds));
}

// Predictions of `programs` programs in the right order, but for the first `wrong` ones, which are turned around.
std::vector<float> predicted(std::int64_t programs, std::int64_t wrong) {
  std::vector<float> scores;
  for (std::int64_t p = 0; p < programs; ++p) scores.push_back(float(p < wrong ? wrong - 1 - p : p));
  return scores;
}

AdaptResult judged(std::int64_t programs, std::int64_t wrong_before, std::int64_t wrong_after) {
  AdaptResult result;
  const PredictedTwice each{predicted(programs, wrong_before), predicted(programs, wrong_after),
                            examples(programs).log_seconds};
  result.gain = gain_of({each, each}, 1);
  return result;
}

TEST(Adapt, SaysInOneSentenceWhetherItHelped) {
  const AdaptResult helped = judged(40, 30, 0);
  EXPECT_EQ(helped.gain->workloads, 2);
  EXPECT_EQ(helped.gain->programs, 80);
  EXPECT_DOUBLE_EQ(helped.gain->after, 1);
  EXPECT_DOUBLE_EQ(helped.gain->gain.mean, helped.gain->after - helped.gain->before);
  EXPECT_GT(helped.gain->gain.low, 0);
  EXPECT_TRUE(verdict_of(helped).starts_with("adapting helped: Spearman 0.")) << verdict_of(helped);
  EXPECT_NE(verdict_of(helped).find("(80 programs of 2 workloads)"), std::string::npos) << verdict_of(helped);
  const AdaptResult worse = judged(40, 0, 30);
  EXPECT_LT(worse.gain->gain.high, 0);
  EXPECT_TRUE(verdict_of(worse).starts_with("adapting made it worse: Spearman 1.00 before")) << verdict_of(worse);
  // Both make one error of the same size, elsewhere or not.
  AdaptResult open = judged(8, 4, 4);
  open.gain->gain = {0.02, -0.1, 0.14};
  const std::string text = verdict_of(open);
  EXPECT_EQ(
      text,
      "no difference can be seen with 16 programs of 2 workloads: a gain of 0.02 [-0.10, 0.14] in Spearman; about "
      "47 of each workload would show one of 0.05");  // 8 * (0.12 / 0.05)^2 = 46.08
  EXPECT_TRUE(verdict_of({}).starts_with("whether adapting helped is not known: that takes 5")) << verdict_of({});
  AdaptResult uninformed;
  uninformed.rows = {{"w", 8, {}, base::Interval{0.5, 0.1, 0.9}}};
  EXPECT_NE(verdict_of(uninformed).find("the model knew nothing before"), std::string::npos);
}

TEST(AdaptResult, IsNullWhereNothingIsKnown) {
  AdaptResult result;
  result.platform = "native";
  result.rows = {{"w", 1, quality_of({1}, {0.5}, 1), {}}, {"v", 2, quality_of({2, 1}, {0.1, 0.2}, 1), {}}};
  const base::Document document = to_document(result);
  const base::Document::List& rows = document.at("rows").as_list();
  EXPECT_TRUE(rows[0].at("zero_shot").is_null());
  EXPECT_TRUE(rows[0].at("cross_validated").is_null());
  EXPECT_DOUBLE_EQ(rows[1].at("zero_shot").at("mean").as_number(), 1);
}

}  // namespace
}  // namespace graft::study
