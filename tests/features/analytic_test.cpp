#include "features/analytic.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "codegen/program/forms.h"
#include "tests/features/encoded.h"
#include "tests/support/programs.h"

namespace graft::features {
namespace {

using test::count;

test::Values encoded(const std::string& text, const codegen::Target& target) {
  const codegen::LoopProgram program = codegen::parse_program(text, "p");
  const Encoding encoding = analytic();
  return test::rows_of(encoding, encoding.encode({.program = &program, .target = &target})).front();
}

// 64 executions: a multiply-add; loads of A, B and C, a store of C; 4 + 8 + 64 iterations. Memory takes longest.
TEST(Analytic, MatmulByHand) {
  const auto values = encoded(codegen::test::matmul, {});
  EXPECT_EQ(count(values, "arithmetic"), 64);
  EXPECT_EQ(count(values, "memory"), 4 * 64);
  EXPECT_EQ(count(values, "control"), 4 + 8 + 64);
  EXPECT_EQ(count(values, "l1_lines"), 0);
  EXPECT_EQ(count(values, "cycles"), 4 * 64 / 2);
}

// Two vectors of 8 floats a vector loop. The sum: 2*2*16*4 multiply-adds of 16 lanes; A is loaded once each, B once for
// four rows of the tile. The end: a maximum and a store of 2*2*4 times 16 lanes. Iterations: i.0, j.0, k.
//
// In a cache of 2048 bytes: i.0 touches 8 lines of A, 32 of B, 16 of C, and j.0 4, 32 and 8, which is too much; k 4 of
// A and 16 of B, each of the 4 times that it begins; the loop at the end 4 of C, 4 times, too.
TEST(Analytic, TiledMatmulByHand) {
  codegen::Target target;
  target.vector_bits = 256;
  target.l1_bytes = 2048;
  target.l2_bytes = 4096;
  const auto values = encoded(codegen::test::tiled, target);
  EXPECT_EQ(count(values, "arithmetic"), 2 * 256 + 2 * 16);
  EXPECT_EQ(count(values, "memory"), 256 + 2 * 64 + 2 * 16);
  EXPECT_EQ(count(values, "control"), 2 + 4 + 64);
  EXPECT_EQ(count(values, "l1_lines"), 4 * 4 + 4 * 16 + 4 * 4);
  EXPECT_EQ(count(values, "l2_lines"), 8 + 32 + 16);  // all of it fits
  EXPECT_EQ(count(values, "l3_lines"), 0);            // unknown
  EXPECT_EQ(count(values, "cycles"), 6 * (8 + 32 + 16));
  target.threads = 2;  // i.0 is parallel
  EXPECT_EQ(count(encoded(codegen::test::tiled, target), "arithmetic"), 256 + 16);
  target.threads = 3;
  EXPECT_EQ(count(encoded(codegen::test::tiled, target), "arithmetic"), 256 + 16);
}

}  // namespace
}  // namespace graft::features
