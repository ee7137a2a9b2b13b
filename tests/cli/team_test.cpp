// The program under mpirun, two ranks on this machine.
#include <algorithm>
#include <filesystem>

#include "datasets/dataset.h"
#include "datasets/hdf5.h"
#include "tests/cli/support.h"

namespace graft::cli {
namespace {

base::Finished ranks(const std::string& count, const std::vector<std::string>& arguments) {
  // As root (in a container) mpirun runs only if it is told so twice.
  std::vector<std::string> command = {"env",
                                      "OMPI_ALLOW_RUN_AS_ROOT=1",
                                      "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                                      "mpirun",
                                      "--oversubscribe",
                                      "--bind-to",
                                      "none",
                                      "--mca",
                                      "btl_vader_single_copy_mechanism",
                                      "none",
                                      "-n",
                                      count,
                                      GRAFT_PROGRAM};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return base::run_process(command, std::chrono::minutes(2));
}

class Ranks : public ::testing::Test {
 protected:
  base::Folder folder_;
  std::string file(const std::string& name) { return (folder_ / name).string(); }
  std::vector<std::string> collect(const std::string& out, const char* samples) {
    return {"collect", small, other, "--platform", "model:cortex-a53", "--samples", samples, "--out", file(out)};
  }
};

TEST_F(Ranks, CollectTheSameTrialsAsOneProcess) {
  ASSERT_EQ(graft(collect("one.h5", "40")).exit_code, 0);
  const base::Finished first = ranks("2", collect("two.h5", "23"));  // and go on with three
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(lines_in(first.out), 5u) << first.out;  // of one rank
  const base::Finished second = ranks("3", collect("two.h5", "40"));
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_NE(second.err.find("46 trials are recorded"), std::string::npos) << second.err;
  const datasets::Dataset one = datasets::read_dataset(file("one.h5")), two = datasets::read_dataset(file("two.h5"));
  const auto rows = [](const datasets::Dataset& dataset) {
    std::vector<std::string> out;
    for (const auto& row : dataset.rows) {
      out.push_back(dataset.workloads[std::size_t(row.workload)].text() + " " + std::to_string(row.program_hash) + " " +
                    datasets::to_document(row.measurement).to_json());
    }
    std::sort(out.begin(), out.end());
    return out;
  };
  EXPECT_EQ(rows(one).size(), 80u);
  EXPECT_EQ(rows(one), rows(two));
  // One process also continues the work of several ranks.
  const base::Finished again = graft(collect("two.h5", "40"));
  EXPECT_NE(again.err.find("80 trials are recorded"), std::string::npos) << again.err;
}

TEST_F(Ranks, TrainTheSameModelAsOneProcess) {
  for (const char* const platform : {"model:cortex-a53", "model:haswell", "model:pwr9"}) {
    ASSERT_EQ(
        graft({"collect", small, other, "--platform", platform, "--samples", "20", "--out", file(platform)}).exit_code,
        0);
  }
  for (const char* const learner : {"maml", "pooled", "ridge", "residual", "r2d2"}) {
    const auto train = [&](const std::string& out) -> std::vector<std::string> {
      std::vector<std::string> arguments = {"train",
                                            file("model:cortex-a53"),
                                            file("model:haswell"),
                                            file("model:pwr9"),
                                            "--learner",
                                            learner,
                                            "--out",
                                            file(out),
                                            "--steps",
                                            "6",
                                            "--hidden",
                                            "16",
                                            "--losses",
                                            file(out + ".csv")};
      if (learner == std::string_view("residual")) arguments.insert(arguments.end(), {"--model", "gbt"});
      return arguments;
    };
    const base::Finished one = graft(train("one.h5")), two = ranks("2", train("two.h5"));
    ASSERT_EQ(one.exit_code, 0) << one.err;
    ASSERT_EQ(two.exit_code, 0) << two.err;
    EXPECT_EQ(lines_in(two.out), 1u) << two.out;
    EXPECT_EQ(datasets::read_arrays(file("one.h5")).arrays, datasets::read_arrays(file("two.h5")).arrays) << learner;
    EXPECT_EQ(base::read_file(file("one.h5.csv")), base::read_file(file("two.h5.csv"))) << learner;
    EXPECT_FALSE(std::filesystem::exists(file("two.h5.checkpoints")));
    for (const char* const name : {"one.h5", "two.h5", "one.h5.csv", "two.h5.csv"}) std::filesystem::remove(file(name));
  }
}

TEST_F(Ranks, EvaluateTheSameTableAsOneProcess) {
  std::vector<std::string> files;
  for (const std::string platform : {"model:cortex-a53", "model:haswell", "model:pwr9"}) {
    ASSERT_EQ(
        graft({"collect", small, other, "--platform", platform, "--samples", "24", "--out", file(platform)}).exit_code,
        0);
    files.push_back(file(platform));
  }
  const auto evaluate = [&](const std::string& out, const std::vector<std::string>& more) {
    std::vector<std::string> words{
        "evaluate", "--methods", "zero-shot,scratch,ridge", "--shots", "0,4", "--draws", "3", "--steps", "4",
        "--out",    file(out)};
    words.insert(words.begin() + 1, files.begin(), files.end());
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const auto table = [&](const std::string& out) {
    base::Document content = base::parse_json(base::read_file(file(out)), out);
    content.set("context", base::Document());
    return content.to_json();
  };
  // Three targets for two ranks: whole targets, then methods. Two folds; three ranks for two folds; in one domain.
  const std::vector<std::pair<std::string, std::vector<std::string>>> ways = {
      {"2", {}},
      {"2", {"--folds", "2"}},
      {"2", {"--search"}},
      {"3", {"--folds", "2"}},
      {"2", {"--regime", "in-domain", "--shots", "6,8", "--methods", "scratch,gbt-zero-shot"}}};
  for (const auto& [count, more] : ways) {
    std::vector<std::string> plain = evaluate("one.json", more), shared = evaluate("two.json", more);
    if (more.size() > 2) {  // its own shots and methods
      for (std::vector<std::string>* const words : {&plain, &shared}) {
        const auto first = std::find(words->begin(), words->end(), "--methods");
        words->erase(first, first + 4);
      }
    }
    const base::Finished one = graft(plain), two = ranks(count, shared);
    ASSERT_EQ(one.exit_code, 0) << one.err;
    ASSERT_EQ(two.exit_code, 0) << two.err;
    EXPECT_EQ(lines_in(one.out), lines_in(two.out)) << two.out;  // of one rank
    EXPECT_EQ(table("one.json"), table("two.json")) << count << " ranks" << (more.empty() ? "" : ", " + more[0]);
    for (const char* const name : {"one.json", "two.json"}) std::filesystem::remove(file(name));
  }
  // An error of one rank is that of all.
  const base::Finished refused = ranks("2", evaluate("none.json", {"--judge-last", "23"}));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("no workload has the"), std::string::npos) << refused.err;
}

TEST_F(Ranks, RunTheSameExperimentAsOneProcess) {
  const std::string definition = R"yaml(
id: T1
title: Two searches
question: which is faster?
kind: search
platforms: ["model:sifive-u54", "model:cortex-a53"]
workloads: ["matmul(m=8,n=16,k=8)", "matmul(m=16,n=8,k=8)"]
seeds: 2
methods:
  short: {model: random, explorer: random, trials: 4, batch: 4}
  long: {model: scratch, trials: 8, batch: 4, history: {workloads: ["matmul(m=8,n=8,k=8)"], trials: 4}}
counts: [4, 8]
claims:
  - {text: more trials never hurt, measure: speed, method: long, other: short, at_least: 0.5}
)yaml";
  std::filesystem::create_directories(folder_ / "mine" / "two");
  base::replace_file(folder_ / "mine" / "two" / "experiment.yaml", definition);
  const auto searches = [&](const std::string& count) {
    const std::vector<std::string> run{"experiment",        "run", "two", "--folder", file("mine"), "--work",
                                       file("work" + count)};
    const base::Finished finished = count == "1" ? graft(run) : ranks(count, run);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return base::parse_json(base::read_file(folder_ / "mine" / "two" / "results.json"), "results").at("searches");
  };
  const base::Document one = searches("1");
  EXPECT_EQ(one.as_list().size(), 16u);
  EXPECT_EQ(one.to_json(), searches("2").to_json());
}

TEST_F(Ranks, RefuseInOneLineAndEnd) {
  const base::Finished alone = ranks("2", {"platform", "list"});
  EXPECT_NE(alone.exit_code, 0);
  EXPECT_NE(alone.err.find("works alone; those that share their work: collect, train, evaluate, experiment run"),
            std::string::npos)
      << alone.err;
  const base::Finished wrong = ranks("2", {"collect", "--out", file("never.h5")});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("nothing to collect"), std::string::npos) << wrong.err;
  // Rank 0 alone sees that its folder is another run's.
  ASSERT_EQ(graft(collect("one.h5", "4")).exit_code, 0);
  std::vector<std::string> other_seed = collect("one.h5", "4");
  other_seed.insert(other_seed.end(), {"--seed", "2"});
  const base::Finished refused = ranks("2", other_seed);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("seed 1, not 2"), std::string::npos) << refused.err;
}

}  // namespace
}  // namespace graft::cli
