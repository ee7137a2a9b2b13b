// Private to this room: two helpers that every caller of the operating system needs. Not for other rooms, which use
// files.h and process.h.
#pragma once

#include <unistd.h>

#include <string>
#include <system_error>
#include <utility>

namespace graft::base {

// Owns a file descriptor and closes it; -1 is none.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  int get() const { return number_; }
  int release() { return std::exchange(number_, -1); }
  void reset() {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
  }

 private:
  int number_;
};

// The text of an errno, in lower case as our messages are: "no such file or directory".
inline std::string system_message(int error) {
  std::string text = std::generic_category().message(error);
  if (text.size() > 1 && text[0] >= 'A' && text[0] <= 'Z' && text[1] >= 'a') text[0] = char(text[0] - 'A' + 'a');
  return text;
}

}  // namespace graft::base
