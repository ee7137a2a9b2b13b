// The datasets that graft ships: every row still names the program that was measured, and models trained on them still
// rank programs of a platform that they have not seen.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/statistics.h"
#include "features/encoding.h"
#include "meta/learner.h"
#include "meta/metrics.h"

namespace graft::meta {
namespace {

std::vector<datasets::Dataset> shipped(const std::vector<std::string>& names) {
  std::vector<datasets::Dataset> read;
  for (const std::string& name : names) {
    read.push_back(
        datasets::read_dataset(std::filesystem::path(GRAFT_SOURCE_DIR) / "datasets/shipped" / (name + ".h5")));
  }
  return read;
}

TEST(Shipped, NoRowIsStale) {
  const auto all = shipped({"native-v2", "native-v3", "native-v4", "model-sifive-p450"});
  std::int64_t rows = 0;
  for (const datasets::Dataset& dataset : all) rows += std::int64_t(dataset.rows.size());
  EXPECT_GT(rows, 20000);
  const TaskSet tasks = make_task_set(all, features::encoding_named("context_relation"), 2);
  EXPECT_EQ(tasks.stale_rows, 0)
      << "lowering or the rules changed what stored schedules mean; version the step instead";
  EXPECT_EQ(tasks.groups.size(), 4u * 14u);
  for (const Examples& group : tasks.groups)
    EXPECT_GE(group.size(), 300 + 64) << group.platform << " " << group.workload.text;
}

// 0.796 when it was written (graft evaluate of the three native datasets, --target native:v3 --methods zero-shot
// --shots 0). Lower means that features, training or scoring got worse.
TEST(Shipped, APooledModelRanksProgramsOfAPlatformThatItHasNotSeen) {
  const features::Encoding& encoding = features::encoding_named("context_relation");
  const TaskSet sources = make_task_set(shipped({"native-v2", "native-v4"}), encoding, 2);
  const TaskSet target = make_task_set(shipped({"native-v3"}), encoding, 2);
  LearnerSettings settings;
  settings.threads = 2;
  base::Monitor monitor;
  const auto model = make_learner("pooled")->train(sources, settings, monitor);
  std::vector<double> correlations;
  for (const Examples& group : target.groups) {
    correlations.push_back(rank_correlation(model->score(group.features).mean, group.log_seconds));
  }
  EXPECT_GE(base::mean(correlations), 0.75);
}

}  // namespace
}  // namespace graft::meta
