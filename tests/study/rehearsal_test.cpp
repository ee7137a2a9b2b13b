// What a model expects of programs that nobody measured.
#include "study/flows/rehearsal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <numeric>
#include <set>

#include "meta/methods/kernel_model.h"

namespace graft::study {
namespace {

// Expects of each program the first of its features, and knows one platform, of which it expects the opposite.
class Expects final : public meta::CostModel {
 public:
  explicit Expects(float factor = 1) : factor_(factor) {}
  meta::Scores score(const features::Encoded& programs) const override {
    const base::Matrix rows = features::summed(programs);
    std::vector<float> scores;
    for (std::int64_t p = 0; p < rows.rows; ++p) {
      float sum = 0;
      for (const float value : rows.row(p)) sum += value;
      scores.push_back(factor_ * sum);
    }
    return meta::certain(std::move(scores));
  }
  std::unique_ptr<meta::CostModel> fitted(std::span<const meta::Examples>) const override { return clone(); }
  std::unique_ptr<meta::CostModel> clone() const override { return std::make_unique<Expects>(factor_); }
  std::unique_ptr<meta::CostModel> of_source(std::string_view platform) const override {
    return platform == "known" ? std::make_unique<Expects>(-factor_) : nullptr;
  }
  bool is_informed() const override { return true; }
  bool takes(const features::Encoding&) const override { return true; }
  std::string_view kind() const override { return "expects"; }
  base::Arrays state() const override { return {}; }

 private:
  float factor_;
};

class Rehearsal : public testing::TestWithParam<std::string> {
 protected:
  // Three rows of a workload of the shipped data, on a platform of that name, and the model, which remembers a program
  // of another workload.
  void SetUp() override {
    const datasets::Dataset shipped =
        datasets::read_dataset(std::filesystem::path(GRAFT_SOURCE_DIR) / "datasets/shipped/model-haswell.h5");
    data = shipped;
    data.platform = GetParam();
    std::erase_if(data.rows, [](const auto& row) { return row.workload != 0; });
    data.rows.resize(3);
    datasets::Dataset other = shipped;
    std::erase_if(other.rows, [](const auto& row) { return row.workload != 1; });
    other.rows.resize(1);
    model.model = std::make_unique<Expects>();
    model.known = meta::fastest_programs({&other, 1});
    tasks = meta::make_task_set({data}, encoding, 1);
  }
  const features::Encoding& encoding = features::encoding_named("context_relation+on_target");
  datasets::Dataset data;
  meta::ModelFile model;
  meta::TaskSet tasks;
  base::Monitor monitor;
};

TEST_P(Rehearsal, AddsProgramsWithTheTimesThatTheModelExpects) {
  const meta::TaskSet with = with_rehearsal(tasks, model, {data}, {.programs = 12}, monitor);
  ASSERT_EQ(with.groups.size(), 2u);  // the measured workload, and the remembered one
  const float sign = GetParam() == "known" ? -1 : 1;
  for (const meta::Examples& group : with.groups) {
    EXPECT_EQ(group.platform, GetParam());
    ASSERT_EQ(std::size_t(group.size()), group.log_seconds.size());
    EXPECT_EQ(std::set<std::uint64_t>(group.program_hashes.begin(), group.program_hashes.end()).size(),
              group.program_hashes.size());
  }
  const meta::Examples &measured = with.groups[0], &remembered = with.groups[1];
  EXPECT_GT(measured.size(), 8);
  EXPECT_LE(measured.size(), 3 + 12);
  EXPECT_GT(remembered.size(), 6);
  // What was measured stays; what is added has its level.
  const std::vector<float> scores = Expects(sign).score(measured.features).mean;
  double level = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(measured.log_seconds[i], tasks.groups[0].log_seconds[i]);
    level += (measured.log_seconds[i] + double(scores[i])) / 3;
  }
  for (std::size_t i = 3; i < scores.size(); ++i)
    EXPECT_NEAR(measured.log_seconds[i], level - double(scores[i]), 1e-6 * std::abs(double(scores[i])));
  const std::vector<float> of_other = Expects(sign).score(remembered.features).mean;
  for (std::size_t i = 0; i < of_other.size(); ++i) EXPECT_EQ(remembered.log_seconds[i], -double(of_other[i]));
}
INSTANTIATE_TEST_SUITE_P(Platforms, Rehearsal, testing::Values("known", "fresh"),
                         [](const auto& tested) { return tested.param; });

TEST_P(Rehearsal, IsNoneWhereNothingIsKnownOrWanted) {
  EXPECT_EQ(with_rehearsal(tasks, model, {data}, {.programs = 0}, monitor).groups[0].size(), 3);
  model.model = meta::make_scratch_model(std::int64_t(encoding.features.size()));
  EXPECT_EQ(with_rehearsal(tasks, model, {data}, {.programs = 12}, monitor).groups.size(), 1u);
}

}  // namespace
}  // namespace graft::study
