// The memory touched by the inside of a loop, and its layout: bytes, pages, places in a cache. Rules of thumb from
// the program alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "codegen/program/program.h"

namespace graft::features {

// The memory of one access: widened loop by loop, from the innermost.
class Spread {
 public:
  explicit Spread(double element_bytes) : run_(element_bytes), page_run_(element_bytes) {}

  // Widens by a loop that moves the access by this distance in each of `extent` iterations.
  void widen(double stride_bytes, std::int64_t extent);
  double pages() const;  // of 4 KiB
  // Lines per place, where a line's place is its address modulo the window: at least 1.
  double crowding(std::size_t window) const;

  static constexpr std::array<std::int64_t, 2> windows{4096, 65536};  // bytes

 private:
  double run_, page_run_;               // contiguous bytes; bytes without a gap of a page
  double runs_ = 1, page_runs_ = 1;     // their numbers
  std::array<double, 2> places_{1, 1};  // of runs_, those that differ modulo the window
};

// All buffers in memory together, each by the access that touches the most.
struct Inside {
  double bytes = 0, pages = 0;           // bytes: of whole lines
  std::array<double, 2> crowding{1, 1};  // by window: of the most crowded access
};
// By loop of the program.
std::vector<Inside> insides(const codegen::LoopProgram& program);

}  // namespace graft::features
