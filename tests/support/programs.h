// Loop programs that several rooms' tests work out by hand.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace graft::codegen::test {

inline const std::string matmul = R"(buffer A f32 [4,8] input
buffer B f32 [8,2] input
buffer C f32 [4,2] output
run
  for i 4
    for j 2
      for k 8
        C[i,j] += A[i,k] * B[k,j]
)";

// One-dimensional, with windows that overlap.
inline const std::string convolution = R"(buffer I f32 [2,9] input
buffer W f32 [3,2,3] constant
buffer O f32 [3,7] output
run
  for k 3
    for x 7
      for c 2
        for r 3
          O[k,x] += I[c,x + r] * W[k,c,r]
)";

// A matmul in tiles, parallel, its accumulators in registers, followed by a maximum.
inline const std::string tiled = R"(buffer A f32 [8,16] input
buffer B f32 [16,32] input
buffer C f32 [8,32] output
buffer acc f32 [4,16] temporary registers
run
  for i.0 2 parallel
    for j.0 2
      for i.1 4 unrolled
        for j.v 16 vector
          acc[i.1,j.v] = 0
      for k 16
        for i.1 4 unrolled
          for j.v 16 vector
            acc[i.1,j.v] += A[4*i.0 + i.1,k] * B[k,16*j.0 + j.v]
      for i.1 4 unrolled
        for j.v 16 vector
          C[4*i.0 + i.1,16*j.0 + j.v] = max(acc[i.1,j.v], 0)
)";

// `text` with the first `from`, which must be there, replaced.
inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

}  // namespace graft::codegen::test
