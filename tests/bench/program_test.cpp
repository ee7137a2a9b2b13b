// `graft bench` from end to end on tiny workloads: the shape of what it prints, and what it refuses.
#include "tests/cli/support.h"

namespace graft::cli {
namespace {

class Bench : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new base::Folder;
    ASSERT_EQ(graft(quick({"tune", small, "--trials", "8", "--explorer", "random", "--out", run()})).exit_code, 0);
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  static std::string run() { return (*folder_ / "run").string(); }
  static std::string missing() { return (*folder_ / "missing").string(); }

 private:
  static base::Folder* folder_;
};
base::Folder* Bench::folder_ = nullptr;

std::vector<std::string> short_timing(std::vector<std::string> arguments) {
  for (const char* flag : {"--repetitions", "2", "--minimum-ms", "0.05"}) arguments.push_back(flag);
  return arguments;
}

TEST_F(Bench, KernelsStandBesideEveryBaseline) {
  const base::Document result = json_of(short_timing({"bench", "kernels", run()}));
  EXPECT_EQ(result.at("schema").as_integer(), 1);
  EXPECT_EQ(result.at("context").at("threads").as_integer(), 1);
  EXPECT_EQ(result.at("context").at("clock").as_string(), "thread_cpu");
  EXPECT_FALSE(result.at("context").at("openblas").at("core").as_string().empty());
  ASSERT_EQ(result.at("rows").as_list().size(), 1u);
  const base::Document& row = result.at("rows").as_list()[0];
  EXPECT_EQ(row.at("name").as_string(), "matmul(m=24,n=32,k=16,dtype=f32)");
  EXPECT_EQ(row.at("unit").as_string(), "GFLOP/s");
  EXPECT_GT(row.at("value").as_number(), 0);
  EXPECT_GT(row.at("peak").as_number(), 0);
  EXPECT_NEAR(row.at("percent_of_peak").as_number(), 100 * row.at("value").as_number() / row.at("peak").as_number(),
              1e-6);
  for (const char* name :
       {"openblas", "onednn", "clang_naive", "clang_interchanged", "gcc_naive", "gcc_interchanged"}) {
    EXPECT_GT(row.at("baselines").at(name).as_number(), 0) << name;
    EXPECT_TRUE(row.at("timings").at(name).at("right").as_bool()) << name;
  }
  EXPECT_EQ(result.at("summary").as_list().size(), 6u);
}

TEST_F(Bench, KernelsOnThreadsStandBesideOne) {
  const base::Document result = json_of(
      short_timing({"bench", "kernels", run(), run(), "--threads", "2", "--rebuild", "--baselines", "graft_1_thread"}));
  EXPECT_EQ(result.at("context").at("clock").as_string(), "wall");
  ASSERT_EQ(result.at("rows").as_list().size(), 2u);
  for (const base::Document& row : result.at("rows").as_list()) {
    EXPECT_TRUE(row.at("right").as_bool());
    EXPECT_EQ(row.at("baselines").as_map().size(), 1u);
    EXPECT_GT(row.at("baselines").at("graft_1_thread").as_number(), 0);
  }
  EXPECT_EQ(result.at("of_peak").as_list().at(0).at("runs").as_integer(), 2);
}

TEST_F(Bench, DropsWhatCripplesABaseline) {
  const base::Finished finished =
      base::run_process({"env", "OPENBLAS_CORETYPE=Prescott", "OMP_NUM_THREADS=7", GRAFT_PROGRAM, "bench", "kernels",
                         run(), "--baselines", "openblas", "--repetitions", "1", "--json"},
                        std::chrono::minutes(1));
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_NE(finished.err.find("OPENBLAS_CORETYPE is set"), std::string::npos) << finished.err;
  EXPECT_NE(finished.err.find("OMP_NUM_THREADS is set"), std::string::npos) << finished.err;
  const base::Document result = base::parse_json(finished.out, "standard output");
  if (__builtin_cpu_supports("avx2") != 0) {
    EXPECT_NE(result.at("context").at("openblas").at("core").as_string(), "Prescott");
  }
}

TEST_F(Bench, KernelsRefuses) {
  const auto expect = [](const std::vector<std::string>& arguments, const std::string& words) {
    const base::Finished finished = graft(arguments);
    EXPECT_EQ(finished.exit_code, 2) << finished.err;
    EXPECT_EQ(finished.out, "");
    EXPECT_NE(finished.err.find(words), std::string::npos) << finished.err;
  };
  expect({"bench", "kernels", missing()}, "no run of graft");
  expect({"bench", "kernels", run(), "--baselines", "openblaz"}, "did you mean 'openblas'");
  expect({"bench", "kernels", run(), "--threads", "0"}, "at least 1");
  expect({"bench", "kernels"}, "missing RUN");
  expect({"bench", "kernel", run()}, "did you mean 'kernels'");
}

}  // namespace
}  // namespace graft::cli
