// Files that survive being killed: append + fsync, replacement by rename, one writer per directory, bounded reading.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace graft::base {

// Whole file, plain or gzip (by its first two bytes). Throws UserError if it is missing, unreadable, no regular file
// (a folder, a pipe, a device), or larger than `limit_bytes` once unpacked.
std::string read_file(const std::filesystem::path& path, std::int64_t limit_bytes = std::int64_t(1) << 30);

// The same file piece by piece, for content that need not fit into memory.
class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& path);  // UserError as read_file
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;

  std::int64_t stored_bytes() const;  // on the disk, packed or not
  // Fills the front of `into`; less than its size only at the end of the file and before a fault (broken or truncated
  // gzip, an unreadable disk), which the next call throws as a UserError.
  std::size_t read(std::span<char> into);

 private:
  struct Handles;
  std::unique_ptr<Handles> handles_;
};

// Writes to a file next to `path`, fsyncs, renames over it, fsyncs the directory. Throws Failure.
void replace_file(const std::filesystem::path& path, std::string_view content);
// The same in two halves, for libraries that write files themselves: write to `temporary_beside(path)`, then `commit`.
std::filesystem::path temporary_beside(const std::filesystem::path& path);
void commit_file(const std::filesystem::path& temporary, const std::filesystem::path& path);

// Appends whole records; each `append` returns after write + fdatasync. When the disk is full it throws Failure and
// removes the part of the record that was written.
class AppendFile {
 public:
  explicit AppendFile(const std::filesystem::path& path);  // created if missing; throws Failure
  ~AppendFile();
  AppendFile(AppendFile&& other) noexcept;
  AppendFile& operator=(AppendFile&& other) noexcept;
  void append(std::string_view record);
  void truncate(std::int64_t bytes);  // drops everything after them (a torn last line)

 private:
  int descriptor_ = -1;
};

// An advisory lock (flock) that dies with its process. Throws UserError "<path>: in use by process N" if it is held (by
// this process, too). The file is not removed.
class FileLock {
 public:
  explicit FileLock(const std::filesystem::path& path);
  ~FileLock();
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace graft::base
