// Values as consecutive bytes, for another process of the same program on a machine of the same kind (no file format).
// Numbers and the like are copied as they are in memory, vectors and strings with their length in front; a type of
// several fields names them once for both directions:
//   template <class Bytes, class Self>
//   static void fields(Bytes& bytes, Self& self) { bytes(self.first), bytes(self.second); }
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/error.h"

namespace graft::base {

class BytesOut {
 public:
  template <class T>
  void operator()(const T& value) {
    if constexpr (requires { T::fields(*this, value); }) {
      T::fields(*this, value);
    } else {
      static_assert(std::is_trivially_copyable_v<T>);
      append(&value, sizeof value);
    }
  }
  template <class T>
  void operator()(const std::vector<T>& values) {
    (*this)(std::uint64_t(values.size()));
    if constexpr (std::is_trivially_copyable_v<T>) {
      append(values.data(), values.size() * sizeof(T));
    } else {
      for (const T& value : values) (*this)(value);
    }
  }
  void operator()(const std::string& text) {
    (*this)(std::uint64_t(text.size()));
    bytes_ += text;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void append(const void* from, std::size_t length) { bytes_.append(static_cast<const char*>(from), length); }
  std::string bytes_;
};

// Throws Failure if fewer bytes are left than a value needs.
class BytesIn {
 public:
  explicit BytesIn(std::string_view bytes) : rest_(bytes) {}
  template <class T>
  void operator()(T& value) {
    if constexpr (requires { T::fields(*this, value); }) {
      T::fields(*this, value);
    } else {
      static_assert(std::is_trivially_copyable_v<T>);
      take(&value, sizeof value);
    }
  }
  template <class T>
  void operator()(std::vector<T>& values) {
    if constexpr (std::is_trivially_copyable_v<T>) {
      values.resize(length(sizeof(T)));
      take(values.data(), values.size() * sizeof(T));
    } else {
      values.clear();
      for (std::size_t left = length(1); left > 0; --left) (*this)(values.emplace_back());
    }
  }
  void operator()(std::string& text) {
    text.resize(length(1));
    take(text.data(), text.size());
  }
  bool at_end() const { return rest_.empty(); }

 private:
  // The length of a vector whose elements have at least `each` bytes each.
  std::size_t length(std::size_t each) {
    std::uint64_t length = 0;
    take(&length, sizeof length);
    if (length > rest_.size() / each) too_short();
    return std::size_t(length);
  }
  void take(void* to, std::size_t length) {
    if (rest_.size() < length) too_short();
    if (length > 0) std::memcpy(to, rest_.data(), length);
    rest_.remove_prefix(length);
  }
  [[noreturn]] static void too_short() { throw Failure("fewer bytes than were announced"); }

  std::string_view rest_;
};

}  // namespace graft::base
