#include "base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/posix.h"

namespace graft::base {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, std::string_view action, int error) {
  throw Failure(fmt::format("{}: cannot {}: {}", path.string(), action, system_message(error)));
}

// Writes everything; the errno of the failure, or 0.
int write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes.remove_prefix(std::size_t(written));
  }
  return 0;
}

// A new or renamed name is on the disk only once its directory is.
void sync_directory_of(const std::filesystem::path& path) {
  const std::filesystem::path parent = path.has_parent_path() ? path.parent_path() : ".";
  const Descriptor directory(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0) fail(parent, "open the directory", errno);
  // Some file systems cannot sync directories and say EINVAL; there is nothing more to be done there.
  if (::fsync(directory.get()) != 0 && errno != EINVAL) fail(parent, "sync the directory", errno);
}

// Only for messages: what a descriptor was opened as.
std::filesystem::path path_of(int descriptor) {
  std::error_code ignored;
  const auto path = std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", descriptor), ignored);
  return path.empty() ? "file" : path;
}

}  // namespace

struct InputFile::Handles {
  std::filesystem::path path;
  std::int64_t stored_bytes = 0;
  std::string fault;  // to be thrown
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file{nullptr, ::gzclose_r};

  UserError refused(std::string_view why) const { return UserError(path.string(), why); }
};

InputFile::InputFile(const std::filesystem::path& path) : handles_(std::make_unique<Handles>()) {
  handles_->path = path;
  const auto refuse = [&] { return handles_->refused(fmt::format("cannot be read: {}", system_message(errno))); };
  // Without waiting for the other end of a pipe, whose content may have no end, as that of a device.
  Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (descriptor.get() < 0) throw refuse();
  struct stat about {};
  if (::fstat(descriptor.get(), &about) != 0) throw refuse();
  if (S_ISDIR(about.st_mode)) throw handles_->refused("is a folder; expected a file");
  if (!S_ISREG(about.st_mode))
    throw handles_->refused(fmt::format("is a {}; expected a file", S_ISFIFO(about.st_mode) ? "pipe" : "device"));
  handles_->stored_bytes = about.st_size;
  handles_->file.reset(::gzdopen(descriptor.get(), "rb"));
  if (!handles_->file) throw Failure(fmt::format("{}: cannot be read: out of memory", path.string()));
  descriptor.release();  // gzclose_r closes it
  ::gzbuffer(handles_->file.get(), 1 << 17);
}

InputFile::~InputFile() = default;
InputFile::InputFile(InputFile&& other) noexcept = default;
InputFile& InputFile::operator=(InputFile&& other) noexcept = default;

std::int64_t InputFile::stored_bytes() const {
  return handles_->stored_bytes;
}

std::size_t InputFile::read(std::span<char> into) {
  std::size_t used = 0;
  while (used < into.size()) {
    if (!handles_->fault.empty()) {
      if (used > 0) break;
      throw handles_->refused(handles_->fault);
    }
    const std::size_t asked = std::min<std::size_t>(into.size() - used, 1 << 30);
    const int got = ::gzread(handles_->file.get(), into.data() + used, unsigned(asked));
    int error = Z_OK;
    const char* const message = ::gzerror(handles_->file.get(), &error);
    if (got < 0) {
      handles_->fault = error == Z_ERRNO ? fmt::format("cannot be read: {}", system_message(errno))
                                         : fmt::format("is not valid gzip: {}", message);
      continue;
    }
    used += std::size_t(got);
    if (std::size_t(got) < asked) {
      if (error != Z_BUF_ERROR) break;
      handles_->fault = "is not valid gzip: it ends in the middle";
    }
  }
  return used;
}

