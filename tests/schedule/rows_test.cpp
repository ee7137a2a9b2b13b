// Reductions along memory in lanes, and chains of stages that are computed a block of rows after the other.
#include <gtest/gtest.h>

#include "base/random.h"
#include "codegen/program/forms.h"
#include "tests/schedule/support.h"

namespace graft::codegen {
namespace {

using namespace test;

constexpr const char* softmax_by_rows =
    "tile Y i 2\n"
    "tile Y j 8 4\n"
    "order Y i.0 i.1 j.0 j.1 j.2\n"
    "vector Y j.2\n"
    "compute Y total above i.1\n"
    "compute Y E above i.1\n"
    "compute Y largest above i.1\n"
    "tile total l 4\n"
    "order total l.0 i.0 l.1\n"
    "unroll total i.0\n"
    "accumulate total above l.0\n"
    "lanes total l.1\n"
    "tile largest l 8\n"
    "order largest i.0 l.0 l.1\n"
    "accumulate largest above l.0\n"
    "lanes largest l.1\n";

TEST(Lanes, EachHasAResultOfItsOwn) {
  const auto program = lower(computed("input A[3,21]; output S[i] max= A[i,l] where i=3, l=21"),
                             steps("tile S l 8 4\n"
                                   "order S l.0 l.1 i.0 l.2\n"
                                   "unroll S l.1 i.0\n"
                                   "accumulate S above l.0\n"
                                   "lanes S l.2\n"),
                             4);
  ASSERT_TRUE(program.ok()) << program.reason().text;
  EXPECT_EQ(to_text(*program),
            "buffer A f32 [3,21] input\n"
            "buffer S f32 [3] output\n"
            "buffer S.tile f32 [3,4] temporary registers\n"
            "buffer S.across f32 [1] temporary registers\n"
            "run\n"
            "  for i.0 3 unrolled\n"
            "    for l.2 4 vector\n"
            "      S.tile[i.0,l.2] = -inf\n"
            "  for l.0 2\n"
            "    for l.1 2 unrolled\n"
            "      for i.0 3 unrolled\n"
            "        for l.2 4 vector\n"
            "          S.tile[i.0,l.2] max= A[i.0,8*l.0 + 4*l.1 + l.2]\n"
            "  for i.0 3 unrolled\n"
            "    for l.2 4 vector\n"
            "      S.tile[i.0,l.2] max= A[i.0,l.2 + 16]\n"
            "  for i.0 3 unrolled\n"
            "    S.tile[i.0,0] max= A[i.0,20]\n"
            "  for i.0 3 unrolled\n"
            "    S.across[0] = -inf\n"
            "    for l.2 4 vector\n"
            "      S.across[0] max= S.tile[i.0,l.2]\n"
            "    S[i.0] = S.across[0]\n");
}

// Random extents, tiles, orders and types, with a consumer or without: every schedule that lowers computes the
// reference.
TEST(Lanes, RandomSchedulesComputeTheReference) {
  base::Stream stream(7, "lanes");
  int lowered = 0;
  for (int round = 0; round < 300; ++round) {
    const std::int64_t rows = 1 + stream.below(9), columns = 1 + stream.below(70), lanes = 2 << stream.below(5);
    const bool fused = stream.below(2) == 0, max = stream.below(2) == 0;
    const Computation c =
        computed(std::string("input A[") + std::to_string(rows) + "," + std::to_string(columns) + "]; " +
                 (fused ? "T[i] " : "output T[i] ") + (max ? "max= A[i,l]" : "+= A[i,l] * A[i,l]") +
                 (fused ? "; output S[i] = T[i] * 2 + 1" : "") + " where i=" + std::to_string(rows) +
                 ", l=" + std::to_string(columns));
    std::string text = "tile T i " + std::to_string(1 + stream.below(5)) + "\ntile T l " +
                       std::to_string(lanes * (1 + stream.below(3))) + " " + std::to_string(lanes) + "\n";
    text += stream.below(2) == 0 ? "order T i.0 l.0 l.1 i.1 l.2\nunroll T i.1\n" : "order T i.0 i.1 l.0 l.1 l.2\n";
    text += stream.below(2) == 0 ? "unroll T l.1\n" : "";
    text += "accumulate T above l.0\nlanes T l.2\n";
    if (fused) text += "fuse T S\n";
    const auto program = lower(c, steps(text), 8);
    if (!program.ok()) {
      EXPECT_TRUE(columns < lanes && contains(program.reason().text, "power of two")) << program.reason().text;
      continue;
    }
    ++lowered;
    EXPECT_LE(worst_excess(c, *program, std::uint64_t(round)), 0) << text << to_text(*program);
  }
  EXPECT_GT(lowered, 150);
}

TEST(Lanes, WhatDoesNotApplyHasAReason) {
  const Computation c = computed("input A[6,21]; output S[i] += A[i,l] where i=6, l=21");
  const std::pair<const char*, const char*> refusals[] = {
      {"lanes Z l.0", "there is no stage Z"},
      {"lanes S k.0", "S has no loop k.0"},
      {"order S l.0 i.0\nlanes S i.0", "i.0 is not reduced"},
      {"order S l.0 i.0\nlanes S l.0", "l.0 is not innermost"},
      {"lanes S l.0", "l.0 has 21 iterations, not a power of two"},
      {"tile S l 1\nlanes S l.1", "l.1 has 1 iterations, not a power of two"},
      {"tile S l 8\nunroll S l.1\nlanes S l.1", "l.1 is already unrolled"},
      {"tile S l 8\nlanes S l.1\norder S l.0 i.0 l.1", "comes after other steps of S"},
      {"tile S l 8\nlanes S l.1", "lanes S l.1: the stage does not accumulate"},
      {"tile S l 8\naccumulate S above l.1\nlanes S l.1", "lanes S l.1: l.0 reduces outside of its tile"},
  };
  for (const auto& [text, words] : refusals) {
    const auto program = lower(c, steps(text), 1);
    ASSERT_FALSE(program.ok()) << text;
    EXPECT_TRUE(contains(program.reason().text, words)) << program.reason().text;
  }
}

TEST(Rows, AllStagesOfAChainAreComputedForABlockBeforeTheNext) {
  const Computation c = computed("softmax(m=5,n=11)");
  const auto program = lower(c, steps(softmax_by_rows), 4);
  ASSERT_TRUE(program.ok()) << program.reason().text;
  EXPECT_LE(worst_excess(c, *program, 1), 0);
  for (const Buffer& buffer : program->buffers) {
    if (buffer.name == "E") {
      EXPECT_EQ(buffer.shape, (std::vector<std::int64_t>{2, 11}));
    }
    if (buffer.name == "largest" || buffer.name == "total") {
      EXPECT_EQ(buffer.shape, (std::vector<std::int64_t>{2}));
    }
  }
  // Blocks of two rows, then the row that is left, whose first stage gives all lanes their start value.
  ASSERT_EQ(program->run[0].kind, Node::Kind::loop);
  EXPECT_EQ(program->loops[std::size_t(program->run[0].item)].name, "i.0");
  const Node& next = program->run[std::size_t(program->run[0].end)];
  ASSERT_EQ(next.kind, Node::Kind::loop);
  EXPECT_EQ(program->loops[std::size_t(next.item)].name, "largest.l.1");
}

TEST(Rows, AWindowOverWhatIsComputedWidensIt) {
  // D is read by S at l and l + 1, and by Y at j.
  const Computation c = computed(
      "input X[4,9]; D[i,j] = X[i,j] * 2 where i=4, j=9;"
      "S[i] += D[i,l] * D[i,l+1] where i=4, l=8;"
      "output Y[i,j] = D[i,j+1] / (S[i] * S[i] + 1) where i=4, j=7");
  const auto program = lower(c,
                             steps("order Y i.0 j.0\n"
                                   "compute Y S above j.0\n"
                                   "compute Y D above j.0\n"),
                             1);
  ASSERT_TRUE(program.ok()) << program.reason().text;
  EXPECT_LE(worst_excess(c, *program, 1), 0);
  const auto tile =
      std::find_if(program->buffers.begin(), program->buffers.end(), [](const Buffer& b) { return b.name == "D"; });
  ASSERT_NE(tile, program->buffers.end());
  EXPECT_EQ(tile->shape, (std::vector<std::int64_t>{1, 9}));
}

// What is computed for a block may have an element-wise stage at its write-back, whose tile is then the only one.
TEST(Rows, StagesComputedAboveOneLoopAreFused) {
  const Computation c = computed(
      "input X[6,9]; S[i] += X[i,l]; T[i] = max(S[i],0) + 1; R[i] = T[i] * 2; output Y[i,j] = R[i] - X[i,j] "
      "where i=6, j=9, l=9");
  const std::string computes = "tile Y i 4\norder Y i.0 i.1 j.0\ncompute Y R above i.1\ncompute Y T above i.1\n";
  const auto program =
      lower(c, steps(computes + "compute Y S above i.1\naccumulate S above l.0\nfuse S T\nfuse T R\n"), 1);
  ASSERT_TRUE(program.ok()) << program.reason().text;
  EXPECT_LE(worst_excess(c, *program, 1), 0);
  for (const Buffer& buffer : program->buffers) {
    EXPECT_TRUE(buffer.name != "S" && buffer.name != "T") << buffer.name;
    if (buffer.name == "R") {
      EXPECT_EQ(buffer.shape, (std::vector<std::int64_t>{4}));
    }
  }
  const auto apart = lower(c, steps(computes + "accumulate S above l.0\nfuse S T\n"), 1);
  ASSERT_FALSE(apart.ok());
  EXPECT_TRUE(contains(apart.reason().text, "T is already computed elsewhere")) << apart.reason().text;
  // What another stage computes there would be computed for its other readers alone.
  const Computation two = computed(
      "input X[6,9]; U[i] = X[i,0] * 3; S[i] += X[i,l]; T[i] = S[i] + U[i]; output Y[i,j] = T[i] - X[i,j] "
      "where i=6, j=9, l=9");
  const auto both = lower(two,
                          steps("tile Y i 4\norder Y i.0 i.1 j.0\ncompute Y T above i.1\ncompute Y S above i.1\n"
                                "compute Y U above i.1\naccumulate S above l.0\nfuse S T\n"),
                          1);
  ASSERT_FALSE(both.ok());
  EXPECT_TRUE(contains(both.reason().text, "reads U, which is computed above the same loops")) << both.reason().text;
}

// An average over places of channels in blocks, whose results are not.
TEST(Rows, WhatIsFusedIsStoredByFormsOfItsAxes) {
  const std::string text =
      "input X[3,2,5,4]; T[b,c] += X[b,u,v,c]; output Y[4*b + c] = T[b,c] / 10 where b=3, c=4, u=2, v=5";
  const Computation c = computed(text);
  const auto program = lower(c, steps("accumulate T above u.0 v.0\nfuse T Y\n"), 1);
  ASSERT_TRUE(program.ok()) << program.reason().text;
  EXPECT_LE(worst_excess(c, *program, 1), 0);
  const Computation two = computed(
      "input X[3,2,5,4]; T[b,c] += X[b,u,v,c]; Z[4*b + c] = T[b,c] / 10; output Y[i] = Z[i] + 1 "
      "where b=3, c=4, u=2, v=5, i=12");
  const auto chain = lower(two, steps("accumulate T above u.0 v.0\nfuse T Z\nfuse Z Y\n"), 1);
  ASSERT_FALSE(chain.ok());
  EXPECT_TRUE(contains(chain.reason().text, "Z is stored by forms of its axes")) << chain.reason().text;
}

TEST(Rows, WhatDoesNotApplyHasAReason) {
  const Computation c = computed("softmax(m=5,n=11)");
  const std::pair<const char*, const char*> refusals[] = {
      {"compute Y E above j.0", "E is read elsewhere, too"},
      {"compute Y total above i.0\ncompute Y E above j.0", "E is read elsewhere, too"},
      {"compute Y total above j.0\ncompute Y largest above j.0", "largest is read elsewhere, too"},
      {"compute Y largest above j.0", "largest is read elsewhere, too"},
      {"tile Y j 4\ncompute Y total above j.1\ncompute Y E above j.1", "E is read in ways that move apart"},
  };
  for (const auto& [text, words] : refusals) {
    const auto program = lower(c, steps(text), 1);
    ASSERT_FALSE(program.ok()) << text;
    EXPECT_TRUE(contains(program.reason().text, words)) << program.reason().text;
  }
  const Computation row = computed("input X[4,9]; S[i] += X[i,l]; output Y[i] = S[i] * 2 where i=4, l=9");
  const auto both = lower(row, steps("compute Y S above i.0\naccumulate S above l.0\nfuse S Y"), 1);
  ASSERT_FALSE(both.ok());
  EXPECT_TRUE(contains(both.reason().text, "S is computed within another stage's loops")) << both.reason().text;
}

}  // namespace
}  // namespace graft::codegen
