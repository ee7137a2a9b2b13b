// Every operator of the table, small, as its plain program and as a sample of its space: machine code against the
// reference.
#include "base/random.h"
#include "codegen/expression/workload.h"
#include "codegen/schedule/candidate.h"
#include "codegen/schedule/lower.h"
#include "codegen/schedule/space.h"
#include "tests/machine/support.h"

namespace graft::codegen {
namespace {

using namespace test;

constexpr const char* workloads[] = {
    "matmul(m=20,n=35,k=24)",
    "matmul(m=16,n=48,k=32,dtype=f64)",
    "matmul(m=9,n=33,k=17,dtype=i32)",
    "input A[9,17] : u8; input B[17,33] : i8; output C[i,j] : i32 += A[i,l] * B[l,j] where i=9, j=33, l=17",
    "matmul(m=9,n=33,k=17,dtype=i8)",
    "input A[50] : u8; input B[50] : i8; output M[i] : u8 = max(A[i] + 200, B[i]); output F[i] = A[i] * 0.5 - B[i];"
    "output L[z] : u8 max= A[i]; output K[z] : i8 min= A[i] where i=50, z=1",
    "dense(m=7,n=40,k=19)",
    "conv2d(c=5,h=9,w=11,k=18,r=3,s=3,stride=2,pad=1)",
    "conv2d_nchwc(c=8,h=7,w=7,k=16,r=3,s=3,pad=1,block=8)",
    "depthwise_conv2d(c=6,h=12,w=20,r=3,s=3,pad=1)",
    "input A[6,50]; M[i] max= A[i,l]; E[i,j] = exp(A[i,j] - M[i]); S[i] += E[i,l]; output Y[i,j] = E[i,j] / S[i] "
    "where i=6, j=50, l=50",
    "input A[40]; output Y[i] = sqrt(A[i] * A[i] + 1) where i=40",
};

TEST(Operators, PlainProgramsComputeTheReference) {
  const Target host = host_target();
  for (const char* text : workloads) {
    SCOPED_TRACE(text);
    const Computation what = computation(parse_workload(text));
    expect_as_reference(naive_program(what), what, host);
  }
}

TEST(Operators, SampledSchedulesComputeTheReference) {
  const Target host = host_target();
  for (const char* text : workloads) {
    const Workload workload = parse_workload(text);
    const Computation what = computation(workload);
    const Space space = derive_space(workload, host);
    base::Stream stream(11, "sampled schedules");
    for (int draw = 0; draw < 8; ++draw) {
      SCOPED_TRACE(std::string(text) + " draw " + std::to_string(draw) + " of seed 11");
      const auto lowered = program(space.sample(stream), host);
      ASSERT_TRUE(lowered.ok()) << lowered.reason().text;
      expect_as_reference(*lowered, what, host);
    }
  }
}

}  // namespace
}  // namespace graft::codegen
