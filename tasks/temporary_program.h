// An executable file for commands that cannot run one from memory, such as qemu or ssh.
#pragma once

#include <string>
#include <string_view>

#include "base/temporary_folder.h"

namespace graft::tasks {

// Removed with this value. Throws Failure when it cannot be written.
class TemporaryProgram {
 public:
  explicit TemporaryProgram(std::string_view content);
  const std::string& path() const { return path_; }

 private:
  [[noreturn]] void fail(std::string_view action) const;
  base::TemporaryFolder folder_;
  std::string path_;
};

}  // namespace graft::tasks
