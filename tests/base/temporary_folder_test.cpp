#include "base/temporary_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "base/error.h"
#include "base/files.h"

namespace graft::base {
namespace {

TEST(TemporaryFolder, IsGoneWithItsContent) {
  std::filesystem::path path;
  {
    const TemporaryFolder folder("test");
    path = folder.path();
    std::filesystem::create_directory(folder / "inner");
    replace_file(folder / "inner" / "file", "content");
    EXPECT_TRUE(std::filesystem::exists(path / "inner/file"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(TemporaryFolder, IsForItsUserAlone) {
  for (const auto where : {TemporaryFolder::Where::disk, TemporaryFolder::Where::memory}) {
    const TemporaryFolder folder("test", where);
    struct stat status {};
    ASSERT_EQ(::stat(folder.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700u);
    EXPECT_NE(folder.path().filename().string().find("graft-test-"), std::string::npos);
  }
}

TEST(TemporaryFolder, HasAPathOfItsOwn) {
  const TemporaryFolder one("test"), other("test");
  EXPECT_NE(one.path(), other.path());
}

TEST(TemporaryFolder, OneThatCannotBeMadeIsAFailure) {
  EXPECT_THROW(TemporaryFolder("no/such/folder"), Failure);
}

}  // namespace
}  // namespace graft::base
