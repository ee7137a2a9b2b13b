#include "features/loop_context.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/features/encoded.h"
#include "tests/support/programs.h"

namespace graft::features {
namespace {

using test::count;
using test::value;
using test::Values;

Values encoded(const std::string& text) {
  return test::rows_of("loop_context", text).front();
}

// Counts of the columns whose names begin with `loop`, e.g. "l00." or "l01.b0.".
std::vector<std::int64_t> counts(const Values& values, const std::string& loop, const std::vector<std::string>& names) {
  std::vector<std::int64_t> result;
  for (const std::string& name : names) result.push_back(count(values, loop + name));
  return result;
}
using Counts = std::vector<std::int64_t>;

const std::vector<std::string> of_loop{"extent", "top_down", "bottom_up", "executions", "exits"};
const std::vector<std::string> of_buffer{"touched", "reuse", "lines", "stride", "loads", "stores"};

// i 4, j 2, k 8 around C[i,j] += A[i,k] * B[k,j]; A [4,8] is b0, B [8,2] is b1, C [4,2] is b2.
// Touched, reuse: as in tests/program/analysis_test.cpp. Lines of 64 bytes = 16 floats: A is 32 elements = 2 lines, a
// row of it 1; B 16 = 1. Strides: A 8, 0, 1; B 0, 1, 2; C 2, 1, 0. Every execution (64) loads A, B and C, stores C.
TEST(LoopContext, MatmulByHand) {
  const Values values = encoded(codegen::test::matmul);
  EXPECT_EQ(value(values, "loops"), 3);
  EXPECT_EQ(counts(values, "l00.", of_loop), (Counts{4, 4, 64, 64, 1}));
  EXPECT_EQ(counts(values, "l01.", of_loop), (Counts{2, 8, 16, 64, 4}));
  EXPECT_EQ(counts(values, "l02.", of_loop), (Counts{8, 64, 8, 64, 8}));
  EXPECT_EQ(value(values, "l00.depth"), 1);
  EXPECT_EQ(value(values, "l02.depth"), 3);
  EXPECT_EQ(counts(values, "l00.b0.", of_buffer), (Counts{32, 2, 2, 8, 64, 0}));
  EXPECT_EQ(counts(values, "l01.b0.", of_buffer), (Counts{8, 2, 1, 0, 64, 0}));
  EXPECT_EQ(counts(values, "l02.b0.", of_buffer), (Counts{8, 1, 1, 1, 64, 0}));
  EXPECT_EQ(counts(values, "l00.b1.", of_buffer), (Counts{16, 4, 1, 0, 64, 0}));
  EXPECT_EQ(counts(values, "l01.b1.", of_buffer), (Counts{16, 1, 1, 1, 64, 0}));
  EXPECT_EQ(counts(values, "l02.b1.", of_buffer), (Counts{8, 1, 1, 2, 64, 0}));
  EXPECT_EQ(counts(values, "l00.b2.", of_buffer), (Counts{8, 8, 1, 2, 64, 64}));
  EXPECT_EQ(counts(values, "l01.b2.", of_buffer), (Counts{2, 8, 1, 1, 64, 64}));
  EXPECT_EQ(counts(values, "l02.b2.", of_buffer), (Counts{1, 8, 1, 0, 64, 64}));
  // The multiply-add is in k directly, and in no other loop.
  EXPECT_EQ(count(values, "l02.float.mad"), 1);
  EXPECT_EQ(count(values, "l01.float.mad"), 0);
  for (int l = 0; l < 3; ++l) EXPECT_EQ(value(values, fmt::format("l{:02}.kind.serial", l)), 1);
  EXPECT_EQ(value(values, "l03.kind.serial"), 0);
  EXPECT_EQ(count(values, "l03.extent"), 0);
}

// Loops in order of run: 0 i.0 (2, parallel), 1 j.0 (2), 2 i.1 3 j.v of the fill, 4 k (16), 5 i.1 (4, unrolled), 6 j.v
// (16, vector) of the sum, 7 i.1 8 j.v of the end. B [16,32] is b0, C [8,32] b1, A [8,16] b2.
TEST(LoopContext, TiledAndVectorisedByHand) {
  const Values values = encoded(codegen::test::tiled);
  EXPECT_EQ(value(values, "loops"), 9);
  EXPECT_EQ(counts(values, "l00.", of_loop), (Counts{2, 2, 2 * 2 * 16 * 4 * 16, 4096 + 2 * 256, 1}));
  EXPECT_EQ(counts(values, "l01.", of_loop), (Counts{2, 4, 2048, 4608, 2}));
  EXPECT_EQ(counts(values, "l04.", of_loop), (Counts{16, 64, 1024, 4096, 4}));
  EXPECT_EQ(counts(values, "l05.", of_loop), (Counts{4, 256, 64, 4096, 0}));  // unrolled: never left
  EXPECT_EQ(counts(values, "l06.", of_loop), (Counts{16, 4096, 16, 4096, 0}));
  EXPECT_EQ(value(values, "l00.kind.parallel"), 1);
  EXPECT_EQ(value(values, "l05.kind.unrolled"), 1);
  EXPECT_EQ(value(values, "l06.kind.vector"), 1);
  // B[k, 16*j.0 + j.v]: all of it in j.0 (512 elements, 32 lines), half of the columns in k (16 rows of a line each), a
  // row's 16 in j.v; i.1 does not move it, so 4 uses; j.0 has 4 uses of each, and i.0 8.
  EXPECT_EQ(counts(values, "l00.b0.", of_buffer), (Counts{512, 8, 32, 0, 4096, 0}));
  EXPECT_EQ(counts(values, "l01.b0.", of_buffer), (Counts{512, 4, 32, 16, 4096, 0}));
  EXPECT_EQ(counts(values, "l04.b0.", of_buffer), (Counts{256, 4, 16, 32, 4096, 0}));
  EXPECT_EQ(counts(values, "l05.b0.", of_buffer), (Counts{16, 4, 1, 0, 4096, 0}));
  EXPECT_EQ(counts(values, "l06.b0.", of_buffer), (Counts{16, 1, 1, 1, 4096, 0}));
  // A[4*i.0 + i.1, k]: i.1 walks 4 rows 16 apart, one element and one line of each; the vector does not move it.
  EXPECT_EQ(counts(values, "l05.b2.", of_buffer), (Counts{4, 16, 4, 16, 4096, 0}));
  EXPECT_EQ(counts(values, "l06.b2.", of_buffer), (Counts{1, 16, 1, 0, 4096, 0}));
  // C is stored at the end only; the loops of the sum do not touch it.
  EXPECT_EQ(counts(values, "l06.b1.", of_buffer), (Counts{0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(counts(values, "l08.b1.", of_buffer), (Counts{16, 1, 1, 1, 0, 256}));
  EXPECT_EQ(count(values, "l04.register_elements"), 64);
  EXPECT_EQ(count(values, "l06.register_elements"), 16);
  EXPECT_EQ(count(values, "l06.float.mad"), 1);
  EXPECT_EQ(count(values, "l08.float.compare"), 1);
}

// k 3, x 7, c 2, r 3 around O[k,x] += I[c,x + r] * W[k,c,r]; O [3,7] is b0 (84 bytes), I [2,9] b1, W [3,2,3] b2.
TEST(LoopContext, ConvolutionByHand) {
  const Values values = encoded(codegen::test::convolution);
  EXPECT_EQ(counts(values, "l00.", of_loop), (Counts{3, 3, 126, 126, 1}));
  EXPECT_EQ(counts(values, "l01.", of_loop), (Counts{7, 21, 42, 126, 3}));
  EXPECT_EQ(counts(values, "l02.", of_loop), (Counts{2, 42, 6, 126, 21}));
  EXPECT_EQ(counts(values, "l03.", of_loop), (Counts{3, 126, 3, 126, 42}));
  // I: windows overlap, so x touches 2 channels of 7 + 3 - 1 = 9; 42 executions / 18 = 2. 18 floats: 2 lines.
  EXPECT_EQ(counts(values, "l00.b1.", of_buffer), (Counts{18, 7, 2, 0, 126, 0}));
  EXPECT_EQ(counts(values, "l01.b1.", of_buffer), (Counts{18, 2, 2, 1, 126, 0}));
  EXPECT_EQ(counts(values, "l02.b1.", of_buffer), (Counts{6, 1, 1, 9, 126, 0}));  // 9 + 3 elements from first to last
  EXPECT_EQ(counts(values, "l03.b1.", of_buffer), (Counts{3, 1, 1, 1, 126, 0}));
  EXPECT_EQ(counts(values, "l01.b2.", of_buffer), (Counts{6, 7, 1, 0, 126, 0}));
  EXPECT_EQ(counts(values, "l01.b0.", of_buffer), (Counts{7, 6, 1, 1, 126, 126}));
}

// A nest of two loops around a lot, after 30 loops around little: the heavy ones are kept, in order of run.
TEST(LoopContext, KeepsTheHeaviestNests) {
  std::string text = "buffer O i32 [1000] output\nrun\n";
  for (int l = 0; l < 30; ++l) text += fmt::format("  for i {}\n    O[i] = 1\n", l + 2);
  text += "  for i 10\n    for j 100\n      O[100*i + j] += 2\n";
  const Values values = encoded(text);
  EXPECT_EQ(value(values, "loops"), 32);
  // 22 places are left for the longest of the short ones: extents 10 .. 31.
  EXPECT_EQ(count(values, "l00.extent"), 10);
  EXPECT_EQ(count(values, "l21.extent"), 31);
  EXPECT_EQ(count(values, "l22.extent"), 10);
  EXPECT_EQ(count(values, "l23.extent"), 100);
  EXPECT_EQ(count(values, "l23.int.add"), 1);  // integers count
  EXPECT_EQ(count(values, "l23.float.add"), 0);
  EXPECT_EQ(count(values, "l23.unforeseen_exits"), 10);  // 100 iterations are not foreseen
}

TEST(LoopContext, PrefetchesOfALoopAreCounted) {
  const std::string text = codegen::test::replaced(codegen::test::matmul, "for k 8", "for k 8 prefetch A[i,k + 2]");
  EXPECT_EQ(count(encoded(text), "l02.prefetches"), 1);
  EXPECT_EQ(count(encoded(text), "l01.prefetches"), 0);
}

}  // namespace
}  // namespace graft::features
