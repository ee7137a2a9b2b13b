// Arithmetic of one execution of a store, by kind, as a machine would do it: a product that is added immediately is
// one multiply-add. Index arithmetic is not counted; integer operations of a store are counted like floating point.
#pragma once

#include <array>
#include <cstdint>

#include "codegen/program/program.h"

namespace graft::features {

// name, what is counted
#define GRAFT_OPERATIONS(X)                                                   \
  X(mad, "multiply-adds (a product added to, or subtracted from, something)") \
  X(add, "other additions, subtractions and negations")                       \
  X(mul, "other multiplications")                                             \
  X(div, "divisions")                                                         \
  X(compare, "maxima and minima")                                             \
  X(special, "exponentials and square roots")

struct Operations {
  enum Kind {
#define X(name, text) name,
    GRAFT_OPERATIONS(X)
#undef X
        kinds
  };
  std::array<std::int64_t, kinds> floating{}, integer{};

  Operations& operator+=(const Operations& other);
  std::int64_t total() const;  // a multiply-add counts two
};

// The combine is counted: `+=` an addition, or part of a multiply-add; `max=` and `min=` a comparison.
Operations operations(const codegen::LoopProgram& program, const codegen::Store& store);

}  // namespace graft::features
