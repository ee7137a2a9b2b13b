// Whole files that others published, found by -DGRAFT_REAL_DATA=DIR: the imported counts are those of
// the raw files by other means.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "codegen/schedule/candidate_program.h"
#include "codegen/space/candidate.h"
#include "tests/datasets/formats_support.h"

namespace graft::datasets::formats {
namespace {

class Published : public testing::Test {
 protected:
  void SetUp() override {
    if (data.empty()) GTEST_SKIP() << "no measurements of others: configure with -DGRAFT_REAL_DATA=DIR";
  }
  static std::map<std::string, Imported> import_of(const std::string& format, const std::vector<std::string>& files,
                                                   const std::string& platform,
                                                   std::map<std::string, std::string, std::less<>> options = {}) {
    const Folder folder;
    std::vector<std::filesystem::path> paths;
    for (const std::string& file : files) paths.push_back(std::filesystem::path(data) / file);
    // A file that is missing in a folder that is there is a failure.
    if (!std::filesystem::exists(std::filesystem::path(data) / *std::filesystem::path(files.front()).begin()))
      return {};
    return imported_platforms(format, folder, paths, platform, std::move(options));
  }

  const static std::string data;
};
const std::string Published::data = GRAFT_REAL_DATA;

TEST_F(Published, ArchitecturesOfFbnet) {
  const auto all = import_of("table", {"nas-latency/fbnet_latency.csv.gz"}, "*", {{"unit", "ms"}});
  if (all.empty()) GTEST_SKIP() << "no nas-latency in " << data;
  ASSERT_EQ(all.size(), 24u);
  for (const auto& [platform, imported] : all) {
    EXPECT_EQ(imported.dataset.rows.size(), 5000u) << platform;
    ASSERT_EQ(imported.dataset.sketches.size(), 1u) << platform;
    for (const codegen::Sketch::Argument& argument : imported.dataset.sketches[0]->arguments)
      EXPECT_EQ(argument.alternatives, 9) << platform << " " << argument.name;
    EXPECT_EQ(imported.dataset.sketches[0]->arguments.size(), 22u) << platform;
  }
  const Dataset& gold = all.at("gold_6240").dataset;
  EXPECT_EQ(gold.rows[0].arguments,
            (std::vector<std::int64_t>{7, 8, 1, 8, 4, 8, 8, 8, 7, 4, 1, 4, 7, 3, 2, 7, 3, 2, 4, 2, 4, 5}));
  EXPECT_DOUBLE_EQ(seconds_of(gold.rows[0].measurement), 30.934e-3);
}

TEST_F(Published, WinogradInLogsOfAutoTvm) {
  const auto all = import_of("autotvm", {"autotvm-logs/arm_cortex-a72.random.log.gz"}, "a72");
  if (all.empty()) GTEST_SKIP() << "no autotvm-logs in " << data;
  const Imported& in = all.at("a72");
  const std::string name = "conv2d_nchw_winograd.arm_cpu";
  EXPECT_EQ(in.counts.templates.at(name).rows, 5406);
  EXPECT_EQ(in.counts.templates.at(name).ok, 589);
  EXPECT_EQ(in.counts.templates.at(name).with_program, 4849);
  EXPECT_EQ(in.counts.without_program.at(name + ": tile_p is neither a part of a row of tiles nor whole rows"), 557);
  int seen = 0;
  for (const Dataset::Row& row : in.dataset.rows) {
    const codegen::Sketch& sketch = *in.dataset.sketches[std::size_t(row.sketch)];
    if (sketch.name != name) continue;
    const bool has_program = sketch.columns.empty();
    // What ran has one, and the programs exist: every 50th is made.
    EXPECT_TRUE(has_program || row.measurement.status != Status::ok);
    if (!has_program || seen++ % 50 != 0) continue;
    const auto program = codegen::program(in.dataset.candidate(row), in.dataset.target);
    ASSERT_TRUE(program) << program.reason().text;
  }
}

TEST_F(Published, CachesOfKernelTuner) {
  const auto all = import_of("kernel_tuner",
                             {"kernel-tuner/convolution_milo.json", "kernel-tuner/convolution_milo/A6000.json.gz",
                              "kernel-tuner/dedispersion_milo/A6000.json.gz"},
                             "a6000");
  if (all.empty()) GTEST_SKIP() << "no kernel-tuner in " << data;
  const Imported& in = all.at("a6000");
  EXPECT_EQ(in.counts.records, 4362 + 11130);
  EXPECT_EQ(in.counts.rows, 4362 + 11130);
  EXPECT_EQ(in.counts.statuses.at("ok"), 4362 - 221 - 252 + 11130);
  EXPECT_EQ(in.counts.reasons.at("RuntimeFailedConfig"), 221);
  EXPECT_EQ(in.counts.reasons.at("CompilationFailedConfig"), 252);
  ASSERT_EQ(in.dataset.workloads.size(), 2u);
  EXPECT_EQ(in.dataset.provenance.at("restrictions").as_list().size(), 4u);
  for (const Dataset::Row& row : in.dataset.rows) {
    if (row.measurement.status == Status::ok) {
      ASSERT_EQ(row.measurement.seconds.size(), 32u);
    }
  }
}

TEST_F(Published, LogsOfAutoScheduler) {
  const std::string folder = "importer-samples/auto_scheduler.x86_";
  const auto all = import_of("auto_scheduler",
                             {folder + "matmul_1k.json.gz", folder + "conv2d_1k.json.gz",
                              folder + "depthwise_1k.json.gz", folder + "resnet18.json.gz"},
                             "x86");
  if (all.empty()) GTEST_SKIP() << "no importer-samples in " << data;
  const Imported& in = all.at("x86");
  EXPECT_EQ(in.counts.records, 4025);
  EXPECT_EQ(in.counts.rows, 4025);
  EXPECT_EQ(in.counts.statuses.at("ok"), 4025 - 12);
  EXPECT_EQ(in.counts.templates.at("ansor_mm").with_program, 1000);
  EXPECT_EQ(in.counts.templates.at("conv2d_ansor").with_program, 992);
  // What they call depthwise splits other extents than a depthwise convolution of these shapes has.
  EXPECT_EQ(in.counts.templates.at("ansor_depthwise").with_program, 0);
  std::int64_t without = 0;
  for (const auto& [reason, count] : in.counts.without_program) without += count;
  EXPECT_EQ(without, 2033);
}

TEST_F(Published, ADatabaseOfMetaSchedule) {
  const auto all = import_of("metaschedule",
                             {"importer-samples/metaschedule.a100.database_tuning_record.json.gz",
                              "importer-samples/metaschedule.a100.database_workload.json.gz"},
                             "a100");
  if (all.empty()) GTEST_SKIP() << "no importer-samples in " << data;
  EXPECT_EQ(all.at("a100").counts.records, 20089);
  EXPECT_EQ(all.at("a100").counts.rows, 20089);
  EXPECT_EQ(all.at("a100").dataset.workloads.size(), 20u);
}

}  // namespace
}  // namespace graft::datasets::formats
