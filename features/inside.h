// What the inside of a loop touches, and how that lies in memory: bytes, pages, places in a cache. Rules of thumb from
// the program alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "codegen/program/program.h"

namespace graft::features {

// Of one access: widened by one loop after the other, from the innermost.
class Spread {
 public:
  explicit Spread(double element_bytes) : run_(element_bytes), page_run_(element_bytes) {}

  // By a loop that moves the access so far with each of `extent` iterations.
  void widen(double stride_bytes, std::int64_t extent);
  double pages() const;  // of 4 KiB
  // Lines for each of the places that they have, where a line's place is its address modulo the window: at least 1.
  double crowding(std::size_t window) const;

  static constexpr std::array<std::int64_t, 2> windows{4096, 65536};  // bytes

 private:
  double run_, page_run_;               // contiguous bytes; bytes without a gap of a page
  double runs_ = 1, page_runs_ = 1;     // how many of them
  std::array<double, 2> places_{1, 1};  // of runs_, those that differ modulo the window
};

// All buffers in memory together, each by the access that touches most.
struct Inside {
  double bytes = 0, pages = 0;           // bytes: of whole lines
  std::array<double, 2> crowding{1, 1};  // by window: of the most crowded access
};
// By loop of the program.
std::vector<Inside> insides(const codegen::LoopProgram& program);

}  // namespace graft::features
