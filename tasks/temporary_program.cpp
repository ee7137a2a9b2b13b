#include "tasks/temporary_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"

namespace graft::tasks {

TemporaryProgram::TemporaryProgram(std::string_view content)
    : path_((std::filesystem::temp_directory_path() / "graft-XXXXXX").string()) {
  const int file = ::mkostemp(path_.data(), O_CLOEXEC);
  if (file < 0) fail("create");
  while (!content.empty()) {
    const ssize_t written = ::write(file, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    content.remove_prefix(std::size_t(written));
  }
  const bool whole = content.empty() && ::fchmod(file, 0700) == 0;
  const int error = errno;
  ::close(file);
  if (whole) return;
  ::unlink(path_.c_str());
  errno = error;
  fail("write");
}

TemporaryProgram::~TemporaryProgram() {
  ::unlink(path_.c_str());
}

void TemporaryProgram::fail(std::string_view action) const {
  throw base::Failure(fmt::format("cannot {} '{}': {}", action, path_, std::strerror(errno)));
}

}  // namespace graft::tasks
