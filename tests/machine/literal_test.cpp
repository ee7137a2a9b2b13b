// Literals in machine code: what they make superfluous is not there.
#include <algorithm>

#include "base/text.h"
#include "codegen/expression/reference.h"
#include "codegen/expression/workload.h"
#include "codegen/schedule/lower.h"
#include "codegen/schedule/restructure.h"
#include "tests/machine/support.h"

namespace graft::codegen {
namespace {

using namespace test;

std::string with(std::string text, std::string_view from, std::string_view to) {
  return text.replace(text.find(from), from.size(), to);
}

// Arithmetic instructions of the IR after the passes of "less": the search leaves common values to instruction
// selection.
int arithmetic_in(const LoopProgram& program) {
  const auto less =
      std::find_if(pipelines().begin(), pipelines().end(), [](const Pipeline& known) { return known.name == "less"; });
  const auto code = listing(program, host_target(), *less);
  EXPECT_TRUE(code.ok());
  int count = 0;
  for (const char* word :
       {" fmul ", " fadd ", " fsub ", " fneg ", "call <8 x float> @llvm.fmuladd", "call float @llvm.fmuladd",
        "call contract <8 x float> @llvm.fmuladd", "call contract float @llvm.fmuladd"})
    for (std::size_t at = code->ir.find(word); at != std::string::npos; at = code->ir.find(word, at + 1)) ++count;
  return count;
}

// y = B' d of F(4x4, 3x3), 8 columns at a time.
std::string transform(const std::string& rows) {
  return R"(buffer D f32 [6,8] input
buffer Y f32 [6,8] output
buffer B f32 [6,6] temporary {4, 0, -5, 0, 1, 0, 0, -4, -4, 1, 1, 0, 0, 4, -4, -1, 1, 0, 0, -2, -1, 2, 1, 0, 0, 2, -1, -2, 1, 0, 0, 4, 0, -5, 0, 1}
buffer t f32 [8] temporary registers
run
  for i 6 )" +
         rows +
         R"(
    for x 8 vector
      t[x] = 0
    for p 6 unrolled
      for x 8 vector
        t[x] += B[i,p] * D[p,x]
    for x 8 vector
      Y[i,x] = t[x]
)";
}

TEST(Literal, AnUnrolledTransformCostsItsNonZeroTerms) {
  expect_right(transform("unrolled"));
  EXPECT_EQ(arithmetic_in(parsed(transform("unrolled"))), 21)
      << "36 products, 14 of them with zero, and 4 * D[1] twice";
}

TEST(Literal, InASerialLoopItIsATable) {
  const LoopProgram program = parsed(transform("serial"));
  expect_right(transform("serial"));
  EXPECT_EQ(arithmetic_in(program), 6);
  EXPECT_EQ(signature(program).parameters.size(), 2u);
  EXPECT_EQ(signature(program).scratch_bytes, 0);
}

TEST(Literal, EveryTypeAndEveryWayOfReadingIt) {
  const std::string text = R"(buffer A TYPE [3,5] input
buffer C TYPE [5] output
buffer E TYPE [3,5] output
buffer S TYPE [3] output
buffer L TYPE [3,5] temporary {0, 1, -1, 2, 3, 1, 0, 0, -2, -1, -7, 1, 1, 0, -1}
run
  for z 5
    C[z] = 2
  for z 3
    S[z] = 0
  for i 3 OUTER
    for j 5 INNER
      C[j] += L[i,j] * A[i,j]
      E[i,j] = A[i,j] * L[i,2] - L[i,j]
      S[i] += L[i,j] * A[i,0]
)";
  for (const char* type : {"f32", "f64", "i32"}) {
    for (const char* outer : {"serial", "unrolled"}) {
      for (const char* inner : {"serial", "unrolled", "vector"}) {
        std::string each = text;
        for (int buffer = 0; buffer < 5; ++buffer) each = with(each, "TYPE", type);
        expect_right(with(with(each, "OUTER", outer), "INNER", inner));
      }
    }
  }
}

// Errors of elements as shares of the bound.
double worst_share(const char* workload, const char* steps_text, int draws) {
  const Computation c = parse_workload(workload).computation();
  Schedule schedule;
  for (const std::string_view line : base::split(steps_text, '\n'))
    if (!line.empty()) schedule.push_back(parse_step(line, "test"));
  const auto program = lower(with_padding_stages(c), schedule, 8);
  if (!program.ok()) ADD_FAILURE() << program.reason().text;
  const auto object = compile(*program, host_target());
  if (!object.ok()) ADD_FAILURE() << object.reason().text;
  const auto library = link_shared({&*object});
  double worst = 0;
  for (int draw = 0; draw < draws; ++draw) {
    const Reference expected = reference(c, std::uint64_t(draw));
    Numbers inputs(program->buffers.size());
    std::vector<std::size_t> tensors;
    for (std::size_t t = 0; t < c.tensors.size(); ++t)
      if (c.tensors[t].role != Role::temporary) tensors.push_back(t);
    for (std::size_t b = 0; b < tensors.size(); ++b) inputs[b] = expected.tensors[tensors[b]].numbers();
    inputs[tensors.size() - 1].assign(inputs[tensors.size() - 1].size(), std::nan(""));
    const Numbers got = executed(*program, *object, *library, inputs);
    const std::size_t t = tensors.back();
    for (std::size_t i = 0; i < expected.tensors[t].size(); ++i) {
      const double allowed = program->amplification *
                             tolerance(c.tensors[t].dtype, expected.reduction_length[t], expected.magnitude[t][i]);
      const double error = std::abs(got[tensors.size() - 1][i] - expected.tensors[t][i]);
      worst = std::isnan(error) ? 1e9 : std::max(worst, error / allowed);
    }
  }
  return worst;
}

TEST(Literal, WinogradInMachineCodeStaysWithinItsBound) {
  for (const char* workload :
       {"conv2d(c=1,h=5,w=6,k=2,r=3,s=3,pad=1)", "conv2d(c=7,h=9,w=10,k=5,r=3,s=3,pad=1)",
        "conv2d_nchwc(c=32,h=7,w=8,k=16,r=3,s=3,pad=1,block=16)", "depthwise_conv2d(c=5,h=9,w=8,r=3,s=3,pad=1)"}) {
    for (const char* steps : {"winograd Y 2\n", "winograd Y 4\n"}) {
      SCOPED_TRACE(std::string(workload) + " " + steps);
      const double share = worst_share(workload, steps, 5);
      EXPECT_LE(share, 1);
      EXPECT_GT(share, 1e-4) << "a bound that lets anything pass";
    }
  }
  EXPECT_LE(worst_share("conv2d(c=20,h=6,w=6,k=3,r=3,s=3,dtype=f64)", "winograd Y 4\n", 5), 1);
}

}  // namespace
}  // namespace graft::codegen
