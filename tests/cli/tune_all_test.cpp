// graft tune-all, end to end.
#include "tests/cli/support.h"

namespace graft::cli {
namespace {

std::vector<std::string> both(const std::string& out, const std::string& trials) {
  return quick({"tune-all", small, other, "--platform", "native:v2", "--model", "random", "--explorer", "random",
                "--weights", "1,20", "--trials", trials, "--batch", "4", "--rebuild", "0", "--out", out});
}

TEST(TuneAll, SharesItsTrialsAndContinues) {
  const base::Folder folder;
  const std::string out = (folder / "runs").string();
  const base::Document made = json_of(both(out, "30"));
  EXPECT_EQ(made.at("trials").as_integer(), 30);
  const base::Document::List searches = made.at("searches").as_list();
  ASSERT_EQ(searches.size(), 2u);
  double sum = 0;
  for (const base::Document& search : searches) {
    EXPECT_GE(search.at("trials").as_integer(), 4);
    sum += search.at("weight").as_number() * search.at("best").at("seconds").as_number();
  }
  EXPECT_DOUBLE_EQ(made.at("weighted_seconds").as_number(), sum);
  // As heavy as it is, the second has most of them.
  EXPECT_GT(searches[1].at("trials").as_integer(), searches[0].at("trials").as_integer());

  // More trials go on from there: nothing is measured twice.
  const base::Document more = json_of(both(out, "40"));
  EXPECT_EQ(more.at("trials").as_integer(), 40);
  std::int64_t measured = 0;
  for (const base::Document& search : more.at("searches").as_list())
    measured += search.at("time").at("measured").as_integer();
  EXPECT_LE(measured, 12);  // ten more, and what a round was cut short by
}

TEST(TuneAll, AFewTrialsAreForAll) {
  const base::Folder folder;
  std::vector<std::string> command = both((folder / "runs").string(), "8");
  *(std::find(command.begin(), command.end(), "--batch") + 1) = "32";
  for (const base::Document& search : json_of(command).at("searches").as_list())
    EXPECT_EQ(search.at("trials").as_integer(), 4);
}

TEST(TuneAll, RefusesWhatDoesNotGoTogether) {
  const base::Folder folder;
  const auto refused = [&](const std::string& weights) {
    const base::Finished finished =
        graft({"tune-all", small, other, "--weights", weights, "--out", (folder / "runs").string()});
    EXPECT_EQ(finished.exit_code, 2);
    EXPECT_FALSE(std::filesystem::exists(folder / "runs"));
    return finished.err;
  };
  EXPECT_NE(refused("1").find("1 number for 2 workloads"), std::string::npos);
  EXPECT_NE(refused("1,x").find("'x' is not a number"), std::string::npos);
  EXPECT_NE(refused("1,-2").find("expected numbers above 0"), std::string::npos);
}

}  // namespace
}  // namespace graft::cli
