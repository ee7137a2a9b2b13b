// Numbers that tests draw.
#pragma once

#include <cstdint>
#include <random>

namespace graft::graph {

class Drawn {
 public:
  explicit Drawn(unsigned seed) : random_(seed) {}
  std::int64_t upto(std::int64_t count) { return std::int64_t(random_() % unsigned(count)); }
  bool coin() { return upto(2) != 0; }

 private:
  std::mt19937 random_;
};

}  // namespace graft::graph
