// Few-shot transfer between real devices: latencies of 5,000 FBNet architectures, as published with HELP (Lee et al.
// 2021). Sources are its nine meta-training devices, targets its validation devices; the last 1,000 architectures are
// judged, all of them, and no source's are trained on. Features: the architecture's 22 choices of an operator.
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/text.h"
#include "meta/evaluate.h"

namespace graft::meta {
namespace {

constexpr std::size_t choices = 22, operators = 9;
const std::vector<std::string> sources = {"1080ti_1",    "1080ti_32", "1080ti_64",      "silver_4114", "silver_4210r",
                                          "samsung_a50", "pixel3",    "essential_ph_1", "samsung_s7"};
const std::vector<std::string> targets = {"titanx_1", "titanx_32", "titanx_64", "gold_6240"};

TaskSet fbnet(const std::filesystem::path& file) {
  static features::Encoding encoding;
  encoding.name = "fbnet";
  encoding.features.clear();
  for (std::size_t c = 0; c < choices * operators; ++c) encoding.features.push_back({std::to_string(c), "1", "choice"});
  const std::string text = base::read_file(file);
  const std::vector<std::string_view> lines = base::split(text, '\n');
  const std::vector<std::string_view> names = base::split(lines.front(), ',');
  std::vector<std::vector<double>> rows;
  for (std::size_t l = 1; l < lines.size(); ++l) {
    if (lines[l].empty()) continue;
    rows.emplace_back();
    for (const std::string_view cell : base::split(lines[l], ',')) {
      double value = 0;
      std::from_chars(cell.data(), cell.data() + cell.size(), value);
      rows.back().push_back(value);
    }
  }
  base::Matrix features(std::int64_t(rows.size()), std::int64_t(choices * operators));
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t c = 0; c < choices; ++c)
      features.at(std::int64_t(r), std::int64_t(c * operators + std::size_t(rows[r][c]))) = 1;
  }
  TaskSet tasks;
  tasks.encoding = &encoding;
  for (std::size_t d = choices; d < names.size(); ++d) {
    Examples group;
    group.platform = base::trim(names[d]);
    group.workload = codegen::Workload("fbnet");
    group.features = features::one_row_each(features);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      group.log_seconds.push_back(std::log(rows[r][d] * 1e-3));
      group.program_hashes.push_back(r);
    }
    tasks.sources[group.platform] = "imported";
    tasks.groups.push_back(std::move(group));
  }
  return tasks;
}

// The mean over the targets of each method and number of shots.
TEST(FBNet, DISABLED_FewShotsOnTheValidationDevices) {
  const std::filesystem::path file = std::filesystem::path(GRAFT_REAL_DATA) / "nas-latency/fbnet_latency.csv.gz";
  if (std::string(GRAFT_REAL_DATA).empty() || !std::filesystem::exists(file))
    GTEST_SKIP() << "no " << file << "; configure with -DGRAFT_REAL_DATA=<folder>";
  const TaskSet tasks = fbnet(file);
  EvaluationSettings settings;
  settings.methods = {"bayes-ridge", "adaptive"};
  settings.shots = {10, 20, 50};
  settings.draws = 40;
  settings.sources = sources;
  settings.judge_last = 1000;
  settings.learner.threads = 2;
  std::map<std::pair<std::string, int>, double> means;
  base::Monitor monitor;
  for (const std::string& target : targets) {
    for (const EvaluationRow& row : evaluate(tasks, target, settings, monitor))
      means[{row.method, row.shots}] += row.spearman.mean / double(targets.size());
  }
  const std::map<int, double> ridge = {{10, 0.943}, {20, 0.962}, {50, 0.969}},
                              best = {{10, 0.95}, {20, 0.965}, {50, 0.975}};
  for (const int shots : settings.shots) {
    EXPECT_GE((means[{"bayes-ridge", shots}]), ridge.at(shots)) << shots;
    EXPECT_GE((means[{"adaptive", shots}]), best.at(shots)) << shots;
  }
}

}  // namespace
}  // namespace graft::meta
