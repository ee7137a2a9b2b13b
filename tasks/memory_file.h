// Private to this room: bytes that another process can map (memfd). Used to send data to the worker.
#pragma once

#include <cstdint>
#include <string_view>

namespace graft::tasks {

class MemoryFile {
 public:
  // Zeros; throws Failure when there is no memory.
  explicit MemoryFile(std::int64_t bytes);
  explicit MemoryFile(std::string_view content);
  ~MemoryFile();
  MemoryFile(MemoryFile&& other) noexcept;
  MemoryFile& operator=(MemoryFile&& other) noexcept;

  int descriptor() const { return descriptor_; }
  std::int64_t bytes() const { return bytes_; }
  void write(std::int64_t offset, const void* from, std::int64_t count);
  void read(std::int64_t offset, void* to, std::int64_t count) const;

 private:
  int descriptor_ = -1;
  std::int64_t bytes_ = 0;
};

}  // namespace graft::tasks
