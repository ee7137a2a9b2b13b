#include "meta/training_record.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "meta/methods/methods.h"
#include "tests/meta/synthetic.h"

namespace graft::meta {
namespace {

// Requests a stop after a number of progress reports, but for those of trees, which have no checkpoints.
class StopAfter : public base::Monitor {
 public:
  explicit StopAfter(int reports) : left_(reports) {}
  void progress(std::string_view what, std::int64_t, std::int64_t) override {
    if (!what.starts_with("trees ")) --left_;
  }
  bool stop_requested() override { return left_ <= 0; }

 private:
  int left_;
};

class Resumed : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Training, Resumed, testing::Values("pooled", "maml++", "reptile", "r2d2", "latent"),
                         [](const auto& tested) { return tested.param == "maml++" ? "mamlpp" : tested.param; });

// Stopped again and again, and run again: what comes out is what an undisturbed training gives, bit for bit.
TEST_P(Resumed, GoesOnBitForBit) {
  const TaskSet tasks = synthetic::make({});
  const auto folder = std::filesystem::path(testing::TempDir()) / ("graft_record_" + GetParam());
  std::filesystem::remove_all(folder);
  LearnerSettings settings;
  settings.network.hidden = {8};
  settings.steps = 12;
  base::Monitor undisturbed;
  TrainingRecord whole;
  settings.record = &whole;
  const base::Arrays expected = make_learner(GetParam())->train(tasks, settings, undisturbed)->state();
  int attempts = 0;
  for (;; ++attempts) {
    ASSERT_LT(attempts, 200);
    TrainingRecord record(folder, std::chrono::milliseconds(0));
    settings.record = &record;
    StopAfter monitor(11);
    try {
      EXPECT_EQ(make_learner(GetParam())->train(tasks, settings, monitor)->state(), expected);
      EXPECT_EQ(record.losses_csv(), whole.losses_csv());
      break;
    } catch (const base::Failure&) {
    }
  }
  EXPECT_GE(attempts, 2);
  std::filesystem::remove_all(folder);
}

TEST(TrainingRecord, LossesFall) {
  LearnerSettings settings;
  settings.network.hidden = {16};
  settings.steps = 60;
  TrainingRecord record;
  settings.record = &record;
  base::Monitor monitor;
  make_learner("pooled")->train(synthetic::make({}), settings, monitor);
  const std::string csv = record.losses_csv();
  EXPECT_TRUE(csv.starts_with("stage,step,loss\n")) << csv.substr(0, 80);
  const auto loss_at = [&](const std::string& step) {
    const std::string head = "\"pooled training (seed 1)\"," + step + ",";
    const std::size_t at = csv.find(head);
    return at == std::string::npos ? -1 : std::stod(csv.substr(at + head.size()));
  };
  EXPECT_GT(loss_at("1"), loss_at("60"));
  EXPECT_GT(loss_at("60"), 0);
}

}  // namespace
}  // namespace graft::meta
