// The datasets that graft ships: every row still names the program that was measured, and models trained on them still
// rank programs of a platform that they have not seen.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <numeric>

#include "base/files.h"
#include "base/parallel.h"
#include "base/statistics.h"
#include "codegen/schedule/candidate_program.h"
#include "datasets/groups.h"
#include "features/encoding.h"
#include "meta/methods/methods.h"
#include "meta/metrics.h"
#include "meta/model_file.h"

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

// Every file in the folder: the first row of each sketch and at most about `most` others of a
// file.
void expect_no_stale_row(std::size_t most) {
  std::size_t files = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::filesystem::path(GRAFT_SOURCE_DIR) / "datasets/shipped")) {
    if (entry.path().extension() != ".h5") continue;
    ++files;
    const datasets::Dataset dataset = datasets::read_dataset(entry.path());
    const std::size_t stride = dataset.rows.size() / most + 1;
    std::vector<std::size_t> rows;
    std::vector<bool> seen(dataset.sketches.size(), false);
    for (std::size_t i = 0; i < dataset.rows.size(); ++i) {
      const datasets::Dataset::Row& row = dataset.rows[i];
      if (row.program_hash == 0) continue;  // it did not lower
      if (i % stride == 0 || !seen[std::size_t(row.sketch)]) rows.push_back(i);
      seen[std::size_t(row.sketch)] = true;
    }
    std::vector<char> is_stale(rows.size(), 0);
    base::parallel_for(std::int64_t(rows.size()), 2, [&](std::int64_t i) {
      const datasets::Dataset::Row& row = dataset.rows[rows[std::size_t(i)]];
      const auto program = codegen::program(dataset.candidate(row), dataset.target);
      is_stale[std::size_t(i)] = !program || codegen::hash(*program) != row.program_hash;
    });
    EXPECT_EQ(std::count(is_stale.begin(), is_stale.end(), 1), 0)
        << entry.path() << ": lowering changed what stored schedules mean; version the step instead (step.h)";
  }
  EXPECT_GE(files, 4u);
}

TEST(Shipped, RowsReplayToTheirProgram) {
  expect_no_stale_row(1500);
}

TEST(Shipped, DISABLED_AllRowsReplayToTheirProgram) {
  expect_no_stale_row(std::numeric_limits<std::size_t>::max());
}

const std::vector<std::string> modelled = {"a64fx",       "cortex-a510", "cortex-a53",      "cortex-a72",  "haswell",
                                           "neoverse-n1", "pwr9",        "sifive-p450",     "sifive-p670", "sifive-u54",
                                           "sifive-x280", "silvermont",  "xiangshan-nanhu", "znver4"};

void expect_programs(const std::vector<std::string>& names, std::size_t workloads, std::size_t least) {
  for (const datasets::Dataset& dataset : shipped(names)) {
    const std::vector<datasets::Group> groups = datasets::groups(dataset);
    EXPECT_EQ(groups.size(), workloads) << dataset.platform;
    for (const datasets::Group& group : groups)
      EXPECT_GE(group.rows.size(), least) << group.platform << " " << group.workload.text();
  }
}

TEST(Shipped, HasEnoughProgramsOfEveryPlatform) {
  std::vector<std::string> names = {"native-v2", "native-v3", "native-v4"};
  for (const std::string& cpu : modelled) names.push_back("model-" + cpu);
  expect_programs(names, 24, 400);
  expect_programs({"native-v3-more", "model-cortex-a72-more"}, 13, 600);
  std::vector<std::string> wide = {"wide/native-v2", "wide/native-v3", "wide/native-v4"};
  for (const std::string& cpu : modelled) {
    if (datasets::role_of("model:" + cpu) == "source") wide.push_back("wide/model-" + cpu);
  }
  EXPECT_EQ(wide.size(), 13u);
  expect_programs(wide, 26, 60);
}

