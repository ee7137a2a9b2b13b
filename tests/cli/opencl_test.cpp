// Devices of OpenCL, end to end, where this host has one.
#include <filesystem>
#include <string>

#include "tests/cli/support.h"

namespace graft::cli {
namespace {

class Opencl : public testing::Test {
 protected:
  void SetUp() override {
    if (graft({"platform", "probe", "--opencl", "0", "--out", yaml}).exit_code != 0)
      GTEST_SKIP() << "no device of OpenCL here; install pocl-opencl-icd";
  }
  std::string at(const std::string& name) const { return (folder / name).string(); }

  base::Folder folder;
  const std::string yaml = (folder / "gpu.yaml").string();
};

TEST_F(Opencl, DevicesArePlatforms) {
  const base::Document probed = json_of({"platform", "probe", "--opencl", "0"});
  EXPECT_EQ(probed.at("yaml").as_string(), base::read_file(yaml));
  EXPECT_GT(probed.at("target").at("group_items").as_integer(), 0);
  EXPECT_NE(graft({"platform", "list"}).out.find("\nopencl:0"), std::string::npos);
  EXPECT_EQ(graft({"platform", "probe", "--opencl", "99"}).exit_code, 2);
  EXPECT_EQ(graft({"platform", "probe", "ssh://board", "--opencl", "0"}).exit_code, 2);
}

TEST_F(Opencl, TunesContinuesAndShowsKernels) {
  const auto tuned = [&](const char* trials, const std::string& platform) {
    return json_of({"tune", "matmul(m=32,n=48,k=16)", "--platform", platform, "--trials", trials, "--minimum-ms", "0.1",
                    "--out", at("run")});
  };
  EXPECT_EQ(tuned("4", "opencl:0").at("trials").as_integer(), 4);
  const base::Document more = tuned("8", "opencl:0");
  EXPECT_EQ(more.at("trials").as_integer(), 8);
  EXPECT_GT(more.at("best").at("seconds").as_number(), 0);
  const std::string shown = graft({"inspect", at("run"), "--program", "--assembly"}).out;
  EXPECT_NE(shown.find(" block_"), std::string::npos) << shown;
  EXPECT_NE(shown.find("__kernel "), std::string::npos) << shown;
  EXPECT_EQ(graft({"report", at("run"), "--out", at("report.html")}).exit_code, 0);
  EXPECT_NE(base::read_file(at("report.html")).find("__kernel"), std::string::npos);
}

}  // namespace
}  // namespace graft::cli
