// The shipped intrinsics as machine code of this host.
#include <memory>
#include <string>
#include <thread>

#include "codegen/expression/workload.h"
#include "codegen/schedule/lower.h"
#include "tests/machine/support.h"
#include "tests/schedule/support.h"
#include "tests/support/intrinsics.h"
#include "tests/support/programs.h"

namespace graft::codegen {
namespace {

using namespace test;

LoopProgram lowered(const std::string& workload, const std::string& schedule, const std::string& intrinsic) {
  auto program = lower(parse_workload(workload).computation(), steps(schedule), 16, 1, {}, shipped(intrinsic));
  EXPECT_TRUE(program.ok()) << program.reason().text;
  return std::move(program).value();
}

void expect_right(const std::string& workload, const std::string& schedule, const std::string& intrinsic) {
  SCOPED_TRACE(workload);
  const Target host = host_target();
  expect_as_reference(lowered(workload, schedule, intrinsic), parse_workload(workload).computation(), host);
}

// Lines of the assembly that hold the word.
int lines_with(const std::string& assembly, const std::string& word) {
  int count = 0;
  for (std::size_t at = assembly.find(word); at != std::string::npos; at = assembly.find(word, at + 1)) ++count;
  return count;
}

TEST(IntrinsicCode, OuterProductsComputeTheReference) {
  expect_right("matmul(m=8,n=16,k=5)", outer_schedule, "outer_4x4");
  expect_right("matmul(m=10,n=19,k=5)", outer_schedule, "outer_4x4");
  expect_right("matmul(m=10,n=19,k=5)", replaced(outer_schedule, "tensorize", "pack C B above i.0\ntensorize"),
               "outer_4x4");
  expect_right("dense(m=9,n=16,k=7)",
               "tile T i 4\ntile T j 8 4\norder T i.0 j.0 l.0 j.1 i.1 j.2\nunroll T j.1\n"
               "accumulate T above l.0\npack T X above i.0\npack T W above i.0\nfuse T Y\n"
               "tensorize T outer_4x4 i.1\n",
               "outer_4x4");
}

TEST(IntrinsicCode, DotProductsComputeTheReferenceExactly) {
  const Target host = host_target();
  if (lacks_feature(*shipped("dot_u8i8")[0], host)) GTEST_SKIP() << host.cpu << " has no AVX-512 VNNI";
  expect_right(dot_workload(6, 64, 12), dot_schedule, "dot_u8i8");
  expect_right(dot_workload(7, 64, 12), dot_schedule, "dot_u8i8");
  expect_right(dot_workload(6, 77, 12, "input"), dot_schedule, "dot_u8i8");
  expect_right(dot_workload(5, 41, 14), dot_schedule, "dot_u8i8");
  expect_right(dot_workload(6, 64, 12), replaced(dot_schedule, "accumulate C above l.0\n", ""), "dot_u8i8");
}

TEST(IntrinsicCode, AccumulatorsStayInRegisters) {
  const Target host = host_target();
  if (lacks_feature(*shipped("dot_u8i8")[0], host)) GTEST_SKIP() << host.cpu << " has no AVX-512 VNNI";
  const auto listed = listing(lowered(dot_workload(12, 64, 64), dot_schedule, "dot_u8i8"), host);
  ASSERT_TRUE(listed.ok()) << listed.reason().text;
  const std::string& code = listed->assembly;
  EXPECT_EQ(lines_with(code, "vpdpbusd"), 6) << code;  // 3 rows of 2 vectors, once
  EXPECT_EQ(lines_with(code, "vmovdqu64\t%zmm") + lines_with(code, "vmovdqa64\t%zmm"), 6) << code;  // results only
}

// LLVM would end the process.
TEST(IntrinsicCode, AFeatureThatItsBodyUsesAndDoesNotNameIsAFailure) {
  Target target;
  target.triple = "x86_64-unknown-linux-gnu";
  target.cpu = "x86-64-v3";
  target.vector_bits = 256;
  target.vector_registers = 16;
  LoopProgram program = lowered(dot_workload(6, 64, 12), dot_schedule, "dot_u8i8");
  Intrinsic forgetful = *program.intrinsics.at(0);
  forgetful.needs.clear();
  program.intrinsics[0] = std::make_shared<const Intrinsic>(forgetful);
  const auto gave_up = [&] {
    try {
      (void)compile(program, target);
    } catch (const GaveUp& failure) {
      return std::string(failure.what());
    }
    return std::string("no error");
  };
  for (int i = 0; i < 2; ++i) {
    const std::string message = gave_up();
    EXPECT_TRUE(
        contains(message, "gave up on code for the cpu 'x86-64-v3' of x86_64-unknown-linux-gnu, vectors of 256 bits: "))
        << message;
    EXPECT_TRUE(contains(message, "; correct that description, or what an intrinsic needs")) << message;
    EXPECT_FALSE(contains(message, "\n")) << message;
  }
  std::string elsewhere;
  std::thread([&] { elsewhere = gave_up(); }).join();
  EXPECT_TRUE(contains(elsewhere, "gave up")) << elsewhere;
  // LLVM is of use afterwards, on the same thread.
  EXPECT_TRUE(compile(lowered("matmul(m=8,n=16,k=5)", outer_schedule, "outer_4x4"), target).ok());
}

TEST(IntrinsicCode, AMissingFeatureIsAReason) {
  Target target;
  target.triple = "x86_64-unknown-linux-gnu";
  target.cpu = "x86-64-v3";
  target.vector_bits = 256;
  target.vector_registers = 16;
  const auto object = compile(lowered(dot_workload(6, 64, 12), dot_schedule, "dot_u8i8"), target);
  ASSERT_FALSE(object.ok());
  EXPECT_EQ(object.reason().text, "intrinsic dot_u8i8 needs +avx512vnni, which x86-64-v3 does not have");
  EXPECT_TRUE(compile(lowered("matmul(m=8,n=16,k=5)", outer_schedule, "outer_4x4"), target).ok());

  Intrinsic misspelt = *shipped("dot_u8i8")[0];
  misspelt.needs = "+avx512vni";
  EXPECT_TRUE(contains(refusal([&] { return lacks_feature(misspelt, target); }), "did you mean 'avx512vnni'"));
}

TEST(IntrinsicCode, ABodyThatIsNotWhatTheExpressionSaysIsTheUsersMistake) {
  const std::pair<std::pair<std::string, std::string>, std::string> refusals[] = {
      {{"shufflevector <4 x float> %b", "shuffle <4 x float> %b"}, "intrinsic outer_4x4: line 6 of its body: expected"},
      {{"<4 x float> %a, <4 x float> %b)", "<4 x float> %a, <8 x float> %b)"}, "of its body"},
      {{"define <16 x float> @outer_4x4(<16 x float> %c,", "define <16 x float> @outer_4x4(<16 x float> %c, i32 %n,"},
       "its expression asks for <16 x float> (<16 x float>, <4 x float>, <4 x float>)"},
      {{"@outer_4x4(", "@outer("}, "its body names 'outer'"},
      {{"ret <16 x float> %sum", "br label %end\nend:\nret <16 x float> %sum"}, "it must be one block"},
      {{"declare <16 x float> @llvm.fmuladd.v16f32(",
        "declare float @expf(float)\ndeclare <16 x float> @llvm.fmuladd.v16f32("},
       "its body names 'expf'"},
  };
  const LoopProgram program = lowered("matmul(m=8,n=16,k=5)", outer_schedule, "outer_4x4");
  for (const auto& [change, words] : refusals) {
    Intrinsic changed = *program.intrinsics[0];
    changed.body = replaced(changed.body, change.first, change.second);
    LoopProgram with = program;
    with.intrinsics[0] = std::make_shared<const Intrinsic>(changed);
    const std::string message = refusal([&] { return compile(with, host_target()); });
    EXPECT_TRUE(contains(message, words)) << message << " for " << words;
  }
}

}  // namespace
}  // namespace graft::codegen
