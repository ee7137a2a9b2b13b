// Searches with a library of answers, budgets and schedules to start from.
#include "tests/cli/support.h"

namespace graft::cli {
namespace {

class Answers : public testing::Test {
 protected:
  base::Document tuned(const std::string& workload, std::vector<std::string> more, const std::string& out = "") {
    std::vector<std::string> arguments = {"tune",    workload,    "--platform", "native:v2", "--model",
                                          "scratch", "--rebuild", "1",          "--batch",   "8"};
    if (!out.empty()) arguments.insert(arguments.end(), {"--out", (folder / out).string()});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return json_of(quick(std::move(arguments)));
  }
  std::string library() const { return (folder / "answers").string(); }
  base::Folder folder;
};

TEST_F(Answers, OfALibraryComeAtOnce) {
  const base::Document first = tuned(small, {"--trials", "16", "--library", library()}, "a");
  const base::Document second = tuned(small, {"--trials", "16", "--library", library()}, "b");
  EXPECT_EQ(second.at("best").at("seconds").as_number(), first.at("best").at("seconds").as_number());
  EXPECT_EQ(second.at("best").at("program").as_string(), first.at("best").at("program").as_string());
  EXPECT_EQ(second.at("trials").as_integer(), 0);
  EXPECT_FALSE(second.at("known_since").as_string().empty());
  EXPECT_FALSE(std::filesystem::exists(folder / "b"));
  const base::Document again = tuned(small, {"--trials", "16", "--library", library(), "--again"}, "c");
  EXPECT_EQ(again.at("trials").as_integer(), 16);
  EXPECT_EQ(json_of({"library", "list", library()}).at("answers").as_list().size(), 1u);
}

TEST_F(Answers, OfNearShapesAreMeasuredEarly) {
  const base::Document known = tuned("matmul(m=48,n=32,k=16)", {"--trials", "16", "--library", library()}, "a");
  tuned("matmul(m=40,n=32,k=16)", {"--trials", "8", "--library", library()}, "b");
  const base::Document start = base::parse_json(base::read_file(folder / "b/start.json"), "start.json");
  ASSERT_EQ(start.at("moved").as_list().size(), 1u);
  EXPECT_EQ(start.at("moved").as_list()[0].at("workload").as_string(), "matmul(m=40,n=32,k=16,dtype=f32)");
  EXPECT_EQ(start.at("moved").as_list()[0].at("sketch").as_string(), known.at("best").at("sketch").as_string());
  const std::string journal = base::read_file(folder / "b/journal.jsonl");
  const std::string arguments = start.at("moved").as_list()[0].at("arguments").to_json();
  EXPECT_NE(journal.find("\"arguments\":" + arguments), std::string::npos);
}

TEST_F(Answers, StartFromAFile) {
  const base::Document first = tuned(small, {"--trials", "8"}, "a");
  tuned(small, {"--trials", "8", "--start", (folder / "a/best.json").string()}, "b");
  const base::Document start = base::parse_json(base::read_file(folder / "b/start.json"), "start.json");
  EXPECT_EQ(start.at("start").as_list()[0].at("arguments").to_json(), first.at("best").at("arguments").to_json());
  const base::Finished other_start =
      graft({"tune", small, "--platform", "native:v2", "--model", "scratch", "--rebuild", "1", "--batch", "8",
             "--repetitions", "2", "--minimum-ms", "0.1", "--trials", "8", "--out", (folder / "b").string()});
  EXPECT_EQ(other_start.exit_code, 2);  // without its start it is another run
  EXPECT_NE(other_start.err.find("start"), std::string::npos);
  std::string steps;
  for (const base::Document& step : first.at("best").at("schedule").as_list()) steps += step.as_string() + "\n";
  base::replace_file(folder / "steps", steps);
  const base::Document third = tuned(small, {"--trials", "8", "--start", (folder / "steps").string()}, "c");
  EXPECT_EQ(third.at("trials").as_integer(), 8);
  // It is the same point of the space, and no sketch of its own.
  const std::string journal = base::read_file(folder / "c/journal.jsonl");
  EXPECT_EQ(journal.find("sketch start"), std::string::npos);
  const base::Document begun = base::parse_json(base::read_file(folder / "c/start.json"), "start.json");
  EXPECT_EQ(begun.at("start").as_list()[0].to_json(), start.at("start").as_list()[0].to_json());
}

TEST_F(Answers, EndWhenTheBudgetIsSpentOrNothingIsGained) {
  const base::Document timed = tuned(small, {"--trials", "100000", "--budget", "1s"}, "a");
  EXPECT_TRUE(timed.at("complete").as_bool());
  EXPECT_LT(timed.at("trials").as_integer(), 100000);
  const base::Document settled = tuned(small, {"--trials", "2000", "--stop-after", "8"}, "b");
  EXPECT_TRUE(settled.at("complete").as_bool());
  EXPECT_LT(settled.at("trials").as_integer(), 2000);
}

TEST_F(Answers, RefusalsNameTheFlag) {
  const auto refused = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"tune", small, "--platform", "native:v2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const base::Finished finished = graft(arguments);
    EXPECT_EQ(finished.exit_code, 2);
    return finished.err;
  };
  EXPECT_NE(refused({"--budget", "soon"}).find("--budget: 'soon' is not a duration"), std::string::npos);
  EXPECT_NE(refused({"--effort", "much"}).find("--effort: 'much' is neither"), std::string::npos);
  EXPECT_NE(refused({"--start", (folder / "none").string()}).find("none"), std::string::npos);
  base::replace_file(folder / "bad", "tile C\n");
  EXPECT_NE(refused({"--start", (folder / "bad").string()}).find("bad: no schedule: "), std::string::npos);
  EXPECT_NE(refused({"--library", library(), "--layouts", "free"}).find("answers from the space by rule"),
            std::string::npos);
  const base::Finished finished = graft({"library", "list", (folder / "nothing").string()});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_NE(finished.err.find("no such folder"), std::string::npos);
}

}  // namespace
}  // namespace graft::cli
