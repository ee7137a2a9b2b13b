#include "codegen/schedule/recognise.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "codegen/schedule/candidate_program.h"
#include "codegen/schedule/rules.h"
#include "tests/schedule/support.h"
#include "tests/support/judged_space.h"

namespace graft::codegen {
namespace {

using namespace test;
using Numbers = std::vector<std::int64_t>;

// Every point of every sketch, of spaces with all kinds of steps, is found again by its steps.
TEST(Recognised, EveryPointOfASpaceByItsSteps) {
  base::Stream stream(1, "recognised");
  for (const char* text : {"matmul(m=64,n=48,k=36)", "conv2d(c=16,h=14,w=14,k=32,r=3,s=3,pad=1)", "softmax(m=32,n=100)",
                           "depthwise_conv2d(c=16,h=14,w=14,r=3,s=3,pad=1)", "dense(m=24,n=64,k=32)",
                           "conv2d_nchwc(c=32,h=9,w=9,k=32,r=3,s=3,pad=1)"}) {
    for (const std::int64_t threads : {1, 4}) {
      Target target = target_with(256, 16);
      target.threads = threads;
      const JudgedSpace space = judged_space(parse_workload(text), target, {}, Layouts::free);
      for (int i = 0; i < 60; ++i) {
        const Candidate candidate = space.sample(stream);
        const auto steps = schedule(candidate);
        const auto found = recognised(*steps, space);
        ASSERT_TRUE(found.ok()) << found.reason().text << "\n" << to_text(*steps);
        EXPECT_EQ(*schedule(*found), *steps);
        EXPECT_TRUE(*found->sketch == *candidate.sketch) << found->sketch->name << " " << candidate.sketch->name;
        EXPECT_EQ(found->arguments, candidate.arguments) << to_text(*steps);
        EXPECT_EQ(hash(*found), hash(candidate));
      }
    }
  }
}

Sketch sketch() {
  return parse_sketch(
      "sketch s\n$first{unroll C k.0|}\ntile C i $a $b\nlayout B $d / $n 0 $d % $n\norder C $o{i.0 j.0|j.0 i.0} k.0 "
      "$b2{i.1|}\n"
      "$packing{pack C B above k.0|}\n",
      "test");
}

TEST(Recognised, ArgumentsOfASketch) {
  const auto of = [](const char* text) { return recognised(steps(text), sketch()); };
  const char* const whole =
      "unroll C k.0\ntile C i 24 6\nlayout B 1/16 0 1%16\norder C j.0 i.0 k.0\npack C B above k.0\n";
  ASSERT_TRUE(of(whole).ok()) << of(whole).reason().text;
  EXPECT_EQ(*of(whole), (Numbers{0, 24, 6, 1, 16, 1, 1, 0}));
  const char* const least = "tile C i 24 6\nlayout B 1/16 0 1%16\norder C i.0 j.0 k.0 i.1\n";
  ASSERT_TRUE(of(least).ok()) << of(least).reason().text;
  EXPECT_EQ(*of(least), (Numbers{1, 24, 6, 1, 16, 0, 0, 1}));
}

TEST(Recognised, SaysWhichStepNoLineGives) {
  const auto reason = [](const char* text) { return recognised(steps(text), sketch()).reason().text; };
  EXPECT_EQ(reason("tile C j 24 6\n"), "sketch s: no line of it gives 'tile C j 24 6'");
  // Two places of one argument differ.
  EXPECT_EQ(reason("tile C i 24 6\nlayout B 1/16 0 1%8\norder C i.0 j.0 k.0 i.1\n"),
            "sketch s: no line of it gives 'layout B 1/16 0 1%8'");
  EXPECT_EQ(reason("tile C i 24 6\nlayout B 1/16 0 1%16\n"), "sketch s: it has further steps");
  EXPECT_EQ(reason("tile C i 24 6\nlayout B 1/16 0 1%16\norder C i.0 j.0 k.0 i.1\nvector C j.0\n"),
            "sketch s: no line of it gives 'vector C j.0'");
}

TEST(Recognised, NothingInTablesAndPrograms) {
  const JudgedSpace space(
      parse_workload("matmul(m=4,n=4,k=4)"), target_with(256, 16),
      {{std::make_shared<const Sketch>(Sketch::of_columns("t", {{"a", {}}})), {{"a", {0}, {{1}, {2}}}}}});
  EXPECT_FALSE(recognised(steps("tile C i 2\n"), space).ok());
}

}  // namespace
}  // namespace graft::codegen
