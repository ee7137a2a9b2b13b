// Operations on integers, conversions, positions and gathers as machine code: against the reference with operands at
// the edges of their types, by plain programs and by random schedules, and as code for every kind of processor.
#include <limits>

#include "base/random.h"
#include "codegen/expression/workload.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/schedule/lower.h"
#include "codegen/space/candidate.h"
#include "codegen/space/space.h"
#include "tests/machine/support.h"
#include "tests/support/judged_space.h"

namespace graft::codegen {
namespace {

using namespace test;

const char* const texts[] = {
    "input A[37] : i32; output B[i] : i8 = max(min(A[i], 127), -128) where i=37",
    "input A[37] : i32; input D[37] : i32; output B[i] : i32 = A[i] / D[i] + A[i] % D[i] where i=37",
    "input A[37] : i8; input D[37] : i8; output B[i] : i8 = A[i] / D[i] + A[i] % D[i] where i=37",
    "input A[37] : u8; input D[37] : u8; output B[i] : u8 = A[i] / D[i] + A[i] % D[i] where i=37",
    "input A[37] : i32; output B[i] : i32 = A[i] / 7 + A[i] % 8 - A[i] / -4 + A[i] / 16 where i=37",
    "input A[37] : i32; input D[37] : i32; output B[i] : i32 = (A[i] >> D[i]) + (A[i] << 3) - (A[i] >> 2) where i=37",
    "input A[37] : u8; output B[i] : u8 = (A[i] >> 3) + (A[i] << 1) where i=37",
    "input A[37] : i32; input D[37] : i32; output B[i] : i32 = bit_and(A[i], D[i]) - bit_or(A[i], 5) where i=37",
    "input A[37] : i64; input D[37] : i64; output B[i] : i64 = bit_xor(A[i], D[i]) where i=37",
    "input A[37] : u8; input D[37] : u8; output B[i] : u8 = bit_xor(bit_and(A[i], 60), bit_or(D[i], 3)) where i=37",
    "input A[37]; output B[i] : i8 = saturate_i8(round(A[i])) where i=37",
    "input A[37]; output B[i] : u8 = A[i] where i=37",
    "input A[37] : f64; output B[i] : i32 = floor(A[i]) where i=37",
    "input A[37] : i32; output B[i] : u8 = saturate_u8(A[i]) where i=37",
    "input A[37] : i8; output B[i] : u8 = saturate_u8(A[i]) where i=37",
    "input A[37] : i64; output B[i] : f64 = cast_f64(A[i]) * 0.5 where i=37",
    "input A[37] : i64; input D[37] : i32; output B[i] : i64 = A[i] * 3 + D[i] where i=37",
    "input A[37] : i64; output B[z] : i64 min= A[l]; output C[z] : i64 max= A[l] where l=37, z=1",
    "input A[37] : u8; input D[37] : i8; output B[] : i32 += A[l] * D[l] where l=37",
    "input A[19,37]; output B[i,j] = select(j <= i, A[i,j], i - j) where i=19, j=37",
    "input A[40,40]; input X[40,24]; output B[i,j] += select(l <= i, A[i,l] * X[l,j], 0) where i=40, j=24, l=40",
    "input T[21] : i32; input X[9,37]; output B[i,j] = X[T[i],j] where i=21, j=37",
    "input T[21] : u8; input X[37,9]; output B[i,j] = pad(X[i,T[j]], -1) where i=37, j=21",
    "input T[21,5] : i64; constant E[9,32]; output B[i,j] += E[T[i,l],j] where i=21, j=32, l=5",
    "input X[5,37]; output B[i,j] = X[i % 5,j / 2] where i=21, j=74",
    "input X[16,16]; M[i,j] = 2 * X[i,j]; output B[i,j] = M[(i + 3) % 16,j] + i where i=16, j=16",
    "input X[32,48]; input W[48,64]; T[i,j] += X[i,l] * W[l,j]; output B[i,j] : i32 = round(T[i,j] * 8) + j"
    "  where i=32, j=64, l=48",
    "input X[64,8,9]; output Y[2*y + a,2*x + b,c] = 3*X[32*a + 16*b + c,y,x] where y=8, a=2, x=9, b=2, c=16",
    "transposed_conv2d(c=8,h=9,w=7,k=12,r=3,s=3,stride=2,pad=1,output_padding=1)",
    "transposed_conv2d(c=8,h=5,w=6,k=12,r=3,s=2,stride=2,groups=2,dilation=2)",
};

// Operands of any size, and the edges of their types.
std::vector<double> operand_of(const Tensor& tensor, base::Stream& stream) {
  std::vector<double> edges = {0, 1, -1, 2, 7};
  if (is_floating(tensor.dtype)) {
    for (const double v : {0.5, 1.5, -2.5, 126.5, 300.0, -300.0, 1e20, -1e20, 2147483648.0, double(NAN)})
      edges.push_back(v);
  } else {
    edges = {0, 1, 2, lowest(tensor.dtype), highest(tensor.dtype), lowest(tensor.dtype) + 1};
    if (is_signed(tensor.dtype)) edges.push_back(-1);
    if (tensor.dtype == DType::i64) edges = {0, 1, -1, 1e15, -1e15, 8, 9};  // exact in double
  }
  std::vector<double> values;
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    const bool edge = i < 2 * std::int64_t(edges.size()) && tensor.elements() < 100;
    const double number = double(stream.below(2001) - 1000) / (is_floating(tensor.dtype) ? 8 : 1);
    values.push_back(edge ? edges[std::size_t(stream.below(std::int64_t(edges.size())))] : kept(number, tensor.dtype));
  }
  return values;
}

TEST(Values, machine_code_gives_what_the_reference_gives) {
  const Target host = host_target();
  for (const char* const text : texts) {
    SCOPED_TRACE(text);
    const Workload workload = parse_workload(text);
    const Computation what = workload.computation();
    const JudgedSpace space = judged_space(workload, host);
    base::Stream stream(3, text);
    for (int draw = 0; draw < 6; ++draw) {
      std::vector<Elements> operands;
      for (const Tensor& tensor : what.tensors) {
        const bool given = tensor.role == Role::input || tensor.role == Role::constant;
        operands.push_back(given ? Elements(operand_of(tensor, stream)) : Elements());
      }
      const auto lowered =
          draw == 0 ? base::Result<LoopProgram>(naive_program(what)) : program(space.sample(stream), host);
      ASSERT_TRUE(lowered.ok()) << lowered.reason().text;
      // Both forms of a program read back as the same program.
      EXPECT_EQ(hash(parse_program(to_text(*lowered), "again")), hash(*lowered)) << to_text(*lowered);
      EXPECT_EQ(hash(program_from(to_document(*lowered))), hash(*lowered));
      const Reference expected = reference(what, operands);
      const auto object = compile(*lowered, host);
      ASSERT_TRUE(object.ok()) << object.reason().text << "\n" << to_text(*lowered);
      const auto library = link_shared({&*object});
      ASSERT_TRUE(library.ok()) << library.reason().text;
      Numbers inputs(lowered->buffers.size());
      std::vector<std::size_t> tensors;
      for (std::size_t t = 0; t < what.tensors.size(); ++t) {
        if (what.tensors[t].role == Role::temporary) continue;
        inputs[tensors.size()] = what.tensors[t].role == Role::output
                                     ? std::vector<double>(std::size_t(what.tensors[t].elements()), 77)
                                     : operands[t].numbers();
        tensors.push_back(t);
      }
      const Numbers got = executed(*lowered, *object, *library, inputs);
      for (std::size_t b = 0; b < tensors.size(); ++b) {
        const Tensor& tensor = what.tensors[tensors[b]];
        if (tensor.role != Role::output) continue;
        for (std::size_t i = 0; i < got[b].size(); ++i) {
          const double want = expected.tensors[tensors[b]][i];
          if (std::isnan(want) && std::isnan(got[b][i])) continue;
          ASSERT_LE(std::abs(got[b][i] - want),
                    tolerance(tensor.dtype, expected.reduction_length[tensors[b]], expected.magnitude[tensors[b]][i]))
              << "draw " << draw << ", element " << i << ": " << got[b][i] << " instead of " << want << "\n"
              << to_text(*lowered);
        }
      }
    }
  }
}

TEST(Values, compile_for_every_kind_of_processor) {
  for (const auto& [triple, cpu, features, bits] :
       {std::tuple("riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+f,+d,+v", 256),
        std::tuple("riscv64-unknown-linux-gnu", "sifive-u54", "", 0),
        std::tuple("aarch64-unknown-linux-gnu", "cortex-a72", "", 128),
        std::tuple("powerpc64le-unknown-linux-gnu", "pwr9", "", 128),
        std::tuple("x86_64-unknown-linux-gnu", "x86-64", "", 128)}) {
    Target target;
    target.triple = triple;
    target.cpu = cpu;
    target.features = features;
    target.vector_bits = bits;
    target.vector_registers = 32;
    for (const char* const text : texts) {
      SCOPED_TRACE(std::string(cpu) + ": " + text);
      const Workload workload = parse_workload(text);
      base::Stream stream(5, text);
      const auto lowered = program(judged_space(workload, target).sample(stream), target);
      ASSERT_TRUE(lowered.ok()) << lowered.reason().text;
      const auto object = compile(*lowered, target);
      ASSERT_TRUE(object.ok()) << object.reason().text;
      // Nothing undefined: no call of a library for what the processor lacks.
      const auto library = link_shared({&*object});
      EXPECT_TRUE(library.ok()) << library.reason().text;
    }
  }
}

}  // namespace
}  // namespace graft::codegen
