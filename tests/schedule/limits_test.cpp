#include "codegen/schedule/limits.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "codegen/program/forms.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/space/space.h"
#include "tests/schedule/support.h"
#include "tests/support/judged_space.h"
#include "tests/support/limits.h"

namespace graft::codegen {
namespace {

using namespace test;

// "" when the program is within limits.
std::string reason(const std::string& program, const Target& target) {
  const auto found = beyond_limits(parse_program(program, "test"), target);
  return found ? found->text : "";
}

TEST(Limits, AccumulatorsAndOneRowOfOperandsFitTheRegisters) {
  const std::string tile = R"(buffer A f32 [4,9] input
buffer B f32 [9,16] input
buffer C f32 [4,16] output
buffer T f32 [4,2,8] temporary registers
run
  for i 4 unrolled
    for j 2 unrolled
      for v 8 vector
        T[i,j,v] = 0
  for k 9
    for i 4 unrolled
      for j 2 unrolled
        for v 8 vector
          T[i,j,v] += A[i,k] * B[k,8*j + v]
  for i 4 unrolled
    for j 2 unrolled
      for v 8 vector
        C[i,8*j + v] = T[i,j,v]
)";
  EXPECT_EQ(reason(tile, target_with(256, 10)), "");
  EXPECT_EQ(reason(tile, target_with(256, 9)), "limits: 8 accumulators and 2 operands exceed 9 registers");
  // Half as wide: twice the registers.
  EXPECT_EQ(reason(tile, target_with(128, 20)), "");
  EXPECT_EQ(reason(tile, target_with(128, 19)), "limits: 16 accumulators and 4 operands exceed 19 registers");
}

TEST(Limits, OperandsAreLiveUntilTheirLastUse) {
  const auto window = [](const char* order) {
    return fmt::format(R"(buffer A f32 [64] input
buffer B f32 [3] input
buffer C f32 [8,4] output
buffer T f32 [8,4] temporary registers
run
  for x 8 unrolled
    for v 4 vector
      T[x,v] = 0
  for k 5
    {}
          T[x,v] += A[4*x + 4*u + v] * B[u]
  for x 8 unrolled
    for v 4 vector
      C[x,v] = T[x,v]
)",
                       order);
  };
  // 8 + 3 - 1 vectors of A serve all of x and u.
  const std::string text = window("for u 3 unrolled\n      for x 8 unrolled\n        for v 4 vector");
  EXPECT_EQ(reason(text, target_with(128, 18)), "");
  EXPECT_EQ(reason(text, target_with(128, 17)), "limits: 8 accumulators and 10 operands exceed 17 registers");
}

TEST(Limits, UnrolledCodeHasACap) {
  const auto copy = [](int copies) {
    return fmt::format(
        "buffer A f32 [{0}] input\nbuffer C f32 [{0}] output\nrun\n  for i {0} unrolled\n    C[i] = A[i]\n", copies);
  };
  // A load, a store and one for the statement each.
  EXPECT_EQ(reason(copy(400), target_with(256, 16)), "");
  EXPECT_EQ(reason(copy(401), target_with(256, 16)), "limits: about 1203 instructions without a loop exceed 1200");
}

TEST(Limits, PrefetchesCount) {
  const auto copy = [](int copies) {
    return fmt::format(
        "buffer A f32 [{0}] input\nbuffer C f32 [{0}] output\nrun\n  for i {0} unrolled prefetch A[i + 1]\n"
        "    C[i] = A[i]\n",
        copies);
  };
  EXPECT_EQ(reason(copy(300), target_with(256, 16)), "");
  EXPECT_EQ(reason(copy(301), target_with(256, 16)), "limits: about 1204 instructions without a loop exceed 1200");
}

TEST(Limits, LaneByLaneReadsInLoopsAreRefused) {
  const auto sum = [](const char* index) {
    return fmt::format(
        "buffer A f32 [9,64] input\nbuffer C f32 [8] output\nrun\n  for v 8 vector\n    C[v] = 0\n"
        "  for k 9\n    for v 8 vector\n      C[v] += A[{}]\n",
        index);
  };
  const Target target = target_with(256, 16);
  EXPECT_EQ(reason(sum("k,v"), target), "");
  EXPECT_EQ(reason(sum("k,2*v"), target), "");
  EXPECT_EQ(reason(sum("k,3"), target), "");
  EXPECT_EQ(reason(sum("k,3*v"), target), "limits: A is read lane by lane, 3 elements apart");
  EXPECT_EQ(reason(sum("k,7 - v"), target), "limits: A is read lane by lane, -1 elements apart");
  // Scattered results are paid once, after the reduction.
  EXPECT_EQ(reason("buffer A f32 [9,8] input\nbuffer C f32 [8,9] output\nrun\n  for k 9\n    for v 8 vector\n"
                   "      C[v,k] = A[k,v]\n",
                   target),
            "");
}

// Lowering that stops at the first store beyond a limit refuses exactly what the whole program would be refused for.
TEST(Limits, StoreByStoreTheVerdictIsThatOfTheWholeProgram) {
  const Target target = target_with(256, 16);
  int refused = 0, within = 0;
  for (const char* text :
       {"matmul(m=60,n=64,k=31)", "conv2d(c=7,h=14,w=14,k=24,r=3,s=3,pad=1)", "dense(m=8,n=40,k=9)"}) {
    const Workload workload = parse_workload(text);
    const Computation computation = computed(text);
    base::Stream stream(1, text);
    const JudgedSpace space_by_rule = judged_space(workload, target);
    for (const SketchSpace& space : space_by_rule.sketches()) {
      for (int draw = 0; draw < 200; ++draw) {
        Candidate candidate{workload, space.sketch, std::vector<std::int64_t>(space.sketch->arguments.size())};
        for (const Domain& domain : space.domains) {
          const auto& row = domain.values[std::size_t(stream.below(std::int64_t(domain.values.size())))];
          for (std::size_t i = 0; i < row.size(); ++i) candidate.arguments[std::size_t(domain.arguments[i])] = row[i];
        }
        const auto whole = lower(computation, *schedule(candidate), target.lanes(4));
        const bool ok = whole.ok() && !beyond_limits(*whole, target);
        const auto watched = program(candidate, target);
        ASSERT_EQ(watched.ok(), ok) << to_text(*schedule(candidate)) << watched.reason().text;
        if (ok) {
          EXPECT_EQ(hash(*watched), hash(*whole));
        }
        ++(ok ? within : refused);
      }
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(within, 100);
}

}  // namespace
}  // namespace graft::codegen