TEST(ShippedModel, IsOfItsSourcesAlone) {
  const std::filesystem::path path = std::filesystem::path(GRAFT_SOURCE_DIR) / "models/base.h5";
  EXPECT_LE(std::filesystem::file_size(path), 8'000'000u);
  const ModelFile file = load_model(path);
  EXPECT_EQ(file.encoding->name, "context_relation+on_target");
  std::size_t sources = 0;
  for (const base::Document& platform : file.provenance.at("platforms").as_list()) {
    const std::string& name = platform.as_string();
    const bool is_source = datasets::role_of(name) == "source";
    sources += is_source;
    EXPECT_TRUE(is_source || name.starts_with("native:")) << name;
    EXPECT_NE(file.card.find("| " + name + " |"), std::string::npos) << name;
  }
  EXPECT_EQ(sources, 10u);
  const std::filesystem::path judged = std::filesystem::path(GRAFT_SOURCE_DIR) / "models/base.md";
  EXPECT_NE(file.card.find(base::read_file(judged)), std::string::npos) << "scripts/train-base";
  EXPECT_EQ(file.provenance.find("continues"), nullptr);
  EXPECT_EQ(count(file.known), (sources + 3) * 50);  // suite:shipped and suite:wide
}

// The mean over the groups.
double mean_correlation(const CostModel& model, std::span<const Examples> groups) {
  std::vector<double> correlations;
  for (const Examples& group : groups)
    correlations.push_back(rank_correlation(model.score(group.features).mean, group.log_seconds));
  return base::mean(correlations);
}

// For a platform that is not among its sources, adapted to eight programs of each workload: 0.893 and 0.909 when the
// model was trained. Lower means that features, adaptation or scoring got worse.
TEST(ShippedModel, RanksProgramsOfAPlatformThatItHasNotSeen) {
  const ModelFile file = load_model(std::filesystem::path(GRAFT_SOURCE_DIR) / "models/base.h5");
  const TaskSet tasks = make_task_set(shipped({"model-sifive-p450"}), *file.encoding, 2);
  std::vector<Examples> support, query;
  for (const Examples& group : tasks.groups) {
    std::vector<std::int64_t> measured, rest;
    for (std::int64_t i = 0; i < group.size(); ++i) (i % (group.size() / 8) == 0 ? measured : rest).push_back(i);
    support.push_back(chosen(group, measured));
    query.push_back(chosen(group, rest));
  }
  const double before = mean_correlation(*file.model, query);
  const double after = mean_correlation(*file.model->adapted(support), query);
  EXPECT_GE(before, 0.87);
  EXPECT_GE(after, before + 0.01);
}

// 0.787 when the data were collected (graft evaluate of the three native datasets, --target native:v3 --methods
// zero-shot --shots 0). Lower means that features, training or scoring got worse.
TEST(Shipped, APooledModelRanksProgramsOfAPlatformThatItHasNotSeen) {
  const features::Encoding& encoding = features::encoding_named("context_relation");
  const TaskSet sources = make_task_set(shipped({"native-v2", "native-v4"}), encoding, 2);
  const TaskSet target = make_task_set(shipped({"native-v3"}), encoding, 2);
  LearnerSettings settings;
  settings.threads = 2;
  settings.steps = 1500;
  base::Monitor monitor;
  const auto model = make_learner("pooled")->train(sources, settings, monitor);
  EXPECT_GE(mean_correlation(*model, target.groups), 0.75);
}

// 0.791 when the data were collected: 200 programs of each workload to learn from, the others judged.
TEST(Shipped, BoostedTreesRankOtherProgramsOfTheirPlatform) {
  TaskSet known = make_task_set(shipped({"native-v3"}), features::encoding_named("context_relation"), 2);
  const TaskSet all = known;
  std::vector<std::int64_t> first(200);
  std::iota(first.begin(), first.end(), 0);
  for (Examples& group : known.groups) group = chosen(group, first);
  base::Monitor monitor;
  LearnerSettings settings;
  settings.threads = 2;
  settings.steps = 150;
  const auto model = make_learner("gbt")->train(known, settings, monitor);
  std::vector<Examples> judged;
  for (const Examples& group : all.groups) {
    std::vector<std::int64_t> rest(std::size_t(group.size() - 200));
    std::iota(rest.begin(), rest.end(), 200);
    judged.push_back(chosen(group, rest));
  }
  EXPECT_GE(mean_correlation(*model, judged), 0.76);
}

}  // namespace
}  // namespace graft::meta
