#include "base/installation.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace graft::base {
namespace {

TEST(Installation, IsFoundFromThisProgram) {
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  EXPECT_EQ(own_folder(), program.parent_path());
  EXPECT_EQ(own_program(program.filename()), program);
  EXPECT_TRUE(std::filesystem::exists(share_folder() / "platforms"));
}

TEST(Installation, SaysWhereAProgramIsMissing) {
  try {
    own_program("graft-missing");
    FAIL() << "found what is not there";
  } catch (const Failure& failure) {
    EXPECT_NE(std::string(failure.what()).find("graft-missing is neither in '" + own_folder().string()),
              std::string::npos)
        << failure.what();
  }
}

}  // namespace
}  // namespace graft::base
