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

// `text` with the first `from`, which must be there, replaced.
inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

}  // namespace graft::codegen::test
