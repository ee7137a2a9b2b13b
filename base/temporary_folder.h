// A folder for files that other programs and libraries want by name.
#pragma once

#include <filesystem>
#include <string_view>

namespace graft::base {

// A new folder that only this user can enter, removed with its content at the end of its life.
class TemporaryFolder {
 public:
  // memory: in memory where the system has a place for that.
  enum class Where { disk, memory };

  // `purpose` is part of its name, for people who find it after a crash. Throws Failure if it cannot be made.
  explicit TemporaryFolder(std::string_view purpose = "files", Where where = Where::disk);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace graft::base
