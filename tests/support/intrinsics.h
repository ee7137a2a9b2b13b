// The shipped intrinsics, and schedules that use them.
#pragma once

#include <string>
#include <vector>

#include "base/files.h"
#include "codegen/program/intrinsic.h"

namespace graft::codegen::test {

inline std::vector<IntrinsicPointer> shipped(const std::string& name) {
  const std::string path = GRAFT_SOURCE_DIR "/examples/intrinsics/" + name + ".txt";
  return parse_intrinsics(base::read_file(path), name + ".txt");
}

// Column panels of A, rows of B in their stored order.
inline const std::string outer_schedule =
    "tile C i 4\n"
    "tile C j 8 4\n"
    "order C i.0 j.0 l.0 j.1 i.1 j.2\n"
    "unroll C j.1\n"
    "accumulate C above l.0\n"
    "pack C A above i.0\n"
    "tensorize C outer_4x4 i.1\n";

// B in groups of 16 columns, four deep.
inline const std::string dot_schedule =
    "tile C i 3\n"
    "tile C j 32 16\n"
    "tile C l 4\n"
    "order C i.0 j.0 l.0 i.1 j.1 j.2 l.1\n"
    "unroll C i.1 j.1\n"
    "accumulate C above l.0\n"
    "pack C B above i.0\n"
    "tensorize C dot_u8i8 j.2\n";

inline std::string dot_workload(int m, int n, int k, const std::string& weights = "constant") {
  const auto text = [](int number) { return std::to_string(number); };
  return "input A[" + text(m) + "," + text(k) + "] : u8; " + weights + " B[" + text(k) + "," + text(n) +
         "] : i8; output C[i,j] : i32 += A[i,l] * B[l,j] where i=" + text(m) + ", j=" + text(n) + ", l=" + text(k);
}

}  // namespace graft::codegen::test
