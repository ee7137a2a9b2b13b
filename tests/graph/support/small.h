// What tests of plans have in common: a processor, and numbers for weights.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "codegen/expression/target.h"

namespace graft::graph {

// A processor with vectors of `bits`.
inline codegen::Target vector_target(std::int64_t bits = 256) {
  codegen::Target target;
  target.vector_bits = bits;
  target.vector_registers = 16;
  return target;
}

// From -1 to 1, in steps of a thousandth.
inline std::vector<float> numbers(std::int64_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> all;
  for (std::int64_t i = 0; i < count; ++i) all.push_back(float(double(random() % 2001) / 1000 - 1));
  return all;
}

}  // namespace graft::graph
