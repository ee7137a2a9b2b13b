// docs/reference/json-output.md says of every command what --json prints: no key less, and none more.
#include <filesystem>
#include <optional>

#include "tests/cli/json_tables.h"
#include "tests/cli/support.h"
#include "tests/graph/support/onnx_file.h"

namespace graft::cli {
namespace {

namespace fs = std::filesystem;

const JsonTables& tables() {
  return JsonTables::of_the_project();
}

class Json : public testing::Test {
 protected:
  std::string file(const std::string& name) { return (folder / name).string(); }
  // Runs the command and holds what it prints to the table of that heading.
  base::Document check(const std::string& heading, const std::vector<std::string>& command) {
    SCOPED_TRACE(heading);
    const base::Document result = json_of(command);
    if (!HasFatalFailure()) tables().check(heading, result);
    return result;
  }
  // Two modelled platforms that measured the same programs.
  void collect() {
    check("`collect`",
          {"collect", small, other, "--platform", "model:sifive-p450", "--samples", "24", "--out", file("one.h5")});
    check("`collect`",
          {"collect", "--programs", file("one.h5"), "--platform", "model:sifive-u54", "--out", file("two.h5")});
  }
  base::Folder folder;
};

TEST_F(Json, EveryCommandHasATable) {
  const std::string commands = base::read_file(fs::path(GRAFT_SOURCE_DIR) / "docs/reference/cli.md");
  int found = 0;
  for (const std::string_view line : base::split(commands, '\n')) {
    if (!line.starts_with("## graft ")) continue;
    const std::string heading = "`" + std::string(line.substr(9)) + "`";
    const bool several = heading == "`compare`" || heading == "`inspect`";  // by what they are given
    EXPECT_TRUE(several || tables().has(heading)) << heading;
    ++found;
  }
  EXPECT_GE(found, 30);
}

TEST_F(Json, OfTheMachineAndItsPlatforms) {
  check("`doctor`", {"doctor"});
  check("`platform list`", {"platform", "list"});
  check("`platform show`", {"platform", "show", "model:sifive-x280"});
  base::replace_file(folder / "cpuinfo", "processor : 0\nisa : rv64imafdcv\n");
  check("`platform probe`", {"platform", "probe", "--cpuinfo", file("cpuinfo"), "--out", file("board.yaml")});
  check("`inspect` (platform)", {"inspect", file("board.yaml")});
  check("`completion`", {"completion", "bash"});
  fs::create_directories(folder / "reference");
  check("`reference`", {"reference", "--out", file("reference")});
}

TEST_F(Json, OfDatasets) {
  collect();
  check("`inspect` (dataset)", {"inspect", file("one.h5")});
  check("`clean`", {"clean", file("one.h5"), "--out", file("clean.h5")});
  check("`compare` (datasets)", {"compare", file("one.h5"), file("two.h5"), "--out", file("compare.html")});
  check("`export`", {"export", "programs", file("one.h5"), "--out", file("one.jsonl")});
  check("`import`",
        {"import", "programs", file("one.jsonl"), "--platform", "model:sifive-p450", "--out", file("again.h5")});
  check("`replay`", {"replay", file("one.h5"), "--model", "scratch", "--trials", "12", "--batch", "6"});
}

TEST_F(Json, OfModels) {
  collect();
  check("`train`", {"train", file("one.h5"), file("two.h5"), "--out", file("model.h5")});
  check("`inspect` (model)", {"inspect", file("model.h5")});
  check("`adapt`", {"adapt", file("model.h5"), "--platform", "model:haswell", "--workloads", small, "--shots", "8",
                    "--out", file("adapted.h5")});
  check("`evaluate`", {"evaluate", file("one.h5"), file("two.h5"), "--target", "model:sifive-u54", "--methods",
                       "scratch,nearest", "--shots", "0,5", "--draws", "3"});
  check("`evaluate`", {"evaluate", file("one.h5"), file("two.h5"), "--methods", "nearest", "--shots", "0", "--draws",
                       "3", "--search", "--search-counts", "1,6", "--search-methods", "nearest,random"});
}

TEST_F(Json, OfSearches) {
  std::vector<std::string> tune = quick({"tune", small, "--model", "scratch", "--trials", "12", "--batch", "6"});
  const auto tuned = [&](std::vector<std::string> more) {
    more.insert(more.begin(), tune.begin(), tune.end());
    return check("`tune`", more);
  };
  for (const std::string seed : {"1", "2"})
    tuned({"--platform", "model:sifive-p450", "--seed", seed, "--out", file("searches/s" + seed)});
  tuned({"--platform", "native:v2", "--library", file("library"), "--out", file("native")});
  const base::Document known = tuned({"--platform", "native:v2", "--library", file("library")});
  EXPECT_NE(known.find("known_since"), nullptr);
  check("`tune-all`", {"tune-all", small, other, "--platform", "model:sifive-p450", "--model", "scratch", "--trials",
                       "16", "--out", file("all")});
  const std::string run = file("searches/s1");
  check("`compare` (runs)", {"compare", run, file("searches/s2"), "--trials", "6,12"});
  check("`inspect` (run)", {"inspect", run});
  check("`inspect` (run)", {"inspect", file("native")});
  check("`inspect` (program)", {"inspect", run, "--program", "--ir", "--assembly", "--features"});
  check("`inspect` (journal)", {"inspect", run + "/journal.jsonl"});
  check("`inspect` (result)", {"inspect", run + "/best.json"});
  check("`report`", {"report", run, "--out", file("report.html"), "--figures", file("figures")});
  check("`compile`", {"compile", file("native"), "--out", file("kernels")});
  check("`inspect` (library)", {"inspect", file("kernels/kernels.json")});
  check("`library list`", {"library", "list", file("library")});
  check("`library export`", {"library", "export", file("library"), "--out", file("answers")});
  check("`library merge`", {"library", "merge", file("library-2"), file("answers")});
}

TEST_F(Json, OfNetworks) {
  graph::file::GraphFile network;
  network.input("x", {4, 8}).weight("w", {8, 8}, std::vector<float>(64, 0.5F));
  network.node("MatMul", {"x", "w"}, {"a"}).node("Relu", {"a"}, {"y"}).output("y");
  base::replace_file(folder / "net.onnx", network.model());
  check("`predict`", {"predict", file("net.onnx"), "--platform", "model:sifive-p450"});
  json_of(quick(
      {"tune", small, "--platform", "model:sifive-p450", "--model", "random", "--trials", "4", "--out", file("run")}));
  json_of(quick({"tune", file("net.onnx"), "--model", "random", "--trials", "4", "--out", file("tuned")}));
  check("`run`", {"run", file("tuned"), "--repetitions", "2", "--minimum-ms", "0.1", "--check"});
  check("`predict`", {"predict", file("net.onnx"), "--platform", "model:sifive-p450", "--from", file("run")});
}

TEST_F(Json, OfWorkloadsAndEncodings) {
  check("`inspect` (suite)", {"inspect", "suite:resnet18"});
  check("`inspect` (workload)", {"inspect", small, "--platform", "model:sifive-p450"});
  check("`inspect` (encoding)", {"inspect", "analytic"});
  check("`inspect` (encodings)", {"inspect", "encodings"});
}

TEST_F(Json, OfExperiments) {
  fs::create_directories(folder / "experiments/one");
  base::replace_file(folder / "experiments/one/experiment.yaml", R"yaml(
id: T1
title: One search
question: how fast?
kind: search
platforms: ["model:sifive-p450"]
workloads: ["matmul(m=24,n=32,k=16)"]
seeds: 1
methods:
  short: {model: random, explorer: random, trials: 4, batch: 4}
  long: {model: random, explorer: random, trials: 8, batch: 4}
counts: [4, 8]
claims:
  - {text: more trials never hurt, measure: speed, method: long, other: short, at_least: 0.5}
)yaml");
  const std::string all = file("experiments");
  check("`experiment list`", {"experiment", "list", "--folder", all});
  check("`experiment run`", {"experiment", "run", "one", "--folder", all, "--work", file("work")});
  check("`experiment render`", {"experiment", "render", "--folder", all});
}

// What is measured here is how long our own work takes, on whatever machine.
TEST_F(Json, OfBenchmarks) {
  if (!fs::exists(fs::path(GRAFT_PROGRAM).parent_path() / "graft-bench")) GTEST_SKIP() << "graft-bench is not built";
  json_of(
      quick({"tune", small, "--platform", "native:v2", "--model", "random", "--trials", "4", "--out", file("run")}));
  check("`bench kernels`",
        {"bench", "kernels", file("run"), "--baselines", "openblas", "--repetitions", "3", "--minimum-ms", "0.1"});
}

}  // namespace
}  // namespace graft::cli
