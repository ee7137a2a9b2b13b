// Schedules that use the shipped intrinsics: what is lowered computes the reference, and what does not fit is refused.
#include <gtest/gtest.h>

#include "codegen/program/forms.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/schedule/template.h"
#include "codegen/space/candidate.h"
#include "codegen/space/space.h"
#include "tests/schedule/support.h"
#include "tests/support/intrinsics.h"
#include "tests/support/judged_space.h"
#include "tests/support/limits.h"
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
  return lower(computed(workload), steps(schedule), 16, 1, {}, shipped(intrinsic));
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

TEST(Tensorize, DerivedSketchesRunInParallel) {
  Target target = target_with(512, 32);
  target.threads = 2;
  const JudgedSpace space = judged_space(parse_workload("matmul(m=32,n=32,k=16)"), target, shipped("outer_4x4"));
  bool found = false;
  for (const SketchSpace& part : space.sketches()) {
    if (part.sketch->intrinsics.empty()) continue;
    found = true;
    EXPECT_TRUE(contains(to_text(*part.sketch), "\nparallel C ")) << to_text(*part.sketch);
    const JudgedSpace alone(space.workload(), target, {part});
    base::Stream stream(1, "tensorize");
    for (int i = 0; i < 4; ++i) {
      const auto made = program(alone.sample(stream), target);
      ASSERT_TRUE(made.ok()) << made.reason().text;
      EXPECT_LE(worst_excess(computed("matmul(m=32,n=32,k=16)"), *made, 1), 0);
    }
  }
  EXPECT_TRUE(found);
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
      {{"accumulate C above l.0", "accumulate C above l.1"},
       "accumulates, packs or computes inside of the intrinsic's loops"},
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
  const Sketch without(sketch->name, sketch->arguments, sketch->lines);
  EXPECT_FALSE(without == *sketch);
  EXPECT_NE(hash(without), hash(*sketch));
  EXPECT_TRUE(contains(refusal([&] { return parse_sketch(text + to_text(*sketch->intrinsics[0]), "test"); }),
                       "a second intrinsic named 'dot_u8i8'"));

  Target target = target_with(512, 32);
  const Candidate candidate{parse_workload(dot_workload(12, 64, 64)), sketch, {6}};
  const auto found = program(candidate, target);
  ASSERT_TRUE(found.ok()) << found.reason().text;
  EXPECT_EQ(tensorized_nests(*found), 1);
  EXPECT_LE(worst_excess(candidate.workload.computation(), *found, 1), 0);
}

TEST(Tensorize, AUsersSpaceMayHoldIntrinsics) {
  const Workload workload = parse_workload(dot_workload(12, 64, 64));
  const std::string text = "sketch dots\n" + replaced(dot_schedule, "tile C i 3", "tile C i $rows") +
                           to_text(*shipped("dot_u8i8")[0]) + "domain rows = 2 4\n";
  const Target target = target_with(512, 32);
  const JudgedSpace space = judged_space(text, "test", workload, target);
  ASSERT_EQ(space.sketches().size(), 1u);
  EXPECT_EQ(space.sketches()[0].sketch->intrinsics.size(), 1u);
  base::Stream stream(1, "intrinsics");
  const auto found = program(space.sample(stream), target);
  ASSERT_TRUE(found.ok()) << found.reason().text;
  EXPECT_EQ(tensorized_nests(*found), 1);
  // Lines of the intrinsic are counted where later ones are refused.
  const std::string wrong =
      refusal([&] { return parse_space(text + "domain colums = 2\n", "test", workload, target); });
  const auto lines = std::count(text.begin(), text.end(), '\n') + 1;
  EXPECT_EQ(wrong.rfind("test:" + std::to_string(lines) + ":", 0), 0u) << wrong;
}

TEST(Tensorize, LimitsCountAnIntrinsicAsOneOperationOfItsRegisters) {
  const auto rows = [](int count) {
    const auto program = lowered(dot_workload(48, 64, 64),
                                 replaced(dot_schedule, "tile C i 3", "tile C i " + std::to_string(count)), "dot_u8i8");
    EXPECT_TRUE(program.ok());
    return beyond_limits(*program, target_with(512, 32));
  };
  EXPECT_FALSE(rows(12).has_value());  // 24 accumulators, two vectors of B and one of A
  ASSERT_TRUE(rows(16).has_value());
  EXPECT_TRUE(contains(rows(16)->text, "32 accumulators and 3 operands exceed 32 registers")) << rows(16)->text;
}

