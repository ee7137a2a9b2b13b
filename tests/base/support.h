// Shared by several tests of this room: a temporary folder, and the text of a refusal.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/error.h"

namespace graft::base {

// Removed with its content at the end of the test.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "graft-test-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw Failure("cannot make a folder for the test");
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// The line that a UserError (or another exception) carries; "no refusal" when nothing is thrown.
template <class Error = UserError, class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no refusal";
}

}  // namespace graft::base
