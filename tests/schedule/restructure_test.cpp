#include "codegen/schedule/restructure.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "codegen/program/analysis.h"
#include "codegen/program/forms.h"
#include "tests/schedule/support.h"

namespace graft::codegen {
namespace {

using namespace test;

TEST(Copy, AStageReadsThroughItsOwnCopy) {
  const Computation c = computed("conv2d(c=2,h=8,w=10,k=3,r=3,s=2,stride=2,pad=1)");  // 4 x 6 results
  const auto plain = restructured(c, steps("copy Y P\n"));
  ASSERT_TRUE(plain.ok()) << plain.reason().text;
  const int copied = plain->computation.tensor_named("Y.P");
  ASSERT_GE(copied, 0);
  EXPECT_EQ(plain->computation.tensors[std::size_t(copied)].shape, (std::vector<std::int64_t>{1, 2, 9, 12}));
  // In blocks of 2 x 3 results, each reads 5 rows and 6 columns.
  const auto blocks = restructured(c, steps("copy Y P y 2 x 3\n"));
  ASSERT_TRUE(blocks.ok()) << blocks.reason().text;
  EXPECT_EQ(blocks->computation.tensors[std::size_t(blocks->computation.tensor_named("Y.P"))].shape,
            (std::vector<std::int64_t>{2, 2, 1, 2, 5, 6}));
  for (const char* text : {"copy Y P\n", "copy Y P\ncopy Y W\ncompute Y Y.P above y.0\ncompute Y Y.W above o.0\n",
                           "copy Y P y 2 x 3\norder Y b.0 o.0 y.0 x.0 i.0 u.0 v.0 x_1.0 y_1.0\n",
                           "copy Y P x 2\nparallel Y.P x.0\n", "copy Y W o 3\nblock Y.W 0 1 2/2 3 4 2%2\n"}) {
    const auto program = lower(c, steps(text), 1);
    ASSERT_TRUE(program.ok()) << text << program.reason().text;
    EXPECT_LE(worst_excess(c, *program, 1), 0) << text << to_text(*program);
  }
}

TEST(Copy, WhatDoesNotApplyHasAReason) {
  const Computation c = computed("conv2d(c=2,h=8,w=8,k=3,r=3,s=3,pad=1)");
  const std::pair<const char*, const char*> refusals[] = {
      {"copy Z P", "there is no stage Z"},     {"copy Y Q", "Y does not read Q"},
      {"copy Y X", "Y does not read X"},       {"copy Y P i 2", "Y has no axis i"},
      {"copy Y P y 3", "3 does not divide 8"}, {"copy P X", "X is read beyond its shape"},
  };
  for (const auto& [text, words] : refusals) {
    const auto changed = restructured(c, steps(text));
    ASSERT_FALSE(changed.ok()) << text;
    EXPECT_TRUE(contains(changed.reason().text, words)) << changed.reason().text;
  }
}

TEST(Bind, LoopsAreOfTheKind) {
  const Computation c = computed("matmul(m=8,n=6,k=4)");
  const std::string tiles = "tile C i 4 2\norder C i.0 j.0 l.0 i.1 i.2\n";
  const auto program =
      lower(c, steps(tiles + "bind C block_x i.0\nbind C thread_y i.1\nbind C virtual_thread j.0\n"), 1);
  ASSERT_TRUE(program.ok()) << program.reason().text;
  EXPECT_LE(worst_excess(c, *program, 1), 0);
  const std::string text = to_text(*program);
  for (const char* loop : {"for i.0 2 block_x", "for j.0 6 virtual_thread", "for i.1 2 thread_y"}) {
    EXPECT_TRUE(contains(text, loop)) << text;
  }
  const std::pair<const char*, const char*> refusals[] = {
      {"bind C thread_w i.0", "unknown kind 'thread_w'; did you mean 'thread_"},
      {"bind C vector i.2", "unknown kind 'vector'"},
      {"bind C thread_x l.0", "l.0 is reduced"},
      {"bind C thread_x k.0", "C has no loop k.0"},
      {"bind C thread_x i.0\nbind C block_x i.0", "i.0 is already thread_x"},
  };
  for (const auto& [line, words] : refusals) {
    const auto refused = lower(c, steps(tiles + line), 1);
    ASSERT_FALSE(refused.ok()) << line;
    EXPECT_TRUE(contains(refused.reason().text, words)) << refused.reason().text;
  }
}

TEST(Absorb, TheProducerIsWrittenIntoItsReader) {
  const Computation c = computed("conv2d(c=2,h=5,w=5,k=3,r=3,s=3,pad=1)");
  const auto changed = restructured(c, steps("absorb Y P\n"));
  ASSERT_TRUE(changed.ok()) << changed.reason().text;
  ASSERT_EQ(changed->computation.stages.size(), 1u);
  EXPECT_EQ(changed->computation.tensors.size(), c.tensors.size() - 1);
  EXPECT_TRUE(changed->computation.stages[0].value.loads[0].padded);
  EXPECT_EQ(changed->computation.stages[0].value.loads[0].index[2].constant, -1);

  const Computation twice = computed("input A[6]; T[i] = exp(A[i]) where i=6; output B[j] = T[j] * T[5 - j] where j=6");
  const auto both = lower(twice, steps("absorb B T\n"), 1);
  ASSERT_TRUE(both.ok()) << both.reason().text;
  EXPECT_EQ(both->stores.size(), 1u);
  EXPECT_LE(worst_excess(twice, *both, 1), 0);
}

TEST(Absorb, WhatDoesNotApplyHasAReason) {
  const Computation c = computed("dense(m=4,n=6,k=5)");
  const std::pair<const char*, const char*> refusals[] = {
      {"absorb Z T", "there is no stage Z"},
      {"absorb Y X", "there is no stage X"},
      {"absorb Y T", "T is a reduction"},
      {"absorb T Y", "Y is an output"},
  };
  for (const auto& [text, words] : refusals) {
    const auto changed = restructured(c, steps(text));
    ASSERT_FALSE(changed.ok()) << text;
    EXPECT_TRUE(contains(changed.reason().text, words)) << changed.reason().text;
  }
  const Computation two =
      computed("input A[6]; T[i] = A[i] + 1 where i=6; output B[j] = T[j] where j=6; output C[j] = T[j] where j=6");
  EXPECT_TRUE(contains(restructured(two, steps("absorb B T")).reason().text, "is read elsewhere, too"));
}

TEST(Absorb, ValuesThatGrowWithoutEndAreRefused) {
  std::string text = "input A[6]; T0[i] = A[i] + A[i];", absorbs;
  for (int t = 1; t <= 14; ++t) text += fmt::format("T{0}[i] = T{1}[i] * T{1}[i];", t, t - 1);
  text += "output B[i] = T14[i] where i=6";
  for (int t = 0; t < 14; ++t) absorbs += fmt::format("absorb T{} T{}\n", t + 1, t);
  const auto changed = restructured(computed(text), steps(absorbs));
  ASSERT_FALSE(changed.ok());
  EXPECT_TRUE(contains(changed.reason().text, "makes a value of more than 4096 operations")) << changed.reason().text;
}

TEST(Absorb, TapsOutsideAreNeitherReadNorComputed) {
  const char* const workload = "conv2d_nchwc(c=4,h=5,w=6,k=8,r=3,s=3,pad=1,block=4)";
  const Computation c = computed(workload);
  const auto program = lower(c,
                             steps("absorb Y P\n"
                                   "tile Y x 3\n"
                                   "order Y o.0 y.0 x.0 i.0 u.0 v.0 d.0 x.1 e.0\n"
                                   "vector Y e.0\n"
                                   "unroll Y x.1\n"
                                   "accumulate Y above i.0\n"),
                             4);
  ASSERT_TRUE(program.ok()) << program.reason().text;
  EXPECT_LE(worst_excess(c, *program, 1), 0);
  std::int64_t products = 0;
  for (const StoreContext& store : analyse(*program).stores) {
    const Store& statement = program->stores[std::size_t(store.store)];
    if (statement.combine == Combine::sum) products += store.executions;
  }
  // Each of 5 rows has 3 taps but for the border's 2, each of 6 columns likewise; 2x4 output and 4 input channels.
  EXPECT_EQ(products, (5 * 3 - 2) * (6 * 3 - 2) * 8 * 4);
}

TEST(Absorb, VectorsAlongTheBorderAreRefused) {
  const Computation c = computed("conv2d(c=2,h=8,w=8,k=3,r=3,s=3,pad=1)");
  const auto program = lower(c,
                             steps("absorb Y P\n"
                                   "tile Y x 4\n"
                                   "order Y b.0 o.0 y.0 x.0 i.0 u.0 v.0 x.1\n"
                                   "vector Y x.1\n"),
                             4);
  ASSERT_FALSE(program.ok());
  EXPECT_TRUE(contains(program.reason().text, "x.1 is vector and runs over the border")) << program.reason().text;
}

TEST(Reciprocal, DivisionsByWhatStaysBecomeProducts) {
  const Computation c = computed(
      "input X[4,9]; input S[4]; input T[9]; output Y[i,j] = (X[i,j] / (S[i] * S[i] + 1) + T[j] / (S[i] * S[i] + 1)) /"
      "(T[j] * T[j] + 2) / 3 where i=4, j=9");
  const auto program = lower(c, steps("reciprocal Y j\n"), 4);
  ASSERT_TRUE(program.ok()) << program.reason().text;
  EXPECT_LE(worst_excess(c, *program, 1), 0);
  const std::string text = to_text(*program);
  EXPECT_TRUE(contains(text, "Y.reciprocal[i.1] = 1 / (S[i.1] * S[i.1] + 1)")) << text;
  EXPECT_FALSE(contains(text, "Y.reciprocal_")) << text;  // both are one
  EXPECT_TRUE(contains(text, "* Y.reciprocal[i.0] + T[4*j.0 + j.1] * Y.reciprocal[i.0]) / (")) << text;
  const auto other = lower(c, steps("reciprocal Y i\n"), 4);
  ASSERT_TRUE(other.ok()) << other.reason().text;
  EXPECT_LE(worst_excess(c, *other, 1), 0);
  EXPECT_TRUE(contains(to_text(*other), "1 / (T[4*j.0 + j.1] * T[4*j.0 + j.1] + 2)")) << to_text(*other);
}

TEST(Reciprocal, WhatDoesNotApplyHasAReason) {
  const std::pair<const char*, const char*> refusals[] = {
      {"reciprocal X j", "there is no stage X"},
      {"reciprocal Y k", "Y has no axis k"},
      {"reciprocal Y i", "Y divides by nothing that stays along i"},
      {"reciprocal N j", "N holds integers"},
  };
  const Computation c = computed(
      "input X[4,9]; input S[4]; input Q[4] : i32; output Y[i,j] = X[i,j] / S[i] / 4; output N[i,j] : i32 = Q[i] + "
      "Q[i] "
      "where i=4, j=9");
  for (const auto& [text, words] : refusals) {
    const auto program = lower(c, steps(text), 1);
    ASSERT_FALSE(program.ok()) << text;
    EXPECT_TRUE(contains(program.reason().text, words)) << program.reason().text;
  }
}

TEST(Unsign, SumsOfSignedBytesAreThoseOfBytesWithoutASign) {
  for (const char* text : {
           "input A[5,12] : i8; constant B[12,7] : i8; output C[i,j] : i32 += A[i,l] * B[l,j] where i=5, j=7, l=12",
           "input A[5,12] : i8; constant B[12,7] : i8; input c[7] : i32; "
           "C[i,j] : i32 += B[l,j] * A[i,l]; output Y[i,j] : i8 = saturate_i8(round(cast_f32(C[i,j] + c[j]) / 8)) "
           "where i=5, j=7, l=12",
           "input A[1,4,6,6] : i8; constant B[3,4,3,3] : i8; "
           "P[b,i,p,q] : i8 = pad(A[b,i,p - 1,q - 1], -5) where b=1, i=4, p=8, q=8; "
           "output C[b,o,y,x] : i32 += P[b,i,y + u,x + v] * B[o,i,u,v] where b=1, i=4, o=3, y=6, x=6, u=3, v=3",
       }) {
    SCOPED_TRACE(text);
    const Computation c = computed(text);
    const std::string operand = c.tensor_named("P") >= 0 ? "P" : "A";
    const auto program = lower(c, steps("unsign C " + operand + "\n"), 4);
    ASSERT_TRUE(program.ok()) << program.reason().text;
    EXPECT_LE(worst_excess(c, *program, 1), 0);
    const std::string made = to_text(*program);
    EXPECT_TRUE(contains(made, "C." + operand + "[")) << made;
    EXPECT_TRUE(contains(made, "128 * C.offset[")) << made;
  }
}

TEST(Unsign, WhatDoesNotApplyHasAReason) {
  const std::pair<const char*, const char*> refusals[] = {
      {"unsign X A", "there is no stage X"},
      {"unsign C D", "C does not read D"},
      {"unsign C B", "B is not i8"},
      {"unsign M A", "M is not a sum of products in i32"},
  };
  const Computation c = computed(
      "input A[4,9] : i8; input B[9,3] : u8; input D[2] : i8; output C[i,j] : i32 += A[i,l] * B[l,j]; "
      "output M[i] : i8 max= A[i,l] where i=4, j=3, l=9");
  for (const auto& [text, words] : refusals) {
    const auto program = lower(c, steps(text), 1);
    ASSERT_FALSE(program.ok()) << text;
    EXPECT_TRUE(contains(program.reason().text, words)) << program.reason().text;
  }
}

TEST(Compute, TheTileHoldsWhatIsReadFromThereOn) {
  const Computation c = computed("conv2d_nchwc(c=4,h=8,w=6,k=8,r=3,s=3,pad=1,block=4)");
  const auto program = lower(c,
                             steps("tile Y y 2\n"
                                   "order Y o.0 y.0 i.0 u.0 v.0 d.0 y.1 x.0 e.0\n"
                                   "compute Y P above i.0\n"
                                   "vector Y e.0\n"),
                             4);
  ASSERT_TRUE(program.ok()) << program.reason().text;
  EXPECT_LE(worst_excess(c, *program, 1), 0);
  const auto tile = std::find_if(program->buffers.begin(), program->buffers.end(),
                                 [](const Buffer& buffer) { return buffer.name == "P"; });
  ASSERT_NE(tile, program->buffers.end());
  EXPECT_EQ(tile->shape, (std::vector<std::int64_t>{1, 1, 4, 8, 4}));
}

TEST(Compute, AProducerThatReducesMayHaveStepsOfItsOwn) {
  const Computation c = computed(
      "input A[6,5]; input B[5,8]; input D[8,7]; T[i,j] += A[i,k] * B[k,j] where i=6, j=8, k=5;"
      "output Y[i,n] += T[i,j] * D[j,n] where i=6, n=7, j=8");
  const auto program = lower(c,
                             steps("tile Y i 2\n"
                                   "order Y i.0 j.0 i.1 n.0\n"
                                   "compute Y T above j.0\n"
                                   "tile T j 4\n"
                                   "order T j.0 i.0 k.0 j.1\n"
                                   "vector T j.1\n"
                                   "accumulate T above k.0\n"),
                             4);
  ASSERT_TRUE(program.ok()) << program.reason().text;
  EXPECT_LE(worst_excess(c, *program, 2), 0);
  // T whole would be 6 x 8.
  for (const Buffer& buffer : program->buffers) {
    if (buffer.name == "T") {
      EXPECT_EQ(buffer.shape, (std::vector<std::int64_t>{2, 8}));
    }
  }
}

TEST(Compute, WhatDoesNotApplyHasAReason) {
  const Computation c = computed("conv2d(c=2,h=5,w=5,k=3,r=3,s=3,pad=1)");
  const std::pair<const char*, const char*> refusals[] = {
      {"compute Y X above y.0", "there is no stage X"},
      {"compute Y Z above y.0", "there is no stage Z"},
      {"compute Y P above z.0", "Y has no loop z.0"},
      {"compute P Y above p.0", "Y is an output"},
      {"tile P q 2\ncompute Y P above y.0", "comes after other steps of P, but must come before them"},
  };
  for (const auto& [text, words] : refusals) {
    const auto program = lower(c, steps(text), 1);
    ASSERT_FALSE(program.ok()) << text;
    EXPECT_TRUE(contains(program.reason().text, words)) << program.reason().text;
  }
}

// Random tiles, orders and places: every schedule that lowers computes the reference.
TEST(Restructure, RandomSchedulesComputeTheReference) {
  const char* const workloads[] = {
      "conv2d(n=2,c=3,h=7,w=9,k=4,r=3,s=3,stride=2,pad=1)", "conv2d(c=2,h=6,w=6,k=3,r=5,s=3,pad=2)",
      "conv2d_nchwc(c=8,h=7,w=5,k=8,r=3,s=3,pad=1,block=4)", "depthwise_conv2d(c=3,h=6,w=7,r=3,s=3,pad=1)"};
  int lowered = 0;
  base::Stream stream(11, "restructure");
  for (int round = 0; round < 400; ++round) {
    const char* const workload = workloads[round % 4];
    const Computation c = computed(workload);
    const Stage& stage = c.stages.back();
    std::string text;
    const bool absorbed = stream.below(2) == 0;
    if (absorbed) text += "absorb Y P\n";
    std::vector<std::vector<std::string>> loops;
    for (const Axis& axis : stage.axes) {
      const std::int64_t inner = 1 + stream.below(4), outer = inner * (1 + stream.below(3));
      text += "tile Y " + axis.name + " " + std::to_string(outer) + " " + std::to_string(inner) + "\n";
      loops.push_back({axis.name + ".0", axis.name + ".1", axis.name + ".2"});
    }
    std::vector<std::string> order;
    while (!loops.empty()) {
      auto& of_axis = loops[std::size_t(stream.below(std::int64_t(loops.size())))];
      order.push_back(of_axis.front());
      of_axis.erase(of_axis.begin());
      std::erase_if(loops, [](const auto& left) { return left.empty(); });
    }
    text += "order Y";
    for (const std::string& loop : order) text += " " + loop;
    text += "\n";
    if (!absorbed) text += "compute Y P above " + order[std::size_t(stream.below(std::int64_t(order.size())))] + "\n";
    text += "unroll Y " + order.back() + "\n";
    if (stream.below(2) == 0) {
      text += "accumulate Y above " + order[std::size_t(stream.below(std::int64_t(order.size())))] + "\n";
    }
    const auto program = lower(c, steps(text), 4);
    if (!program.ok()) continue;
    ++lowered;
    check(*program, text);
    ASSERT_LE(worst_excess(c, *program, std::uint64_t(round)), 0) << workload << "\n" << text << to_text(*program);
  }
  EXPECT_GT(lowered, 300);
}

}  // namespace
}  // namespace graft::codegen
