#include "features/stores.h"

#include <gtest/gtest.h>

#include "tests/features/encoded.h"
#include "tests/support/programs.h"

namespace graft::features {
namespace {

using test::count;
using test::value;
using test::Values;

// i 4, j 2, k 8 around C[i,j] += A[i,k] * B[k,j], 64 executions.
TEST(Stores, MatmulByHand) {
  const std::vector<Values> rows = test::rows_of("stores", codegen::test::matmul);
  ASSERT_EQ(rows.size(), 1u);
  const Values& row = rows[0];
  EXPECT_EQ(row.size(), 164u);
  EXPECT_EQ(count(row, "float_mad"), 64);
  EXPECT_EQ(count(row, "float_mul"), 0);
  EXPECT_EQ(count(row, "float_addsub"), 0);
  EXPECT_EQ(count(row, "int_mad"), 0);
  EXPECT_EQ(value(row, "vector_none"), 1);
  EXPECT_EQ(value(row, "is_gpu"), 0);
  // Requested lines. A: k moves it by 1 of 4 bytes, 64 * 4 / 64 = 4. B: k moves it by 2, 8. C: k does not move it, so
  // 64 / 8 = 8 executions count, of which j moves it by 1: 8 / 16, at least 1. So B, A, C.
  EXPECT_EQ(count(row, "b0.lines"), 8);
  EXPECT_EQ(count(row, "b1.lines"), 4);
  EXPECT_EQ(count(row, "b2.lines"), 1);
  EXPECT_EQ(value(row, "b0.read"), 1);
  EXPECT_EQ(value(row, "b2.read_write"), 1);
  EXPECT_EQ(count(row, "b0.bytes"), 64 * 4);
  EXPECT_EQ(count(row, "b2.bytes"), 64 * 4 * 2);
  EXPECT_EQ(count(row, "b0.unique_bytes"), 64);
  EXPECT_EQ(count(row, "b1.unique_bytes"), 128);
  EXPECT_EQ(count(row, "b1.unique_lines"), 2);
  // B is used again by i (4), of which an iteration executes 16 and touches A 8, B 16, C 2 elements of 4 bytes.
  EXPECT_EQ(value(row, "b0.loop_reuse"), 1);
  EXPECT_EQ(count(row, "b0.reuse_ct"), 4);
  EXPECT_EQ(count(row, "b0.reuse_dis_iter"), 16);
  EXPECT_EQ(count(row, "b0.reuse_dis_bytes"), (8 + 16 + 2) * 4);
  EXPECT_EQ(count(row, "b0.bytes_d_reuse_ct"), 64);
  EXPECT_EQ(count(row, "b0.stride"), 2);
  // A by j (2), C by k (8).
  EXPECT_EQ(count(row, "b1.reuse_ct"), 2);
  EXPECT_EQ(count(row, "b1.reuse_dis_iter"), 8);
  EXPECT_EQ(count(row, "b2.reuse_ct"), 8);
  EXPECT_EQ(count(row, "b2.stride"), 0);
  EXPECT_EQ(value(row, "b3.bytes"), 0);
  // All: 128 operations on 32 + 16 + 8 elements.
  EXPECT_NEAR(value(row, "arith_intensity_curve_9"), std::log2(1 + 128.0 / (56 * 4)), 1e-5);
  EXPECT_GE(value(row, "arith_intensity_curve_9"), value(row, "arith_intensity_curve_0"));
  EXPECT_EQ(count(row, "outer_prod"), 64);
  EXPECT_EQ(value(row, "num_loops"), 3);
  EXPECT_EQ(value(row, "alloc_size"), 0);  // the caller's
}

TEST(Stores, TiledByHand) {
  const std::vector<Values> rows = test::rows_of("stores", codegen::test::tiled);
  ASSERT_EQ(rows.size(), 3u);
  const Values &fill = rows[0], &sum = rows[1], &end = rows[2];
  EXPECT_EQ(count(fill, "outer_prod"), 256);  // the initial fill has a row of its own
  EXPECT_EQ(count(fill, "float_addsub"), 0);
  EXPECT_EQ(count(sum, "float_mad"), 4096);
  EXPECT_EQ(count(end, "float_cmp"), 256);
  // j.v (16) is the innermost loop that moves the accumulators, i.1 (4) the outermost: i.0, j.0 and k do not.
  EXPECT_EQ(count(sum, "vector_num"), 1);
  EXPECT_EQ(count(sum, "vector_len"), 16);
  EXPECT_EQ(value(sum, "vector_inner_spatial"), 1);
  EXPECT_EQ(value(sum, "unrolled_outer_spatial"), 1);
  EXPECT_EQ(value(sum, "parallel_outer_reduce"), 1);
  EXPECT_EQ(count(sum, "unrolled_copies"), 4);
  // 64 accumulators, made in each of the 4 iterations of i.0 and j.0.
  EXPECT_EQ(count(sum, "alloc_size"), 256);
  EXPECT_EQ(count(sum, "alloc_outer_prod"), 4);
  EXPECT_EQ(count(sum, "alloc_prod"), 1024);
  EXPECT_EQ(count(sum, "alloc_inner_prod"), 1024);
  EXPECT_EQ(count(end, "alloc_size"), 0);
}

TEST(Stores, ReuseByAnotherAccess) {
  const std::vector<Values> rows = test::rows_of("stores", R"(buffer O i32 [8] output
buffer T i32 [8] temporary
run
  for i 8
    T[i] = 3
    O[i] = T[i] * 5 + T[i] * 2
)");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(value(rows[0], "b0.serial_reuse"), 1);
  EXPECT_EQ(count(rows[0], "b0.reuse_ct"), 2);
  EXPECT_EQ(value(rows[1], "b1.no_reuse"), 1);  // O, after T with its two accesses
  EXPECT_EQ(count(rows[1], "b1.bytes_d_reuse_ct"), 64);
  EXPECT_EQ(count(rows[1], "int_mad"), 8);  // one product is added, the other stays
  EXPECT_EQ(count(rows[1], "int_mul"), 8);
}

}  // namespace
}  // namespace graft::features
