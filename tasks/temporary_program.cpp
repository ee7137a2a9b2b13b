#include "tasks/temporary_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace graft::tasks {

TemporaryProgram::TemporaryProgram(std::string_view content) : folder_("program"), path_(folder_ / "program") {
  // No child may keep it open for writing: it could not be run.
  const int file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
  if (file < 0) fail("create");
  while (!content.empty()) {
    const ssize_t written = ::write(file, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    content.remove_prefix(std::size_t(written));
  }
  const int error = errno;
  ::close(file);
  if (content.empty()) return;
  errno = error;
  fail("write");
}

void TemporaryProgram::fail(std::string_view action) const {
  throw base::Failure(fmt::format("cannot {} '{}': {}", action, path_, std::strerror(errno)));
}

}  // namespace graft::tasks