std::string read_file(const std::filesystem::path& path, std::int64_t limit_bytes) {
  InputFile file(path);
  const UserError too_large(path.string(), fmt::format("is larger than {} bytes", limit_bytes));
  // Packed or not, a file over the limit is refused before a byte of it is read.
  if (file.stored_bytes() > limit_bytes) throw too_large;
  std::string content;
  std::size_t used = 0;
  for (;;) {
    // One byte more than the limit is requested, so that a file of exactly the limit ends by itself.
    if (used == content.size()) {
      const std::size_t room = std::size_t(limit_bytes) + 1 - used;
      const std::size_t grown = used == 0 ? std::size_t(file.stored_bytes()) + 1 : std::max<std::size_t>(1 << 18, used);
      content.resize(used + std::min(room, grown));
    }
    const std::size_t asked = content.size() - used, got = file.read({content.data() + used, asked});
    used += got;
    if (used > std::size_t(limit_bytes)) throw too_large;
    if (got == 0) {
      content.resize(used);
      return content;
    }
  }
}

std::filesystem::path temporary_beside(const std::filesystem::path& path) {
  static std::atomic<std::uint64_t> counter = 0;
  const std::string name = fmt::format(".{}.{}-{}.tmp", path.filename().string(), ::getpid(), counter++);
  return path.parent_path() / name;
}

void commit_file(const std::filesystem::path& temporary, const std::filesystem::path& path) {
  const auto give_up = [&](const std::filesystem::path& place, std::string_view action) {
    const int error = errno;
    ::unlink(temporary.c_str());
    fail(place, action, error);
  };
  {
    const Descriptor descriptor(::open(temporary.c_str(), O_RDONLY | O_CLOEXEC));
    if (descriptor.get() < 0) give_up(temporary, "open");
    if (::fsync(descriptor.get()) != 0) give_up(temporary, "write");
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) give_up(path, "write");
  sync_directory_of(path);
}

void replace_file(const std::filesystem::path& path, std::string_view content) {
  const std::filesystem::path temporary = temporary_beside(path);
  {
    const Descriptor descriptor(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (descriptor.get() < 0) fail(path, "write", errno);
    if (const int error = write_all(descriptor.get(), content)) {
      ::unlink(temporary.c_str());
      fail(path, "write", error);
    }
  }
  commit_file(temporary, path);
}

AppendFile::AppendFile(const std::filesystem::path& path)
    : descriptor_(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666)) {
  if (descriptor_ < 0) fail(path, "open for appending", errno);
  Descriptor held(descriptor_);  // a constructor that throws has no destructor
  sync_directory_of(path);
  held.release();
}

AppendFile::~AppendFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

AppendFile::AppendFile(AppendFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

AppendFile& AppendFile::operator=(AppendFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

void AppendFile::append(std::string_view record) {
  struct stat before {};
  if (::fstat(descriptor_, &before) != 0) fail(path_of(descriptor_), "append", errno);
  if (const int error = write_all(descriptor_, record)) {
    // A full disk must not leave half a record for the next append to continue. If even this does not work, the
    // reader sees a torn line.
    [[maybe_unused]] const int result = ::ftruncate(descriptor_, before.st_size);
    fail(path_of(descriptor_), "append", error);
  }
  if (::fdatasync(descriptor_) != 0) fail(path_of(descriptor_), "append", errno);
}

void AppendFile::truncate(std::int64_t bytes) {
  if (::ftruncate(descriptor_, bytes) != 0 || ::fsync(descriptor_) != 0) fail(path_of(descriptor_), "truncate", errno);
}

FileLock::FileLock(const std::filesystem::path& path) {
  Descriptor descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (descriptor.get() < 0) fail(path, "open the lock", errno);
  if (::flock(descriptor.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) fail(path, "lock", errno);
    char text[32];
    const ssize_t length = ::pread(descriptor.get(), text, sizeof text, 0);
    long holder = 0;
    if (length > 0) std::from_chars(text, text + length, holder);
    // The holder may not have written its number yet.
    throw UserError(path.string(),
                    holder > 0 ? fmt::format("in use by process {}", holder) : "in use by another process");
  }
  const std::string holder = fmt::format("{}\n", ::getpid());
  if (::ftruncate(descriptor.get(), 0) != 0) fail(path, "write the lock", errno);
  if (const int error = write_all(descriptor.get(), holder)) fail(path, "write the lock", error);
  descriptor_ = descriptor.release();
}

FileLock::~FileLock() {
  if (descriptor_ >= 0) ::close(descriptor_);  // releases the lock; the file stays, for removing it would race
}

FileLock::FileLock(FileLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

}  // namespace graft::base
