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

TEST_F(Bench, ModelsStandBesideTheirPeers) {
  for (const std::string what : {"predict", "train"}) {
    const base::Document result =
        json_of(short_timing({"bench", what, "matmul(m=8,n=16,k=8)", "--platform", "native:v2", "--batch", "3"}));
    EXPECT_EQ(result.at("schema").as_integer(), 1);
    EXPECT_EQ(result.at("context").at("clock").as_string(), "thread_cpu");
    const auto& rows = result.at("rows").as_list();
    const std::size_t networks = what == "train" ? 5 : 6, forests = what == "train" ? 3 : 4;
    ASSERT_EQ(rows.size(), networks + (what == "train" ? 1 : 0) + forests);  // MAML's meta-step between them
    for (const base::Document& row : rows) {
      EXPECT_EQ(row.at("unit").as_string(), "programs/s/core");
      EXPECT_GT(row.at("value").as_number(), 0) << row.at("name").as_string();
      for (const auto& [name, value] : row.at("baselines").as_map()) EXPECT_GT(value.as_number(), 0) << name;
      EXPECT_EQ(row.find("nodes") != nullptr, row.at("name").as_string().starts_with("treegru"));
    }
    EXPECT_EQ(rows[0].at("baselines").find("onednn") != nullptr, what == "predict");
    const base::Document& trees = rows[networks - 1];
    EXPECT_LE(trees.at("shared_nodes").as_number(), trees.at("nodes").as_number());
    EXPECT_NE(rows.back().at("baselines").find("xgboost"), nullptr);
  }
  // MAML's step a second time, on the wall clock.
  const base::Document result = json_of(short_timing(
      {"bench", "train", "matmul(m=8,n=16,k=8)", "--platform", "native:v2", "--batch", "3", "--threads", "2"}));
  const auto& both = result.at("rows").as_list();
  const base::Document &alone = both.at(5), &together = both.at(6);
  EXPECT_EQ(together.at("name").as_string(), alone.at("name").as_string() + ", 2 threads");
  EXPECT_EQ(alone.find("clock"), nullptr);
  EXPECT_EQ(together.at("clock").as_string(), "wall");
  EXPECT_EQ(together.at("unit").as_string(), "programs/s");
  EXPECT_EQ(together.at("threads").as_integer(), 2);
  EXPECT_GT(together.at("value").as_number(), 0);
  const base::Finished finished = graft({"bench", "predict", "matmull(m=8,n=16,k=8)"});
  EXPECT_EQ(finished.exit_code, 2) << finished.err;
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
  expect({"bench", "compile", "--workload", "matmull(m=1,n=1,k=1)"}, "did you mean 'matmul'");
  expect({"bench", "measure", "--platform", "model:sifive-p450"}, "is not this machine");
}

TEST_F(Bench, CompileSaysWhereTheTimeGoes) {
  const base::Document result = json_of({"bench", "compile", run(), "--workload", small, "--candidates", "6",
                                         "--slow-candidates", "2", "--repetitions", "2"});
  const base::Document::List& rows = result.at("rows").as_list();
  ASSERT_GE(rows.size(), 4u);  // random candidates and the tuned kernel, by at least two pipelines
  const base::Document& first = rows.front();
  EXPECT_EQ(first.at("unit").as_string(), "candidates/s/core");
  EXPECT_EQ(first.at("pipeline").as_string(), "search");
  EXPECT_EQ(first.at("compiled").as_integer() + first.at("refused").as_integer(), 6);
  EXPECT_GT(first.at("baselines").at("O3").as_number(), 0);
  double sum = 0;
  for (const char* phase : {"lower", "emit", "optimise", "generate", "inspect", "link"}) {
    EXPECT_GT(first.at("phases").at(phase).at("mean_ms").as_number(), 0) << phase;
    sum += first.at("phases").at(phase).at("mean_ms").as_number();
  }
  EXPECT_LE(sum, first.at("phases").at("all").at("mean_ms").as_number());
  EXPECT_EQ(rows.back().at("unit").as_string(), "ms");
  EXPECT_EQ(rows.back().at("pipeline").as_string(), "O3");
}

TEST_F(Bench, MeasureSaysHowManyAndHowWell) {
  const base::Document result =
      json_of(quick({"bench", "measure", run(), "--workload", small, "--trials", "12", "--repeats", "4"}));
  const base::Document::List& rows = result.at("rows").as_list();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].at("unit").as_string(), "candidates/s");
  EXPECT_EQ(rows[0].at("trials").as_integer(), 12);
  double shares = 0;
  for (const auto& [status, share] : rows[0].at("shares").as_map()) shares += share.as_number();
  EXPECT_NEAR(shares, 1, 1e-9);
  EXPECT_EQ(rows[1].at("unit").as_string(), "% CV");
  EXPECT_EQ(rows[1].at("seconds").as_list().size(), 4u);
}

TEST_F(Bench, FeaturesOfEveryEncoding) {
  const base::Document result =
      json_of({"bench", "features", small, "--candidates", "3", "--repetitions", "2", "--platform", "native:v3"});
  EXPECT_EQ(result.at("context").at("clock").as_string(), "thread_cpu");
  const auto& rows = result.at("rows").as_list();
  ASSERT_GE(rows.size(), 9u);
  EXPECT_EQ(rows[0].at("what").as_string(), "lower");
  for (const base::Document& row : rows) {
    EXPECT_GT(row.at("value").as_number(), 0) << row.at("what").as_string();
    EXPECT_EQ(row.at("unit").as_string(), "programs/s/core");
    EXPECT_EQ(row.at("programs").as_integer(), 3);
  }
  const base::Document one = json_of({"bench", "features", small, "--candidates", "2", "--encodings", "tree"});
  ASSERT_EQ(one.at("rows").as_list().size(), 2u);
  EXPECT_GT(one.at("rows").as_list()[1].at("rows").as_number(), 3);
  EXPECT_EQ(graft({"bench", "features", small, "--encodings", "tre"}).exit_code, 2);
}

TEST_F(Bench, RowsComeBackFromTheStore) {
  const std::string shipped = std::string(GRAFT_SOURCE_DIR) + "/datasets/shipped/native-v3.h5";
  const base::Document result =
      json_of({"bench", "store", shipped, "--rows", "20000", "--episodes", "5", "--repetitions", "1"});
  EXPECT_TRUE(result.at("equal").as_bool());
  ASSERT_EQ(result.at("rows").as_list().size(), 6u);
  for (const base::Document& row : result.at("rows").as_list()) EXPECT_GT(row.at("value").as_number(), 0);
  const base::Finished none = graft({"bench", "store", shipped, "--rows", "100"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_NE(none.err.find("give more --rows"), std::string::npos) << none.err;
  EXPECT_EQ(graft({"bench", "store", missing()}).exit_code, 2);
}

}  // namespace
}  // namespace graft::cli
