#include "codegen/schedule/relayout.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "codegen/program/forms.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/schedule/restructure.h"
#include "codegen/schedule/rules.h"
#include "tests/schedule/support.h"
#include "tests/support/judged_space.h"

namespace graft::codegen {
namespace {

using namespace test;
using Shape = std::vector<std::int64_t>;

const char* const blocked_convolution =
    "layout X 0 1/4 2 3 1%4\n"
    "layout P 0 1/4 2 3 1%4\n"
    "layout W 0/4 1/4 2 3 1%4 0%4\n"
    "layout Y 0 1/4 2 3 1%4\n";

// Stored in blocks, a convolution has the stages of the operator that is in blocks from the start.
TEST(Relayout, BlocksMakeTheBlockedOperator) {
  const Computation plain = computed("conv2d(c=8,h=6,w=5,k=12,r=3,s=3,pad=1)");
  const Computation blocks = computed("conv2d_nchwc(c=8,h=6,w=5,k=12,r=3,s=3,pad=1,block=4)");
  const auto changed = restructured(plain, steps(blocked_convolution));
  ASSERT_TRUE(changed.ok()) << changed.reason().text;
  const Computation& form = changed->computation;
  for (const char* name : {"X", "P", "W", "Y"}) {
    EXPECT_EQ(form.tensors[std::size_t(form.tensor_named(name))].shape,
              blocks.tensors[std::size_t(blocks.tensor_named(name))].shape)
        << name;
  }
  for (std::size_t s = 0; s < form.stages.size(); ++s) {
    EXPECT_TRUE(form.stages[s].index.empty()) << s;
    EXPECT_EQ(form.spatial_axes(form.stages[s]), blocks.spatial_axes(blocks.stages[s])) << s;
  }
  for (const char* more :
       {"", "absorb Y P\n", "absorb Y P\norder Y b.0 o.0 y.0 i.0 i_1.0 u.0 v.0 x.0 o_1.0\nvector Y o_1.0\n"}) {
    const auto program = lower(plain, steps(std::string(blocked_convolution) + more), 4);
    ASSERT_TRUE(program.ok()) << more << program.reason().text;
    EXPECT_LE(worst_excess(plain, *program, 1), 0) << more;
    EXPECT_EQ(to_text(program->buffers[0].layout), "0 1/4 2 3 1%4");
    EXPECT_NO_THROW(check(*program, "here"));
    EXPECT_TRUE(parse_program(to_text(*program), "again") == *program) << to_text(*program);
  }
}

TEST(Relayout, AnyTensorAloneKeepsTheResult) {
  const std::pair<const char*, const char*> all[] = {
      {"matmul(m=8,n=12,k=6)", "layout A 1 0"},
      {"matmul(m=8,n=12,k=6)", "layout C 1/4 0 1%4"},
      {"matmul(m=8,n=12,k=6)", "layout A 0/4 1/2 0%4/2 1%2 0%2\nlayout B 1/4 0/2 0%2 1%4"},
      {"conv2d(c=8,h=6,w=5,k=12,r=3,s=3,pad=1)", "layout X 0 1/4 2 3 1%4"},
      {"conv2d(c=8,h=6,w=5,k=12,r=3,s=3,pad=1)", "layout X 0 1/4 2 3 1%4\nlayout P 0 2 3 1"},
      {"conv2d(c=8,h=6,w=5,k=12,r=3,s=3,pad=1)", "layout Y 0 2 3 1"},
      {"depthwise_conv2d(c=8,h=9,w=9,r=3,s=3,stride=2,pad=1)", "layout Y 0 1/4 2 3 1%4\nlayout W 1 2 0"},
      {"dense(m=4,n=6,k=5)", "layout T 1/2 0 1%2\nlayout Y 1 0"},
      {"input A[9]; output S[] += A[i] where i=9", "layout A 0/3 0%3"},
  };
  for (const auto& [workload, text] : all) {
    const Computation c = computed(workload);
    const auto program = lower(c, steps(text), 4);
    ASSERT_TRUE(program.ok()) << text << ": " << program.reason().text;
    EXPECT_LE(worst_excess(c, *program, 2), 0) << workload << "\n" << text << "\n" << to_text(*program);
    EXPECT_NE(hash(*program), hash(*lower(c, {}, 4)));
  }
}

// Blocks of one element and of all elements have the same axes as any other.
TEST(Relayout, BlockMakesAnAxisForEveryPart) {
  const Computation c = computed("conv2d(c=8,h=6,w=5,k=12,r=3,s=3,pad=1)");
  for (const char* in : {"1", "2", "8"}) {
    for (const char* out : {"1", "3", "12"}) {
      const std::string text = fmt::format(
          "block X 0 1/{0} 2 3 1%{0}\nblock P 0 1/{0} 2 3 1%{0}\nblock W 0/{1} 1/{0} 2 3 1%{0} 0%{1}\n"
          "block Y 0 1/{1} 2 3 1%{1}\norder Y b.0 o.0 y.0 i.0 i_1.0 u.0 v.0 x.0 o_1.0\nvector Y o_1.0\n"
          "order P b.0 i.0 p.0 q.0 i_1.0\n",
          in, out);
      const auto program = lower(c, steps(text), 1);
      ASSERT_TRUE(program.ok()) << text << program.reason().text;
      EXPECT_LE(worst_excess(c, *program, 1), 0) << text;
      EXPECT_EQ(program->buffers[0].shape.back(), std::stoll(in)) << text;
      EXPECT_EQ(program->buffers[2].shape.back(), std::stoll(out)) << text;
      EXPECT_TRUE(parse_program(to_text(*program), "again") == *program) << to_text(*program);
    }
  }
}

TEST(Relayout, WhatDoesNotApplyHasAReason) {
  const Computation c = computed("conv2d(c=8,h=8,w=8,k=12,r=3,s=3,pad=1)");
  const std::pair<const char*, const char*> refusals[] = {
      {"layout Q 0 1", "there is no tensor Q"},
      {"layout X 0 1 2", "dimension 3 is missing"},
      {"layout X 0 1/3 2 3 1%3", "3 does not divide 8"},
      {"layout X 0 1 3 2\nlayout X 0 1 2 3", "already has a layout"},
      {"layout P 0 1 2/5 3 2%5", "Y does not index it by whole axes"},
      {"layout X 0 1/2 2 3 1%2\nlayout P 0 1/4 2 3 1%4", "P does not index it by whole axes"},
      {"layout X 0 1/2 2 3 1%2\nabsorb Y P", "P is stored in another order than it is computed"},
  };
  for (const auto& [text, words] : refusals) {
    const auto changed = restructured(c, steps(text));
    ASSERT_FALSE(changed.ok()) << text;
    EXPECT_TRUE(contains(changed.reason().text, words)) << changed.reason().text;
  }
}

TEST(Relayout, FreeLayoutsAddSketchesThatComputeTheReference) {
  for (const char* text : {"conv2d(c=16,h=6,w=5,k=16,r=3,s=3,pad=1)", "matmul(m=16,n=24,k=16)",
                           "depthwise_conv2d(c=16,h=6,w=7,r=3,s=3,pad=1)"}) {
    const Workload workload = parse_workload(text);
    const Target target = target_with(256, 16);
    const JudgedSpace given = judged_space(workload, target), free = judged_space(workload, target, {}, Layouts::free);
    ASSERT_GT(free.sketches().size(), given.sketches().size()) << text;
    for (std::size_t s = 0; s < given.sketches().size(); ++s)
      EXPECT_TRUE(*given.sketches()[s].sketch == *free.sketches()[s].sketch) << "nothing else changes";
    const std::vector<SketchSpace> added(free.sketches().begin() + std::ptrdiff_t(given.sketches().size()),
                                         free.sketches().end());
    const JudgedSpace blocked(workload, target, added);
    base::Stream stream(3, "relayout");
    for (int i = 0; i < 8; ++i) {
      const Candidate candidate = blocked.sample(stream);
      EXPECT_TRUE(candidate.sketch->name.find("_blocked_") != std::string::npos);
      const auto made = program(candidate, target);
      ASSERT_TRUE(made.ok()) << made.reason().text;
      EXPECT_LE(worst_excess(workload.computation(), *made, 1), 0) << to_text(*schedule(candidate));
    }
  }
}

}  // namespace
}  // namespace graft::codegen
