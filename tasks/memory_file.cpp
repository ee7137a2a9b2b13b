#include "tasks/memory_file.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace graft::tasks {
namespace {

[[noreturn]] void fail(std::string_view action) {
  throw base::Failure(fmt::format("cannot {} a memory file: {}", action, std::strerror(errno)));
}

}  // namespace

MemoryFile::MemoryFile(std::int64_t bytes) : descriptor_(::memfd_create("graft", MFD_CLOEXEC)), bytes_(bytes) {
  if (descriptor_ < 0) fail("make");
  if (::ftruncate(descriptor_, off_t(bytes)) != 0) {
    ::close(descriptor_);
    fail("size");
  }
}

MemoryFile::MemoryFile(std::string_view content) : MemoryFile(std::int64_t(content.size())) {
  write(0, content.data(), std::int64_t(content.size()));
}

MemoryFile::~MemoryFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

MemoryFile::MemoryFile(MemoryFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), bytes_(std::exchange(other.bytes_, 0)) {}

MemoryFile& MemoryFile::operator=(MemoryFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void MemoryFile::write(std::int64_t offset, const void* from, std::int64_t count) {
  const char* next = static_cast<const char*>(from);
  while (count > 0) {
    const ssize_t written = ::pwrite(descriptor_, next, std::size_t(count), off_t(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail("write");
    next += written;
    offset += written;
    count -= written;
  }
}

void MemoryFile::read(std::int64_t offset, void* to, std::int64_t count) const {
  char* next = static_cast<char*>(to);
  while (count > 0) {
    const ssize_t got = ::pread(descriptor_, next, std::size_t(count), off_t(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail("read");
    next += got;
    offset += got;
    count -= got;
  }
}

}  // namespace graft::tasks
