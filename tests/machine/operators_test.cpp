// Every operator of the table, small, as its plain program and as a sample of its space: machine code against the
// reference.
#include "tests/machine/operators.h"

#include "base/random.h"
#include "base/text.h"
#include "codegen/expression/workload.h"
#include "codegen/machine/dispatch.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/schedule/lower.h"
#include "codegen/space/candidate.h"
#include "codegen/space/space.h"
#include "tests/machine/support.h"
#include "tests/support/judged_space.h"

namespace graft::codegen {
namespace {

using namespace test;

TEST(Operators, PlainProgramsComputeTheReference) {
  const Target host = host_target();
  for (const char* text : workloads) {
    SCOPED_TRACE(text);
    const Computation what = parse_workload(text).computation();
    expect_as_reference(naive_program(what), what, host);
  }
}

TEST(Operators, SampledSchedulesComputeTheReference) {
  const Target host = host_target();
  for (const char* text : workloads) {
    const Workload workload = parse_workload(text);
    const Computation what = workload.computation();
    const JudgedSpace space = judged_space(workload, host);
    base::Stream stream(11, "sampled schedules");
    for (int draw = 0; draw < 8; ++draw) {
      SCOPED_TRACE(std::string(text) + " draw " + std::to_string(draw) + " of seed 11");
      const auto lowered = program(space.sample(stream), host);
      ASSERT_TRUE(lowered.ok()) << lowered.reason().text;
      expect_as_reference(*lowered, what, host);
    }
  }
}

// Large enough for fills, copies, packs and epilogues to run in parallel, too; with and without remainders.
TEST(Operators, SampledSchedulesComputeTheReferenceOnThreads) {
  Target target = host_target();
  for (const char* text :
       {"matmul(m=16,n=130,k=131)", "dense(m=133,n=130,k=9)", "conv2d(c=16,h=34,w=33,k=10,r=3,s=3,pad=1)",
        "conv2d_nchwc(c=16,h=34,w=34,k=16,r=3,s=3,pad=1,block=16)", "depthwise_conv2d(c=20,h=30,w=31,r=3,s=3,pad=1)",
        "input A[150,170]; M[i] max= A[i,l]; output Y[i,j] = exp(A[i,j] - M[i]) where i=150, j=170, l=170"}) {
    const Workload workload = parse_workload(text);
    const Computation what = workload.computation();
    for (target.threads = 2; target.threads < 4; ++target.threads) {
      const JudgedSpace space = judged_space(workload, target);
      base::Stream stream(12, "sampled schedules");
      for (int draw = 0; draw < 4; ++draw) {
        SCOPED_TRACE(std::string(text) + " draw " + std::to_string(draw) + " of seed 12");
        const auto lowered = program(space.sample(stream), target);
        ASSERT_TRUE(lowered.ok()) << lowered.reason().text;
        expect_as_reference(*lowered, what, target);
      }
    }
  }
}

// The border of padding, remainders of tiles, a producer computed in tiles: all of one stage is one group of tasks.
TEST(Operators, ParallelLoopsOverBordersAndRemaindersAreOneGroup) {
  const Computation what = parse_workload("conv2d_nchwc(c=4,h=7,w=8,k=8,r=3,s=3,pad=1,block=4)").computation();
  Target target = host_target();
  target.threads = 3;
  const std::string outer = "tile Y x 3\ntile Y y 2\norder Y o.0 y.0 x.0 i.0 u.0 v.0 d.0 y.1 x.1 e.0\n",
                    inner = "parallel Y x.0 o.0 y.0\nvector Y e.0\naccumulate Y above i.0\n";
  for (const std::string& text : {"absorb Y P\n" + outer + inner, outer + "compute Y P above i.0\n" + inner}) {
    SCOPED_TRACE(text);
    Schedule schedule;
    for (const std::string_view line : base::split(text, '\n'))
      if (!line.empty()) schedule.push_back(parse_step(line, "test"));
    const auto program = lower(with_padding_stages(what), schedule, 4, target.threads);
    ASSERT_TRUE(program.ok()) << program.reason().text;
    const Dispatch tasks = dispatch(*program, target.threads);
    ASSERT_FALSE(tasks.refused) << tasks.refused->text;
    EXPECT_GE(tasks.sections.size(), 4u);
    EXPECT_EQ(tasks.groups.size(), 1u) << to_text(*program);
    EXPECT_EQ(tasks.groups[0].tasks, 2 * 4 * 3);
    expect_as_reference(*program, what, target);
  }
}

}  // namespace
}  // namespace graft::codegen
