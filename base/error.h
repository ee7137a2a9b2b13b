// How things fail. A candidate that does not apply, compile, finish or match is data: a `Result` holding a `Reason`.
// A user's mistake (a flag, a file) is a `UserError`: one line with file, place, value and remedy; the program ends
// with exit code 2. Everything else that can go wrong outside (a full disk, a dead child) is a `Failure`: exit code 1.
// Our own mistakes are asserts.
#pragma once

#include <cassert>
#include <initializer_list>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace graft::base {

// Why a candidate failed: lower case, place first, no final period ("split: 7 does not divide j.o (3)").
struct Reason {
  std::string text;
  bool operator==(const Reason&) const = default;
};

// A value, or the reason why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : held_(std::in_place_index<0>, std::move(value)) {}
  Result(Reason reason) : held_(std::in_place_index<1>, std::move(reason)) {}

  explicit operator bool() const { return held_.index() == 0; }
  bool ok() const { return held_.index() == 0; }
  const T& value() const& {
    assert(ok());
    return std::get<0>(held_);
  }
  T& value() & {
    assert(ok());
    return std::get<0>(held_);
  }
  T&& value() && {
    assert(ok());
    return std::get<0>(std::move(held_));
  }
  const T& operator*() const& { return value(); }
  T& operator*() & { return value(); }
  const T* operator->() const { return &value(); }
  T* operator->() { return &value(); }
  const Reason& reason() const {
    assert(!ok());
    return std::get<1>(held_);
  }

 private:
  std::variant<T, Reason> held_;
};

// The user's mistake. `what()` is the whole line without "error: ".
class UserError : public std::runtime_error {
 public:
  explicit UserError(const std::string& message) : std::runtime_error(message) {}
  // "<place>: <message>", place as "board.yaml:7:3" or "--trials".
  UserError(std::string_view place, std::string_view message)
      : std::runtime_error(std::string(place) + ": " + std::string(message)) {}
};

// The world's mistake: a file that cannot be written, a child that cannot be started.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// "; did you mean 'x'?" for the known word nearest to `word` by edit distance (at most a third of its length, at least
// 2), or "; known: a, b, c" when none is near and there are at most 40 known words, or "" when `known` is empty.
std::string did_you_mean(std::string_view word, std::span<const std::string> known);

}  // namespace graft::base
