// Parameters that begin at a cache line: a network that scores one program spends its time on reading weights,
// and loads across two lines halve its speed.
#pragma once

#include <algorithm>
#include <memory>
#include <new>
#include <span>

namespace graft::meta {

class Aligned {
 public:
  explicit Aligned(std::span<const float> values)
      : data_(static_cast<float*>(::operator new(values.size_bytes(), line))), size_(values.size()) {
    std::copy(values.begin(), values.end(), data_.get());
  }
  std::span<const float> values() const { return {data_.get(), size_}; }

 private:
  static constexpr std::align_val_t line{64};
  struct Delete {
    void operator()(float* data) const { ::operator delete(data, line); }
  };
  std::unique_ptr<float, Delete> data_;
  std::size_t size_;
};

}  // namespace graft::meta
