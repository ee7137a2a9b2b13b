// The larger and the smaller of two numbers as `max` and `min` of the language and reductions by them take them: NaN if
// one of them is NaN, wherever it is.
#pragma once

namespace graft::codegen {

inline double maximum(double a, double b) {
  return a > b || a != a ? a : b;
}
inline double minimum(double a, double b) {
  return a < b || a != a ? a : b;
}

}  // namespace graft::codegen
