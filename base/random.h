// Counter-based random streams: the n-th number of a stream depends on (seed, name, index) and n alone, so the number
// of threads and the order of calls elsewhere change nothing.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace graft::base {

class Stream {
 public:
  Stream(std::uint64_t seed, std::string_view name, std::uint64_t index = 0);

  std::uint64_t bits();                // the next 64 random bits
  double uniform();                    // [0, 1)
  std::int64_t below(std::int64_t n);  // 0 .. n-1 without modulo bias, n >= 1
  double normal();                     // mean 0, variance 1 (Box-Muller, two draws a number)

  template <class T>
  void shuffle(std::vector<T>& values) {  // Fisher-Yates
    for (std::int64_t i = std::int64_t(values.size()) - 1; i > 0; --i)
      std::swap(values[std::size_t(i)], values[std::size_t(below(i + 1))]);
  }
  // `count` distinct numbers of 0 .. n-1 in random order; all of them when count >= n.
  std::vector<std::int64_t> choose(std::int64_t n, std::int64_t count);

 private:
  std::uint64_t key_;
  std::uint64_t counter_ = 0;
};

}  // namespace graft::base
