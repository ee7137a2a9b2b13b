#include "features/autotvm_curve.h"

#include <gtest/gtest.h>

#include "tests/features/encoded.h"
#include "tests/support/programs.h"

namespace graft::features {
namespace {

using test::value;

// i 4, j 2, k 8 around C[i,j] += A[i,k] * B[k,j]; buffers by first use: C, A, B. Logarithms, a 0 in front, each sorted:
//   top-down: i 2, j 3, k 6           0 2 3 6
//   C: touched k 0, j 1, i 3          0 0 1 3       reuse k 3, j 3, i 3   0 3 3 3
//   A: touched k 3, j 3, i 5          0 3 3 5       reuse k 0, j 1, i 1   0 0 1 1
TEST(AutotvmCurve, ReleasedByHand) {
  const auto values = test::rows_of("context_relation_released", codegen::test::matmul).front();
  EXPECT_EQ(values.size(), 5u * 8);
  EXPECT_EQ(value(values, "b0.touched>reuse.t00"), 3);    // at the second 0
  EXPECT_EQ(value(values, "b0.reuse>touched.t00"), 0);    // at the first
  EXPECT_EQ(value(values, "b0.touched>topdown.t00"), 2);  // the loop k, which touches one element, has 6
  EXPECT_EQ(value(values, "b0.topdown>touched.t00"), 0);
  EXPECT_EQ(value(values, "b0.touched>reuse.t00.gap"), 0);
  EXPECT_EQ(value(values, "b1.touched>reuse.t00"), 0);
  EXPECT_EQ(value(values, "b1.reuse>touched.t00"), 3);
  EXPECT_EQ(value(values, "b3.reuse>touched.t00"), 0);
}

TEST(AutotvmCurve, PublishedByHand) {
  const auto values = test::rows_of("context_relation_published", codegen::test::matmul).front();
  EXPECT_EQ(values.size(), 5u * 160);
  EXPECT_EQ(value(values, "b1.touched>topdown.t02"), 0);
  EXPECT_EQ(value(values, "b1.touched>topdown.t02.gap"), 2);
  EXPECT_EQ(value(values, "b1.touched>topdown.t03"), 3);
  EXPECT_EQ(value(values, "b1.touched>topdown.t04"), 3);
  EXPECT_EQ(value(values, "b1.touched>topdown.t04.gap"), 1);
  EXPECT_EQ(value(values, "b1.touched>topdown.t19"), 6);
  EXPECT_EQ(value(values, "b1.touched>topdown.t19.gap"), 14);
  EXPECT_EQ(value(values, "b1.reuse>touched.t01"), 5);
}

// Only stores at the greatest depth count, and windows that overlap are counted twice: x 7 times r 3 are 21, not 9.
TEST(AutotvmCurve, DeepestStoresAndWindows) {
  const auto values = test::rows_of("context_relation_published", R"(buffer I f32 [9] input
buffer O f32 [7] output
buffer Z f32 [7] output
run
  for x 7
    Z[x] = 1
  for x 7
    for r 3
      O[x] += I[x + r]
)")
                          .front();
  EXPECT_FLOAT_EQ(value(values, "b1.reuse>touched.t00"), float(std::log2(21.0)));
  EXPECT_EQ(value(values, "b2.topdown>touched.t19.gap"), 0);  // no Z
}

}  // namespace
}  // namespace graft::features