// Start values of a 4x4 tile are four stores of four lanes, its sums one register: those are not counted before these.
TEST(Tensorize, StoreByStoreTheVerdictIsThatOfTheWholeProgram) {
  const Computation computation = computed("matmul(m=64,n=64,k=5)");
  for (const int registers : {4, 8, 16, 32}) {
    const Target target = target_with(512, registers);
    for (const int columns : {4, 8, 16, 32, 64}) {
      const Schedule schedule = steps(replaced(outer_schedule, "8 4", std::to_string(columns) + " 4"));
      const auto whole = lower(computation, schedule, 16, 1, {}, shipped("outer_4x4"));
      ASSERT_TRUE(whole.ok()) << whole.reason().text;
      LimitCounter counter(target);
      const StoreWatch watch = [&](const LoopProgram& program, const Store& store, std::span<const int> loops) {
        return counter.add(program, store, loops);
      };
      const auto watched = lower(computation, schedule, 16, 1, watch, shipped("outer_4x4"));
      const auto reason = beyond_limits(*whole, target);
      ASSERT_EQ(watched.ok(), !reason) << columns << " on " << registers;
      EXPECT_EQ(watched.ok() ? to_text(*watched) : watched.reason().text, reason ? reason->text : to_text(*whole));
      if (registers == 8) {
        EXPECT_EQ(watched.ok(), columns <= 16) << columns;
      }
    }
  }
}

TEST(Tensorize, TheSpaceHoldsEveryWayInWhichAStageHoldsAnIntrinsic) {
  const auto names = [](const std::string& workload, const std::string& intrinsic) {
    std::vector<std::string> result;
    const JudgedSpace space = judged_space(parse_workload(workload), target_with(512, 32), shipped(intrinsic));
    for (const SketchSpace& sketch : space.sketches()) {
      if (!sketch.sketch->intrinsics.empty()) result.push_back(sketch.sketch->name);
    }
    return result;
  };
  const auto dot = [&](const std::string& workload) { return names(workload, "dot_u8i8"); };
  EXPECT_EQ(dot(dot_workload(64, 64, 64)), std::vector<std::string>{"C_dot_u8i8_j_l"});
  EXPECT_EQ(dot(dot_workload(64, 15, 64)), std::vector<std::string>{});  // no 16 columns
  EXPECT_EQ(dot("matmul(m=64,n=64,k=64)"), std::vector<std::string>{});
  EXPECT_EQ(dot(replaced(dot_workload(64, 64, 64), "B[l,j]", "B[l,j] * 2")), std::vector<std::string>{});
  EXPECT_EQ(names("matmul(m=64,n=64,k=64)", "outer_4x4"),
            (std::vector<std::string>{"C_outer_4x4_i_j", "C_outer_4x4_j_i"}));
  EXPECT_TRUE(judged_space(parse_workload("matmul(m=64,n=64,k=64)"), target_with(512, 32))
                  .sketches()[0]
                  .sketch->intrinsics.empty());
}

TEST(Tensorize, SamplesOfTheSpaceComputeTheReference) {
  const std::pair<std::string, std::string> cases[] = {
      {dot_workload(7, 45, 24), "dot_u8i8"},
      {dot_workload(13, 64, 18, "input"), "dot_u8i8"},
      {"matmul(m=13,n=24,k=6)", "outer_4x4"},
      {"dense(m=9,n=20,k=7)", "outer_4x4"},
      {"conv2d(c=3,h=7,w=8,k=8,r=3,s=3)", "outer_4x4"},
      {"input X[9,9,8] : u8; constant W[32,3,3,8] : i8; output Y[y,x,o] : i32 += X[y + u,x + v,i] * W[o,u,v,i] "
       "where y=7, x=7, o=32, u=3, v=3, i=8",
       "dot_u8i8"},
  };
  for (const auto& [text, intrinsic] : cases) {
    const Workload workload = parse_workload(text);
    const Target target = target_with(512, 32);
    const JudgedSpace all = judged_space(workload, target, shipped(intrinsic));
    std::vector<SketchSpace> with;
    for (const SketchSpace& sketch : all.sketches())
      if (!sketch.sketch->intrinsics.empty()) with.push_back(sketch);
    ASSERT_FALSE(with.empty()) << text;
    const JudgedSpace space(workload, target, with);
    base::Stream stream(5, "tensorized samples");
    int nests = 0;
    for (int draw = 0; draw < 12; ++draw) {
      SCOPED_TRACE(text + " draw " + std::to_string(draw) + " of seed 5");
      const Candidate candidate = space.sample(stream);
      const auto found = program(candidate, target);
      ASSERT_TRUE(found.ok()) << found.reason().text;
      check(*found, "sample");
      nests += tensorized_nests(*found);
      EXPECT_LE(worst_excess(workload.computation(), *found, 2), 0) << to_text(schedule(candidate).value());
    }
    EXPECT_GT(nests, 0) << text;
  }
}

}  // namespace
}  // namespace graft::codegen
