// graft experiment, end to end; and the pages of experiments/ are those of their definitions and results.
#include <filesystem>

#include "tests/cli/support.h"

namespace graft::cli {
namespace {

const std::string search = R"yaml(
id: T1
title: Two searches
question: which is faster?
kind: search
platforms: ["native:v2"]
workloads: ["matmul(m=24,n=32,k=16)"]
seeds: 2
again: 1
methods:
  short: {model: random, explorer: random, trials: 4, batch: 4, minimum_ms: 0.1, repetitions: 2}
  long: {model: random, explorer: random, trials: 12, batch: 4, minimum_ms: 0.1, repetitions: 2}
counts: [4, 12]
claims:
  - {text: more trials never hurt, measure: speed, method: long, other: short, at_least: 0.5}
  - {text: nobody is a thousand times faster, measure: speed, method: long, other: short, at_least: 1000}
quick: {seeds: 1, trials: 0.5}
)yaml";

class Experiment : public testing::Test {
 protected:
  void define(const std::string& name, const std::string& definition) {
    std::filesystem::create_directories(folder / "mine" / name);
    base::replace_file(folder / "mine" / name / "experiment.yaml", definition);
  }
  std::vector<std::string> command(std::vector<std::string> words) {
    words.insert(words.begin(), "experiment");
    words.insert(words.end(), {"--folder", (folder / "mine").string()});
    if (words[1] == "run") words.insert(words.end(), {"--work", (folder / "work").string()});
    return words;
  }
  std::string content(const std::string& file) { return base::read_file(folder / ("mine/" + file)); }
  base::Folder folder;
};

TEST_F(Experiment, SearchesAreRunJudgedAndShown) {
  define("two", search);
  const base::Document listed = json_of(command({"list"}));
  EXPECT_EQ(listed.at("two").as_list()[0].at("verdict").as_string(), "not run");

  json_of(command({"run", "two", "--quick"}));  // is not a result
  EXPECT_FALSE(std::filesystem::exists(folder / "mine/two/results.json"));
  const base::Document judged = json_of(command({"run", "T1"}));
  EXPECT_EQ(judged.at("two").as_list()[0].at("verdict").as_string(), "reproduced");
  EXPECT_EQ(judged.at("two").as_list()[1].at("verdict").as_string().find("not reproduced by "), 0u);
  const base::Document results = base::parse_json(content("two/results.json"), "results.json");
  EXPECT_EQ(results.at("searches").as_list().size(), 4u);
  EXPECT_TRUE(results.at("complete").as_bool());

  // Again: nothing is measured again, so the results are the same except their date.
  const std::string before = results.at("searches").to_json();
  json_of(command({"run", "two"}));
  EXPECT_EQ(base::parse_json(content("two/results.json"), "results.json").at("searches").to_json(), before);

  EXPECT_EQ(graft(command({"render", "--check"})).exit_code, 1);  // there are no pages yet
  EXPECT_EQ(graft(command({"render"})).exit_code, 0);
  EXPECT_EQ(graft(command({"render", "--check"})).exit_code, 0);
  // One row says how many claims came out as asked, another one which did not.
  const std::string overview = content("README.md");
  EXPECT_NE(overview.find("| [T1](two/page.md) | Two searches | more trials never hurt |"), std::string::npos);
  EXPECT_NE(overview.find("| 1 of 2 |\n"), std::string::npos);
  EXPECT_NE(overview.find("| [T1](two/page.md) | nobody is a thousand times faster |"), std::string::npos);
  EXPECT_EQ(overview.find("| [T1](two/page.md) | more trials never hurt |"), std::string::npos);
  EXPECT_NE(content("two/page.md").find("| long |"), std::string::npos);
  EXPECT_NE(content("two/page.md").find("| method | measuring | proposing | learning |"), std::string::npos);
  const std::string flag = " --folder " + (folder / "mine").string();
  EXPECT_NE(content("two/page.md").find("`graft experiment run two" + flag + "`"), std::string::npos);
  EXPECT_NE(overview.find("`graft experiment render" + flag + "`"), std::string::npos);
  EXPECT_EQ(content("two/speed.svg").find("<svg"), 0u);
  base::replace_file(folder / "mine/two/page.md", "old");
  EXPECT_EQ(graft(command({"render", "--check"})).exit_code, 1);
}

TEST_F(Experiment, EvaluationsAreRunJudgedAndShown) {
  const std::string data = std::string(GRAFT_SOURCE_DIR) + "/datasets/shipped/";
  define("few",
         "id: T2\ntitle: Few\nquestion: how few?\nkind: evaluate\ndata: [" + data + "model-haswell.h5, " + data +
             "model-znver4.h5]\nevaluation: {draws: 3, rows: 16, model: gbt, steps: 20}\nmethods:\n  ridge:\n  "
             "fewer trees: {method: ridge, steps: 10}\n  gbt-scratch:\ncounts: [0, 5]\nsearch: {seeds: 3, counts: [1, "
             "6], methods: {ridge: , fewer trees: , random: }}\n"
             "claims:\n  - {text: better, measure: gain, method: ridge, other: gbt-scratch, at: 5, at_least: -1}\n"
             "  - {text: found, measure: least-found-gain, method: ridge, other: random, at_least: -1}\n");
  const base::Document judged = json_of(command({"run", "few"}));
  EXPECT_EQ(judged.at("few").as_list()[0].at("verdict").as_string(), "reproduced");
  EXPECT_EQ(graft(command({"render"})).exit_code, 0);
  EXPECT_NE(content("few/page.md").find("| fewer trees | "), std::string::npos);
  EXPECT_EQ(content("few/top1.svg").find("<svg"), 0u);
  EXPECT_EQ(judged.at("few").as_list()[1].at("verdict").as_string(), "reproduced");
  EXPECT_NE(content("few/page.md").find("| model:haswell | random | "), std::string::npos);
  EXPECT_EQ(content("few/found.svg").find("<svg"), 0u);
}

TEST_F(Experiment, PeersAreShownByRoundOrByTrial) {
  const std::string definition = R"yaml(
id: T3
title: Ours and theirs
question: which is faster?
kind: peers
platforms: [host]
workloads: [net]
seeds: 1
methods: {ours: {trials: 1}}
baselines: [theirs]
counts: [1]
claims:
  - {text: ours over theirs, measure: speed, method: ours, other: theirs, at_least: 2}
)yaml";
  define("them", definition);
  const auto searches = [](int trials) {
    const std::string rest = R"(", "workload": "net", "platform": "host", "seed": 1, "trials": )";
    return R"({"searches": [{"method": "ours)" + rest + std::to_string(trials) + R"(, "best": [[1, 0.002]]},)" +
           R"({"method": "theirs)" + rest + R"(1, "best": [[1, 0.005]]}]})";
  };
  const std::string file = (folder / "searches.json").string();
  base::replace_file(file, searches(1));
  const base::Document judged = json_of(command({"run", "them", "--from", file}));
  EXPECT_EQ(judged.at("them").as_list()[0].at("verdict").as_string(), "reproduced");
  json_of(command({"render"}));
  EXPECT_NE(content("them/page.md").find("| net | 2.000 | 5.000 |"), std::string::npos);
  EXPECT_NE(graft(command({"run", "them"})).err.find("--from names the files"), std::string::npos);

  define("them", std::string(definition).replace(definition.find("trials: 1"), 9, "trials: 4"));
  base::replace_file(file, searches(4));
  json_of(command({"run", "them", "--from", file}));
  json_of(command({"render"}));
  EXPECT_NE(content("them/page.md").find("](speed.svg)"), std::string::npos);
  define("two", search);
  EXPECT_NE(graft(command({"run", "two", "--from", file})).err.find("--from is only of an experiment with peers"),
            std::string::npos);
}

TEST_F(Experiment, RefusesWhatItDoesNotKnow) {
  define("two", search);
  EXPECT_NE(graft(command({"run", "tow"})).err.find("did you mean 'two'"), std::string::npos);
  std::string odd = search;
  odd.replace(odd.find("explorer: random"), 8, "explarer");
  define("two", odd);
  const base::Finished finished = graft(command({"run", "two"}));
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_NE(finished.err.find("unknown key 'explarer'"), std::string::npos) << finished.err;
}

TEST(Experiments, PagesAreCurrent) {
  const base::Finished finished =
      graft({"experiment", "render", "--check", "--folder", std::string(GRAFT_SOURCE_DIR) + "/experiments"});
  EXPECT_EQ(finished.exit_code, 0) << finished.out << finished.err;
}

}  // namespace
}  // namespace graft::cli
