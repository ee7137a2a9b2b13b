// graft compile, end to end.
#include <cmath>
#include <cstring>
#include <filesystem>

#include "tests/cli/support.h"

namespace graft::cli {
namespace {

class Compile : public testing::Test {
 protected:
  std::string tuned(const std::string& workload, const std::string& platform, const std::string& name) {
    const std::string run = (folder / name).string();
    json_of(quick({"tune", workload, "--platform", platform, "--model", "random", "--explorer", "random", "--trials",
                   "12", "--rebuild", "1", "--out", run}));
    return run;
  }
  base::Folder folder;
};

TEST_F(Compile, ALibraryHoldsWhatTuneFound) {
  const std::string first = tuned(small, "native:v2", "a"), second = tuned(other, "native:v2", "b");
  const std::string out = (folder / "lib").string();
  const base::Document made = json_of(
      {"compile", first, second, "--out", out, "--name", "two", "--variants", "2", "--function", small + "=mine"});
  ASSERT_EQ(made.at("functions").as_list().size(), 2u);
  const base::Document& mine = made.at("functions").as_list()[0];
  EXPECT_EQ(mine.at("name").as_string(), "mine");
  EXPECT_EQ(made.at("functions").as_list()[1].at("name").as_string(), "matmul_m16_n48_k24");
  const base::Document best = base::parse_json(base::read_file(folder / "a/best.json"), "best.json").at("best");
  EXPECT_EQ(mine.at("variants").as_list()[0].at("seconds").as_number(), best.at("seconds").as_number());
  EXPECT_EQ(mine.at("variants").as_list()[0].at("check").as_string(), "host");
  for (const char* const file : {"libtwo.a", "two.h", "two.pc", "twoConfig.cmake", "graft_parallel.h"})
    EXPECT_TRUE(std::filesystem::exists(folder / "lib" / file)) << file;
  EXPECT_NE(base::read_file(folder / "lib/two.h").find("mine_select("), std::string::npos);
}

TEST_F(Compile, ProgramsCheckThemselves) {
  const std::string run = tuned(small, "native:v2", "a");
  json_of({"compile", run, "--out", (folder / "bin").string(), "--format", "bench", "--variants", "2"});
  const base::Finished finished =
      base::run_process({(folder / "bin/matmul_m24_n32_k16").string()}, std::chrono::minutes(1));
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(lines_in(finished.out), 2u);
  EXPECT_NE(finished.out.find("(variant 1): "), std::string::npos) << finished.out;
  EXPECT_NE(finished.out.find(" ns, results right\n"), std::string::npos) << finished.out;
  // With other input data than it was made with, it says that the results are wrong.
  std::string bytes = base::read_file(folder / "bin/matmul_m24_n32_k16");
  bool changed = false;
  for (std::size_t at = 0; at + 64 <= bytes.size() && !changed; at += 64) {
    float first = 0;
    std::memcpy(&first, bytes.data() + at, sizeof first);
    int plausible = 0;
    for (std::size_t i = 0; i < 16; ++i) {
      float value = 0;
      std::memcpy(&value, bytes.data() + at + 4 * i, sizeof value);
      plausible += std::abs(value) > 1e-3f && std::abs(value) <= 1;
    }
    if (plausible < 15) continue;
    const float wrong = 0.75f - first;
    std::memcpy(bytes.data() + at, &wrong, sizeof wrong);
    changed = true;
  }
  ASSERT_TRUE(changed);
  base::replace_file(folder / "bin/wrong", bytes);
  std::filesystem::permissions(folder / "bin/wrong", std::filesystem::perms::owner_all);
  const base::Finished found = base::run_process({(folder / "bin/wrong").string()}, std::chrono::minutes(1));
  EXPECT_EQ(found.exit_code, 1);
  EXPECT_NE(found.out.find("results WRONG"), std::string::npos) << found.out;
}

TEST_F(Compile, RefusesWhatIsNoRunAndWhatDoesNotGoTogether) {
  const std::string first = tuned(small, "native:v2", "a"), second = tuned(small, "native:v3", "b");
  const std::string third = tuned(other, "native:v3", "c"), out = (folder / "lib").string();
  const auto refused = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "compile");
    arguments.insert(arguments.end(), {"--out", out});
    const base::Finished finished = graft(arguments);
    EXPECT_EQ(finished.exit_code, 2);
    EXPECT_FALSE(std::filesystem::exists(out));
    return finished.err;
  };
  EXPECT_NE(refused({folder.path().string()}).find("no run"), std::string::npos);
  EXPECT_NE(refused({first, first}).find("a second run of"), std::string::npos);
  EXPECT_NE(refused({first, third}).find("a library is for one platform"), std::string::npos);
  EXPECT_NE(refused({first, "--format", "exe"}).find("'exe' is neither library, object nor bench"), std::string::npos);
  EXPECT_NE(refused({first, "--function", "matmul"}).find("expected WORKLOAD=NAME"), std::string::npos);
  EXPECT_NE(refused({first, "--function", other + "=x"}).find("no run of this workload"), std::string::npos);
  EXPECT_NE(refused({first, "--function", small + "=9"}).find("'9' is no C identifier"), std::string::npos);
}

}  // namespace
}  // namespace graft::cli
