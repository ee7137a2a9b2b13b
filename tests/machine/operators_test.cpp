// Every operator of the table, small, as its plain program and as a sample of its space: machine code against the
// reference.
#include "base/random.h"
#include "codegen/expression/reference.h"
#include "codegen/expression/workload.h"
#include "codegen/schedule/candidate.h"
#include "codegen/schedule/lower.h"
#include "codegen/schedule/space.h"
#include "tests/machine/support.h"

namespace graft::codegen {
namespace {

using namespace test;

void expect_as_reference(const LoopProgram& program, const Computation& what, const Target& target) {
  const Reference expected = reference(what, 5);
  const auto object = compile(program, target);
  ASSERT_TRUE(object.ok()) << object.reason().text << "\n" << to_text(program);
  const auto library = link_shared({&*object});
  ASSERT_TRUE(library.ok()) << library.reason().text;
  // The program's first buffers are the computation's tensors but for its temporaries.
  std::vector<std::size_t> tensors;
  for (std::size_t t = 0; t < what.tensors.size(); ++t)
    if (what.tensors[t].role != Role::temporary) tensors.push_back(t);
  Numbers inputs(program.buffers.size());
  for (std::size_t b = 0; b < tensors.size(); ++b) {
    inputs[b] = expected.tensors[tensors[b]];
    if (what.tensors[tensors[b]].role == Role::output) inputs[b].assign(inputs[b].size(), 77);
  }
  const Numbers got = executed(program, *object, *library, inputs);
  for (std::size_t b = 0; b < tensors.size(); ++b) {
    const std::size_t t = tensors[b];
    if (what.tensors[t].role != Role::output) continue;
    for (std::size_t i = 0; i < got[b].size(); ++i)
      ASSERT_LE(std::abs(got[b][i] - expected.tensors[t][i]),
                tolerance(what.tensors[t].dtype, expected.reduction_length[t], expected.magnitude[t][i]))
          << what.tensors[t].name << "[" << i << "]\n"
          << to_text(program);
  }
}

constexpr const char* workloads[] = {
    "matmul(m=20,n=35,k=24)",
    "matmul(m=16,n=48,k=32,dtype=f64)",
    "matmul(m=9,n=33,k=17,dtype=i32)",
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
