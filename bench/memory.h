// Memory for kernels, the same for every contender: aligned, in huge pages if it is large.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>

namespace graft::bench {

// Zeros; 64-byte aligned. At least one byte.
class Memory {
 public:
  explicit Memory(std::int64_t bytes);
  void* data() const { return data_.get(); }
  float* floats() const { return static_cast<float*>(data_.get()); }
  std::int64_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(void* data) const { std::free(data); }
  };
  std::int64_t bytes_;
  std::unique_ptr<void, Free> data_;
};

}  // namespace graft::bench
