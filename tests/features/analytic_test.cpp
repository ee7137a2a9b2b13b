#include "features/analytic.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "codegen/program/forms.h"
#include "tests/features/encoded.h"
#include "tests/support/programs.h"

namespace graft::features {
namespace {

using test::count;

test::Values encoded(const std::string& text, const codegen::Target& target, const Encoding& encoding = analytic()) {
  const codegen::LoopProgram program = codegen::parse_program(text, "p");
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

// The same program and caches. acc is eight vectors of 8 floats; k begins 4 times and fits into the first cache with
// 1024 of the sum's executions in it, the loop at the end with 64; i.0 fits into the second one with all 4096 and 256.
TEST(OnTarget, TiledMatmulByHand) {
  codegen::Target target;
  target.vector_bits = 256;
  target.vector_registers = 16;
  target.l1_bytes = 2048;
  target.l2_bytes = 4096;
  const auto values = encoded(codegen::test::tiled, target, on_target());
  const auto analytic_values = encoded(codegen::test::tiled, target);
  for (const auto& [name, number] : analytic_values) EXPECT_EQ(test::value(values, name), number) << name;
  EXPECT_EQ(test::value(values, "target_lanes"), 3);
  EXPECT_EQ(test::value(values, "target_registers"), 4);
  const auto ratio = [](double a, double b) { return float(std::log2(a / b)); };
  const std::pair<std::string, float> expected[] = {{"cycles_share", ratio(336 + 1, 544 + 1)},
                                                    {"memory_share", ratio(416 + 1, 544 + 1)},
                                                    {"control_share", ratio(70 + 1, 544 + 1)},
                                                    {"l1_share", ratio(96 + 1, 544 + 1)},
                                                    {"l2_share", ratio(56 + 1, 544 + 1)},
                                                    {"l3_share", ratio(1, 544 + 1)},
                                                    {"lanes_lost", 0},
                                                    {"registers_share", ratio(8 + 1, 16)},
                                                    {"l1_reuse", (4096 * 10 + 256 * 6) / 4352.0f},
                                                    {"l2_reuse", (4096 * 12 + 256 * 8) / 4352.0f},
                                                    {"l3_reuse", 0},
                                                    {"l1_footprint", ratio(56 * 64 + 1, 2048)},
                                                    {"l2_footprint", ratio(56 * 64 + 1, 4096)},
                                                    {"l3_footprint", 0}};
  for (const auto& [name, number] : expected) EXPECT_NEAR(test::value(values, name), number, 1e-5) << name;
  EXPECT_EQ(count(values, "registers_wanted"), 8);
  EXPECT_EQ(count(values, "single_elements"), 0);
  // B, C, A
  const std::pair<int, int> lines[] = {{4 * 16, 32}, {4 * 4, 16}, {4 * 4, 8}, {0, 0}, {0, 0}};
  for (int b = 0; b < 5; ++b) {
    EXPECT_EQ(count(values, fmt::format("b{}.l1_lines", b)), lines[b].first) << b;
    EXPECT_EQ(count(values, fmt::format("b{}.l2_lines", b)), lines[b].second) << b;
    EXPECT_EQ(count(values, fmt::format("b{}.l3_lines", b)), 0) << b;
  }
}

// The same again. 512 vectors add up, 32 are set to 0 and 32 stored; each of the 8 accumulators 64 times. Each buffer
// is a page. Ends: i.0 once, j.0 twice, k 4 times. A is loaded for all lanes at once.
TEST(OnTarget, ChainsPagesAndLoopsByHand) {
  codegen::Target target;
  target.vector_bits = 256;
  target.l1_bytes = 2048;
  target.l2_bytes = 4096;
  const auto values = encoded(codegen::test::tiled, target, on_target());
  const auto expect = [&](const std::string& name, double number) {
    EXPECT_NEAR(test::value(values, name), std::log2(1 + number), 1e-5) << name;
  };
  const auto expect_with_share = [&](const std::string& name, double number) {
    expect(name, number);
    EXPECT_NEAR(test::value(values, name + "_share"), std::log2((1 + number) / (1 + 576)), 1e-5) << name;
  };
  expect_with_share("dependent", 512 / 8);
  expect("dependent_in_memory", 0);
  expect("independent", 8);
  expect_with_share("pages", 3);
  expect_with_share("pages_of_many", 3);
  expect_with_share("exits", 1 + 2 + 4);
  expect_with_share("unforeseen_exits", 0);
  expect_with_share("broadcasts", 256);
  expect_with_share("stores", 32);
  expect("body_vectors", 8);
  expect("body_memory", (512 * (4 + 2) + 32 * 8) / 576.0);
  expect("body_lines", (512 * (4 + 1) + 32 * 4) / 576.0);
  EXPECT_EQ(test::value(values, "l1_crowding"), 0);
  EXPECT_EQ(test::value(values, "l2_crowding"), 0);
  EXPECT_EQ(test::value(values, "l1_crowded_lines"), test::value(values, "l1_lines"));
  EXPECT_EQ(test::value(values, "l2_crowded_lines"), test::value(values, "l2_lines"));
  expect_with_share("l1_written", 4 * 4);
  expect_with_share("l2_written", 16);
  expect_with_share("l3_written", 0);
}

// Accumulators in memory that the innermost loop does not move wait for each other, all of them.
TEST(OnTarget, OneAccumulatorInMemoryIsAChain) {
  const auto values = encoded(codegen::test::matmul, {}, on_target());
  EXPECT_EQ(test::value(values, "target_lanes"), 0);
  EXPECT_EQ(test::value(values, "target_registers"), 4);
  EXPECT_EQ(count(values, "dependent"), 64);
  EXPECT_EQ(count(values, "dependent_in_memory"), 64);
  EXPECT_EQ(count(values, "independent"), 1);
  EXPECT_EQ(count(values, "exits"), 1 + 4 + 8);
  // j inside of k keeps its two accumulators apart.
  const std::string turned =
      codegen::test::replaced(codegen::test::matmul, "    for j 2\n      for k 8", "    for k 8\n      for j 2");
  const auto apart = encoded(turned, {}, on_target());
  EXPECT_EQ(count(apart, "dependent"), 32);
  EXPECT_EQ(count(apart, "independent"), 2);
}

// 64 lines 4 KiB apart, one in each page: all at one place modulo 4 KiB, at 16 modulo 64 KiB. With the
// four lines of B they would fit into the first cache; only one at a time does.
TEST(OnTarget, LinesThatCrowdByHand) {
  codegen::Target target;
  target.l1_bytes = 8192;
  target.l2_bytes = 16384;
  const std::string column =
      "buffer A f32 [64,1024] input\nbuffer B f32 [64] output\nrun\n  for i 64\n    B[i] = A[i,0]\n";
  const auto values = encoded(column, target, on_target());
  EXPECT_EQ(count(values, "l1_lines"), 64 + 4);
  EXPECT_EQ(test::value(values, "l1_crowding"), 6);  // log2 of 64
  EXPECT_EQ(count(values, "l1_crowded_lines"), 64 + 64);
  EXPECT_EQ(test::value(values, "l2_crowding"), 2);
  EXPECT_EQ(count(values, "l2_crowded_lines"), 64 + 4);
  EXPECT_EQ(count(values, "pages"), 64 + 64);  // 65 do not fit into 64
  EXPECT_EQ(count(values, "pages_of_many"), 64 + 1);
  EXPECT_EQ(count(values, "unforeseen_exits"), 1);
}

TEST(OnTarget, CountsEmptyLanesAndSingleElements) {
  using codegen::test::replaced;
  codegen::Target target;
  target.vector_bits = 1024;  // 32 floats, of which the loop fills 16
  auto values = encoded(codegen::test::tiled, target, on_target());
  EXPECT_NEAR(test::value(values, "lanes_lost"), std::log2((256 + 16 + 1) / (128 + 8 + 1.0)), 1e-5);
  EXPECT_EQ(count(values, "registers_wanted"), 4);
  const std::string turned = replaced(replaced(codegen::test::tiled, "C f32 [8,32]", "C f32 [32,8]"),
                                      "C[4*i.0 + i.1,16*j.0 + j.v]", "C[16*j.0 + j.v,4*i.0 + i.1]");
  EXPECT_EQ(count(encoded(turned, target, on_target()), "single_elements"), 8 * 32);
  // Without a target: one lane, 16 registers, no caches.
  const codegen::LoopProgram program = codegen::parse_program(codegen::test::tiled, "p");
  values = test::rows_of(on_target(), on_target().encode({.program = &program})).front();
  EXPECT_EQ(count(values, "registers_wanted"), 64);
  EXPECT_NEAR(test::value(values, "registers_share"), std::log2(65 / 16.0), 1e-5);
  EXPECT_EQ(count(values, "l1_lines"), 0);
}

}  // namespace
}  // namespace graft::features
