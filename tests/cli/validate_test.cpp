#include <filesystem>

#include "tests/cli/support.h"

namespace graft::cli {
namespace {

// Its ways divide the caches of almost any host.
const std::string profile = std::string(GRAFT_SOURCE_DIR) + "/platforms/hosts/znver3.yaml";

std::vector<std::string> validation(const std::string& out, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments =
      quick({"platform", "validate", "--platform", "native:v2", "--profile", profile, "--workloads",
             small + "," + other, "--samples", "6", "--passes", "2", "--out", out});
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(Validate, ComparesOnceAndContinues) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "the profile is of an x86-64 cpu";
#endif
  const base::Folder folder;
  const std::string out = (folder / "run").string();
  const base::Document result = json_of(validation(out));
  const base::Document::List& rows = result.at("rows").as_list();
  ASSERT_EQ(rows.size(), 2u);
  for (const base::Document& row : rows) {
    EXPECT_EQ(row.at("platform").as_string(), "native:v2");
    EXPECT_GE(row.at("programs").as_integer(), 2);
    EXPECT_LE(row.at("programs").as_integer(), 6);
    EXPECT_GE(row.at("spread").as_number(), 1);
    EXPECT_LE(std::abs(row.at("spearman").as_number()), 1);
    EXPECT_GE(row.at("top1_regret").as_number(), row.at("top5_regret").as_number());
    EXPECT_GE(row.at("top5_regret").as_number(), 1);
    EXPECT_LE(std::abs(row.at("repeated_spearman").as_number()), 1);
  }
  const std::string page = base::read_file(result.at("page").as_string());
  for (const char* const part : {"Modelled against measured", "Weak spots", "<svg", "m=24", "Furthest off"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  for (const char* const part : {"<script", "http", "src="}) EXPECT_EQ(page.find(part), std::string::npos) << part;

  // Run again, nothing is measured again: the same times give the same numbers.
  const base::Document again = json_of(validation(out));
  EXPECT_EQ(again.at("rows").to_json(), result.at("rows").to_json());
  // With more samples the first ones stay.
  std::vector<std::string> more = validation(out);
  *std::find(more.begin(), more.end(), "6") = "9";
  EXPECT_GT(json_of(more).at("rows").as_list()[0].at("programs").as_integer(), rows[0].at("programs").as_integer());
}

TEST(Validate, RefusesWhatCannotBeCompared) {
  const base::Folder folder;
  const std::string out = (folder / "run").string();
  const auto refusal = [&](const std::vector<std::string>& arguments) {
    const base::Finished finished = graft(arguments);
    EXPECT_EQ(finished.exit_code, 2) << finished.err;
    EXPECT_FALSE(std::filesystem::exists(out));
    return finished.err;
  };
  const auto with = [&](const std::string& flag, const std::string& value) {
    std::vector<std::string> arguments = validation(out);
    const auto at = std::find(arguments.begin(), arguments.end(), flag);
    *(at + 1) = value;
    return arguments;
  };
  EXPECT_NE(refusal(with("--platform", "model:sifive-p450")).find("native"), std::string::npos);
  EXPECT_NE(refusal(with("--samples", "1")).find("--samples"), std::string::npos);
  EXPECT_NE(refusal(with("--profile", "none.yaml")).find("none.yaml"), std::string::npos);
  EXPECT_NE(refusal(with("--workloads", "matmul(m=2)")).find("matmul"), std::string::npos);
  EXPECT_NE(refusal({"platform", "validate"}).find("--out"), std::string::npos);
}

}  // namespace
}  // namespace graft::cli
