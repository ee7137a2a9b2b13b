// Schedules that use the shipped intrinsics: what is lowered computes the reference, and what does not fit is refused.
#include <gtest/gtest.h>

#include "codegen/program/forms.h"
#include "codegen/schedule/candidate.h"
#include "codegen/schedule/limits.h"
#include "tests/schedule/support.h"
#include "tests/support/intrinsics.h"
#include "tests/support/programs.h"

namespace graft::codegen {
namespace {

using namespace test;

int tensorized_nests(const LoopProgram& program) {
  int count = 0;
  for (const Loop& loop : program.loops) count += loop.intrinsic >= 0;
  return count;
}

base::Result<LoopProgram> lowered(const std::string& workload, const std::string& schedule,
                                  const std::string& intrinsic) {
  return lower(computed(workload), steps(schedule), 16, shipped(intrinsic));
}

void expect_right(const std::string& workload, const std::string& schedule, const std::string& intrinsic,
                  int least_nests) {
  SCOPED_TRACE(workload);
  const auto program = lowered(workload, schedule, intrinsic);
  ASSERT_TRUE(program.ok()) << program.reason().text;
  check(*program, "lowered");
  EXPECT_LE(worst_excess(computed(workload), *program, 3), 0) << to_text(*program);
  EXPECT_GE(tensorized_nests(*program), least_nests) << to_text(*program);
}

TEST(Tensorize, OuterProductsComputeTheReference) {
  expect_right("matmul(m=8,n=16,k=5)", outer_schedule, "outer_4x4", 1);
  // Remainders of i and j are plain loops, but for j where B has room for them.
  expect_right("matmul(m=10,n=19,k=5)", outer_schedule, "outer_4x4", 2);
  expect_right("matmul(m=10,n=19,k=5)", replaced(outer_schedule, "tensorize", "pack C B above i.0\ntensorize"),
               "outer_4x4", 4);
}

TEST(Tensorize, DotProductsComputeTheReferenceExactly) {
  expect_right(dot_workload(6, 64, 12), dot_schedule, "dot_u8i8", 1);
  expect_right(dot_workload(7, 64, 12), dot_schedule, "dot_u8i8", 2);
  expect_right(dot_workload(6, 77, 12, "input"), dot_schedule, "dot_u8i8", 2);
  expect_right(dot_workload(5, 41, 14), dot_schedule, "dot_u8i8", 2);
  // Without a tile of its own the sum is in memory.
  expect_right(dot_workload(6, 64, 12), replaced(dot_schedule, "accumulate C above l.0\n", ""), "dot_u8i8", 1);
}

TEST(Tensorize, ARemainderRunsWholeWhereAllThatMovesHasRoom) {
  // 9 columns of the last group of 16 are computed as 16; l has a remainder that is not.
  const auto program = lowered(dot_workload(3, 25, 14), dot_schedule, "dot_u8i8");
  ASSERT_TRUE(program.ok()) << program.reason().text;
  const std::string text = to_text(*program);
  EXPECT_TRUE(contains(text, "for j.2 9 vector\n")) << text;  // written back
  EXPECT_FALSE(contains(text, "for j.2 9 unrolled intrinsic")) << text;
  EXPECT_TRUE(contains(text, "for l.1 2 unrolled")) << text;
}

TEST(Tensorize, WhatDoesNotFitIsRefused) {
  const std::string workload = dot_workload(6, 64, 12);
  const std::pair<std::pair<std::string, std::string>, std::string> refusals[] = {
      {{"tile C j 32 16", "tile C j 32 8"}, "tensorize C dot_u8i8 j.2: j.2 runs 8 times, j of dot_u8i8 wants 16"},
      {{"tile C l 4", "tile C l 2"}, "l.1 runs 2 times, l of dot_u8i8 wants 4"},
      {{"pack C B above i.0\n", ""}, "B moves by 1 along j.2, B of dot_u8i8 wants 4"},
      {{"j.2 l.1", "l.1 j.2"}, "1 loops, dot_u8i8 wants 2"},
      {{"dot_u8i8 j.2", "dot_i8i8 j.2"}, "tensorize C dot_i8i8 j.2: there is no such intrinsic"},
      {{"dot_u8i8 j.2", "dot_u8i8 j.3"}, "C has no loop j.3"},
      {{"unroll C i.1 j.1", "unroll C i.1 j.1 l.1"}, "l.1 is already unrolled"},
      {{"accumulate C above l.0", "accumulate C above l.1"}, "accumulates or packs inside of the intrinsic's loops"},
      {{"tensorize C dot_u8i8 j.2", "tensorize C dot_u8i8 j.2\ntensorize C dot_u8i8 j.2"}, "C is already tensorized"},
      {{"tensorize C dot_u8i8 j.2", "tensorize C dot_u8i8 j.2\nvector C l.1"}, "l.1 is already unrolled"},
  };
  for (const auto& [change, words] : refusals) {
    const auto program = lowered(workload, replaced(dot_schedule, change.first, change.second), "dot_u8i8");
    ASSERT_FALSE(program.ok()) << words;
    EXPECT_TRUE(contains(program.reason().text, words)) << program.reason().text << " for " << words;
  }
  const auto floats = lowered("matmul(m=6,n=64,k=12)", dot_schedule, "dot_u8i8");
  ASSERT_FALSE(floats.ok());
  EXPECT_TRUE(contains(floats.reason().text, "C.tile is f32, C of dot_u8i8 wants i32")) << floats.reason().text;
  const std::string swapped = replaced(replaced(workload, ": u8", ": i8"), "B[12,64] : i8", "B[12,64] : u8");
  const auto signs = lowered(swapped, dot_schedule, "dot_u8i8");
  ASSERT_FALSE(signs.ok());
  EXPECT_TRUE(contains(signs.reason().text, "is i8, A of dot_u8i8 wants u8")) << signs.reason().text;
}

TEST(Tensorize, ACandidateCarriesItsIntrinsics) {
  const std::string text =
      "sketch dots\n" + replaced(dot_schedule, "tile C i 3", "tile C i $rows") + to_text(*shipped("dot_u8i8")[0]);
  const auto sketch = std::make_shared<Sketch>(parse_sketch(text, "test"));
  ASSERT_EQ(sketch->intrinsics.size(), 1u);
  EXPECT_EQ(parse_sketch(to_text(*sketch), "again"), *sketch);
  Sketch without = *sketch;
  without.intrinsics.clear();
  EXPECT_FALSE(without == *sketch);
  EXPECT_NE(hash(without), hash(*sketch));
  EXPECT_TRUE(contains(refusal([&] { return parse_sketch(text + to_text(*sketch->intrinsics[0]), "test"); }),
                       "a second intrinsic named 'dot_u8i8'"));

  Target target = target_with(512, 32);
  const Candidate candidate{parse_workload(dot_workload(12, 64, 64)), sketch, {6}};
  const auto found = program(candidate, target);
  ASSERT_TRUE(found.ok()) << found.reason().text;
  EXPECT_EQ(tensorized_nests(*found), 1);
  EXPECT_LE(worst_excess(computation(candidate.workload), *found, 1), 0);
}

TEST(Tensorize, LimitsCountAnIntrinsicAsOneOperationOfItsRegisters) {
  const auto rows = [](int count) {
    const auto program = lowered(dot_workload(48, 64, 64),
                                 replaced(dot_schedule, "tile C i 3", "tile C i " + std::to_string(count)), "dot_u8i8");
    EXPECT_TRUE(program.ok());
    return beyond_limits(*program, target_with(512, 32));
  };
  EXPECT_FALSE(rows(12).has_value());  // 24 accumulators, 2 of B and one
  ASSERT_TRUE(rows(16).has_value());
  EXPECT_TRUE(contains(rows(16)->text, "32 accumulators, 2 operands and 1 exceed 32 registers")) << rows(16)->text;
}

}  // namespace
}  // namespace graft::codegen
