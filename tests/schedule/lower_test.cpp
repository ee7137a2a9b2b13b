#include "codegen/schedule/lower.h"

#include <gtest/gtest.h>

#include <set>

#include "codegen/expression/workload.h"
#include "codegen/program/forms.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/space/space.h"
#include "tests/schedule/support.h"
#include "tests/support/judged_space.h"

namespace graft::codegen {
namespace {

using namespace test;

TEST(Lower, EmptyScheduleOfEveryOperatorComputesTheReference) {
  for (const char* workload :
       {"matmul(m=5,n=7,k=3)", "dense(m=4,n=6,k=5)", "conv2d(c=3,h=8,w=7,k=4,r=3,s=3,stride=2,pad=1)",
        "conv2d(c=3,h=5,w=5,k=2,r=1,s=1)", "conv2d_nchwc(c=8,h=6,w=6,k=8,r=3,s=3,pad=1,block=4)",
        "depthwise_conv2d(c=3,h=9,w=9,r=3,s=3,stride=2,pad=1)", "input A[9]; output S[] += A[i] where i=9",
        "input A[9]; output S[] max= A[i] where i=9"}) {
    const Computation c = parse_workload(workload).computation();
    EXPECT_LE(worst_excess(c, naive_program(c), 1), 0) << workload;
    const auto wide = lower(with_padding_stages(c), {}, 4);
    ASSERT_TRUE(wide.ok()) << wide.reason().text;
    EXPECT_LE(worst_excess(c, *wide, 1), 0) << workload;
  }
}

TEST(Lower, APaddedLoadInsideAReductionBecomesAStageOfItsOwn) {
  const Computation c =
      parse_workload("input X[9]; constant W[3]; output Y[i] += pad(X[i+u-1]) * W[u] where i=9, u=3").computation();
  const Computation padded = with_padding_stages(c);
  ASSERT_EQ(padded.stages.size(), 2u);
  EXPECT_EQ(padded.tensors.back().name, "X.pad");
  EXPECT_EQ(padded.tensors.back().shape, std::vector<std::int64_t>{11});
  EXPECT_EQ(with_padding_stages(padded), padded);
  EXPECT_LE(worst_excess(c, naive_program(c), 3), 0);
}

TEST(Lower, EveryPaddedLoadLowers) {
  for (const char* workload : {"input A[10]; output B[i] = pad(A[2*i - 1]) where i=6",       // strided
                               "input A[4]; output B[i] = pad(A[i + 50]) where i=6",         // outside everywhere
                               "input A[4,9]; output B[i] = pad(A[i - 1,i - 2]) where i=8",  // a diagonal
                               "input A[4,9]; output B[i,j] = pad(A[j - 1,i + 1]) where i=9, j=6",
                               "input A[4]; output B[i,j] = pad(A[i - 1]) where i=6, j=3",
                               "input A[4,3]; output B[i] = pad(A[i - 1,2]) where i=6"}) {
    const Computation c = parse_workload(workload).computation();
    EXPECT_EQ(with_padding_stages(with_padding_stages(c)), with_padding_stages(c)) << workload;
    EXPECT_LE(worst_excess(c, naive_program(c), 1), 0) << workload;
  }
}

TEST(Lower, RegisterTileOfAMatmulIsTheExpectedProgram) {
  const auto program = lower(computed("matmul(m=8,n=32,k=6)"),
                             steps("tile C i 4 4 2\n"
                                   "tile C j 16 16 16 8\n"
                                   "tile C l 6 2\n"
                                   "order C i.0 j.0 i.1 j.1 l.0 i.2 j.2 l.1 l.2 i.3 j.3 j.4\n"
                                   "vector C j.4\n"
                                   "unroll C l.2 i.3 j.3\n"
                                   "accumulate C above l.1\n"),
                             8);
  ASSERT_TRUE(program.ok()) << program.reason().text;
  EXPECT_EQ(to_text(*program),
            "buffer A f32 [8,6] input\n"
            "buffer B f32 [6,32] input\n"
            "buffer C f32 [8,32] output\n"
            "buffer C.tile f32 [2,2,8] temporary registers\n"
            "run\n"
            "  for i.0 2\n"
            "    for j.0 2\n"
            "      for i.2 2\n"
            "        for i.3 2 unrolled\n"
            "          for j.3 2 unrolled\n"
            "            for j.4 8 vector\n"
            "              C.tile[i.3,j.3,j.4] = 0\n"
            "        for l.1 3\n"
            "          for l.2 2 unrolled\n"
            "            for i.3 2 unrolled\n"
            "              for j.3 2 unrolled\n"
            "                for j.4 8 vector\n"
            "                  C.tile[i.3,j.3,j.4] += A[4*i.0 + 2*i.2 + i.3,2*l.1 + l.2] * B[2*l.1 + l.2,16*j.0 + "
            "8*j.3 + j.4]\n"
            "        for i.3 2 unrolled\n"
            "          for j.3 2 unrolled\n"
            "            for j.4 8 vector\n"
            "              C[4*i.0 + 2*i.2 + i.3,16*j.0 + 8*j.3 + j.4] = C.tile[i.3,j.3,j.4]\n");
}

// The elements of A that one step along the reduction first touches, those of B two panels ahead in its packed copy,
// and the next tile of C.
TEST(Lower, PrefetchesAskForWhatComesFirst) {
  const Computation c = computed("matmul(m=8,n=64,k=12)");
  const auto lowered = [&](const char* prefetches) {
    return lower(c,
                 steps(std::string("tile C i 2\n"
                                   "tile C j 32 8\n"
                                   "order C j.0 i.0 l.0 i.1 j.1 j.2\n"
                                   "vector C j.2\n"
                                   "unroll C i.1 j.1\n"
                                   "accumulate C above l.0\n"
                                   "pack C B above i.0\n") +
                       prefetches),
                 8);
  };
  const auto program = lowered("prefetch C A i.0 3\nprefetch C B l.0 2\nprefetch C C i.0 1\n");
  ASSERT_TRUE(program.ok()) << program.reason().text;
  EXPECT_LE(worst_excess(c, *program, 1), 0);
  const std::string text = to_text(*program);
  // Two rows of 12 elements that follow one another, and two lines of a row of 32 elements for each row of C.
  EXPECT_TRUE(contains(text,
                       "\n    for i.0 4 prefetch A[2*i.0 + 6,0], A[2*i.0 + 7,4], C[2*i.0 + 2,32*j.0], "
                       "C[2*i.0 + 2,32*j.0 + 16], C[2*i.0 + 3,32*j.0], C[2*i.0 + 3,32*j.0 + 16]\n"))
      << text;
  // 32 packed elements, side by side.
  EXPECT_TRUE(contains(text, "\n      for l.0 12 prefetch C.B.packed[l.0 + 2,0,0], C.B.packed[l.0 + 2,2,0]\n")) << text;
  // The copy that is made inside of j.0 reads B itself.
  const auto outside = lowered("prefetch C B j.0 1\n");
  ASSERT_TRUE(outside.ok()) << outside.reason().text;
  EXPECT_TRUE(contains(to_text(*outside), "for j.0 2 prefetch B[0,32*j.0 + 32], B[0,32*j.0 + 48], B[1,32*j.0 + 32], "));
  EXPECT_FALSE(*outside == *lowered(""));
}

// A window that moves by less than its width prefetches only its new end; if nothing is read, nothing is prefetched.
TEST(Lower, PrefetchesOfWindowsAskForTheirEnd) {
  const Computation c = computed("conv2d(c=4,h=40,w=16,k=2,r=3,s=3,pad=1)");
  const auto program = lower(c, steps("absorb Y P\norder Y b.0 o.0 i.0 y.0 u.0 v.0 x.0\nprefetch Y X y.0 2\n"), 1);
  ASSERT_TRUE(program.ok()) << program.reason().text;
  EXPECT_LE(worst_excess(c, *program, 1), 0);
  // Rows y - 1 .. y + 1 of 16 elements and a border: the row y + 3 begins left of the data.
  EXPECT_TRUE(contains(to_text(*program), "prefetch X[0,i.0,y.0 + 4,-1]")) << to_text(*program);
  EXPECT_NO_THROW(check(*program, "here"));
  const auto many = lower(computed("matmul(m=64,n=64,k=64)"), steps("order C l.0 i.0 j.0\nprefetch C A l.0 1\n"), 1);
  EXPECT_TRUE(many.ok());
  const auto more = lower(computed("matmul(m=65,n=64,k=64)"), steps("order C l.0 i.0 j.0\nprefetch C A l.0 1\n"), 1);
  ASSERT_FALSE(more.ok());
  EXPECT_EQ(more.reason().text, "prefetch: an iteration touches 65 x 1 lines of A, more than 64");
}

TEST(Lower, TailsOfEveryLevelComputeTheReference) {
  const char* schedule =
      "tile C i 6 3\n"
      "tile C j 16 8 4\n"
      "tile C l 4 2\n"
      "order C i.0 j.0 l.0 i.1 j.1 l.1 l.2 i.2 j.2 j.3\n"
      "vector C j.3\n"
      "unroll C l.2 i.2\n"
      "accumulate C above l.1\n"
      "pack C B above j.0\n"
      "pack C A above l.0\n";
  for (const char* workload :
       {"matmul(m=13,n=17,k=7)", "matmul(m=6,n=16,k=4)", "matmul(m=1,n=1,k=1)", "matmul(m=7,n=3,k=9)"}) {
    const Computation c = computed(workload);
    const auto program = lower(c, steps(schedule), 4);
    ASSERT_TRUE(program.ok()) << program.reason().text;
    EXPECT_LE(worst_excess(c, *program, 5), 0) << workload << "\n" << to_text(*program);
    check(*program, "test");
  }
}

TEST(Lower, BlocksOfNeighboursArePackedForTheOrderInWhichTheyAreRead) {
  const Computation c = computed("matmul(m=11,n=8,k=21)");
  const auto program = lower(c,
                             steps("tile C i 6 3\n"
                                   "tile C l 10 2\n"
                                   "order C i.0 l.0 i.1 l.1 l.2 i.2 j.0\n"
                                   "vector C j.0\n"
                                   "unroll C l.2 i.2\n"
                                   "pack C A by 4 above l.0\n"),
                             8);
  ASSERT_TRUE(program.ok()) << program.reason().text;
  EXPECT_LE(worst_excess(c, *program, 1), 0);
  const std::string text = to_text(*program);
  // l.1 and l.2 are one dimension, within the block of i.1; the copy goes through it by 4.
  EXPECT_NE(text.find("buffer C.A.packed f32 [3,2,10,3] temporary"), std::string::npos) << text;
  EXPECT_NE(text.find("for i.2 3 unrolled\n          for l.3 4 vector\n"), std::string::npos) << text;
  EXPECT_FALSE(lower(c, steps("pack C B by 4 above l.0\norder C i.0 l.0 j.0"), 8).ok());
}

// A constant's padded copy that is computed within its reader is not there in `prepare`: packing it is part of the run.
TEST(Lower, WhatIsComputedInTilesIsNotPackedAhead) {
  const Computation c =
      computed("constant A[2]; input B[6]; output y[i | r] += select(r < 2, pad(A[r]), pad(B[r - 2])) where i=1, r=8");
  const auto program = lower(c,
                             steps("tile y r 4 1\norder y r.0 r.1 r.2\ncompute y A.pad above r.0\n"
                                   "accumulate y above r.0\npack y A.pad above r.0\n"),
                             8);
  ASSERT_TRUE(program.ok()) << program.reason().text;
  EXPECT_LE(worst_excess(c, *program, 1), 0) << to_text(*program);
  EXPECT_TRUE(program->prepare.empty()) << to_text(*program);
}

TEST(Lower, ConstantsPackedAboveEverythingGoToPrepare) {
  const Computation c = computed("dense(m=5,n=12,k=7)");
  const auto program = lower(c,
                             steps("tile T j 4\norder T j.0 i.0 l.0 j.1\nvector T j.1\n"
                                   "accumulate T above i.0\npack T W above j.0\n"),
                             4);
  ASSERT_TRUE(program.ok()) << program.reason().text;
  EXPECT_FALSE(program->prepare.empty());
  EXPECT_LE(worst_excess(c, *program, 2), 0);
}

// Loops of extent 1 are outside of all others: they repeat nothing.
TEST(Lower, ConstantsOfABatchOfOneGoToPrepareToo) {
  const Computation c = computed("conv2d(c=8,h=9,w=9,k=16,r=3,s=3)");
  const auto program = lower(c,
                             steps("tile Y o 8\norder Y o.0 y.0 x.0 i.0 u.0 v.0 o.1\nvector Y o.1\n"
                                   "accumulate Y above i.0\npack Y W above o.0 y.0 x.0\n"),
                             8);
  ASSERT_TRUE(program.ok()) << program.reason().text;
  EXPECT_FALSE(program->prepare.empty());
  EXPECT_LE(worst_excess(c, *program, 2), 0);
}

TEST(Lower, FusedConsumerNeedsNoTemporary) {
  const Computation c = computed("dense(m=5,n=12,k=7)");
  const auto program = lower(c, steps("order T i.0 j.0 l.0\naccumulate T above l.0\nfuse T Y\n"), 4);
  ASSERT_TRUE(program.ok()) << program.reason().text;
  for (const Buffer& buffer : program->buffers) EXPECT_NE(buffer.name, "T");
  EXPECT_LE(worst_excess(c, *program, 2), 0);
}

struct Refusal {
  const char* steps;
  const char* words;
};

TEST(Lower, WhatDoesNotApplyHasAReason) {
  for (const Refusal& refusal : std::initializer_list<Refusal>{
           {"tile Z i 4\n", "there is no stage Z"},
           {"tile C q 4\n", "C has no axis q"},
           {"tile C i 8 3\n", "3 does not divide 8"},
           {"tile C i 4\ntile C i 2\n", "i is already tiled"},
           {"order C i.0 j.0\n", "l.0 is missing"},
           {"order C i.0 i.0 j.0 l.0\n", "i.0 is named twice"},
           {"tile C i 4\norder C i.1 i.0 j.0 l.0\n", "i.1 stands before its outer loop"},
           {"vector C i.0\n", "i.0 is not innermost"},
           {"vector C l.0\n", "l.0 is reduced"},
           {"parallel C j.0\n", "j.0 is not outermost"},
           {"order C i.0 l.0 j.0\nparallel C i.0 j.0\n", "j.0 is not outermost"},
           {"order C l.0 i.0 j.0\nparallel C l.0 i.0\n", "l.0 is reduced"},
           {"parallel C i.0 j.0\naccumulate C above j.0\n", "parallel C: results are kept above or between"},
           {"parallel C i.0 j.0\npack C B above j.0\n", "parallel C: B is packed between its parallel loops"},
           {"unroll C i.0\nunroll C i.0\n", "i.0 is already unrolled"},
           {"pack C C above i.0\n", "C does not read C"},
           {"fuse C C\n", "C is an output itself"},
           {"accumulate C above l.3\n", "C has no loop l.3"},
           {"unroll C i.0x\n", "C has no loop i.0x"},
           {"prefetch C X l.0 1\n", "C neither reads nor writes X"},
           {"prefetch C B l.1 1\n", "C has no loop l.1"},
           {"prefetch C B l.0 8\n", "l.0 has 8 iterations"},
           {"prefetch C B l.0 1\nprefetch C B j.0 1\n", "B is already prefetched"},
           {"prefetch C B l.0 1\ntile C j 4\n", "comes after other steps of C, but must come before them"},
           {"order C i.0 l.0 j.0\nvector C j.0\nprefetch C B j.0 1\n", "prefetch C B j.0: the loop is vector"},
           {"parallel C i.0\nprefetch C A i.0 1\n", "prefetch C A i.0: the loop is parallel"},
           {"accumulate C above l.0\nprefetch C C l.0 1\n", "prefetch C C l.0: results are kept outside of it"},
           {"prefetch C B i.0 1\n", "prefetch C B i.0: the loop does not move it"},
           {"unroll C i.0\ntile C j 4\n", "comes after other steps of C, but must come before them"},
           {"accumulate C above l.0\norder C l.0 i.0 j.0\n",
            "comes after other steps of C, but must come before them"}}) {
    const auto program = lower(computed("matmul(m=8,n=8,k=8)"), steps(refusal.steps), 1);
    ASSERT_FALSE(program.ok()) << refusal.steps;
    EXPECT_NE(program.reason().text.find(refusal.words), std::string::npos) << program.reason().text;
  }
}

constexpr const char* chain =
    "input A[6,8]; input B[8,10]; input Z[6,10]; constant bias[10]; T[i,j] += A[i,l] * B[l,j];"
    "S[i,j] = T[i,j] + bias[j]; R[i,j] = S[i,j] * S[i,j] + Z[i,j]; output Y[i,j] = min(max(R[i,j], 0), 6)"
    " where i=6, j=10, l=8";

TEST(Lower, AChainOfElementWiseStagesIsFused) {
  const Computation c = computed(chain);
  const std::string tiled = "tile T j 4\norder T i.0 j.0 l.0 j.1\nvector T j.1\naccumulate T above l.0\n";
  const auto all = lower(c, steps(tiled + "fuse T S\nfuse S R\nfuse R Y\n"), 4);
  ASSERT_TRUE(all.ok()) << all.reason().text;
  EXPECT_EQ(all->buffers.size(), 6u);  // five parameters and the accumulators
  EXPECT_LE(worst_excess(c, *all, 3), 0);
  const auto part = lower(c, steps(tiled + "fuse T S\nfuse S R\n"), 4);
  ASSERT_TRUE(part.ok()) << part.reason().text;
  EXPECT_EQ(part->buffers.size(), 7u);  // R, too
  EXPECT_LE(worst_excess(c, *part, 3), 0);
}

TEST(Lower, AChainIsFusedFromItsHead) {
  struct Case {
    std::string text, steps, reason;
  };
  const std::string ordered = "order T i.0 j.0 l.0\naccumulate T above l.0\n";
  const std::vector<Case> cases = {
      {chain, ordered + "fuse S R\n", "fuse S R: S does not accumulate"},
      {chain, ordered + "fuse T S\nfuse S Y\n", "fuse S Y: Y needs a stage after T"},
      {"input A[4,4] : f64; T[i] : f64 += A[i,l]; S[i] : f64 = T[i] + 1; U[i] : f64 += A[i,l];"
       "output Y[i] : f64 = S[i] * U[i] where i=4, l=4",
       "accumulate T above l.0\nfuse T S\nfuse S Y\n", "fuse S Y: Y needs a stage after T"},
      {"input A[4,4]; T[i] += A[i,l]; S[i] = T[i] * 3; output Y[i] : f64 = S[i] where i=4, l=4",
       "accumulate T above l.0\nfuse T S\nfuse S Y\n", "fuse S Y: S and Y are of different types"},
  };
  for (const Case& one : cases) {
    const auto program = lower(computed(one.text), steps(one.steps), 1);
    ASSERT_FALSE(program.ok()) << one.steps;
    EXPECT_EQ(program.reason().text, one.reason);
  }
}

TEST(Lower, AChainThatExplodesIsRefused) {
  std::string text = "input A[4,4]; T0[i] += A[i,l];", fusing = "accumulate T0 above l.0\n";
  for (int n = 1; n <= 20; ++n) {
    text += "T" + std::to_string(n) + "[i] = T" + std::to_string(n - 1) + "[i] * T" + std::to_string(n - 1) + "[i];";
    fusing += "fuse T" + std::to_string(n - 1) + " T" + std::to_string(n) + "\n";
  }
  text += "output Y[i] = T20[i] where i=4, l=4";
  const auto program = lower(computed(text), steps(fusing), 1);
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.reason().text, "fused stages make a value of more than 4096 operations");
}

TEST(Lower, PaddingMayBeAnotherNumberThanZero) {
  for (const char* text : {"max_pool2d(c=2,h=5,w=9,r=3,s=2,stride=2,pad=1)", "max_pool2d(c=2,h=5,w=9,r=2,s=2,pad=2)",
                           "input A[5]; output B[i] = pad(A[i - 2], 0.5) * 2 where i=9",
                           "input A[5] : i32; output B[i] : i32 max= pad(A[i + u - 2], -7) where i=9, u=2"}) {
    const Computation c = computed(text);
    const auto wide = lower(c, {}, 4);
    ASSERT_TRUE(wide.ok());
    EXPECT_LE(worst_excess(c, *wide, 5), 0) << text;
    EXPECT_LE(worst_excess(c, naive_program(c), 5), 0) << text;
  }
}

// Every combination of main parts and remainders is a nest of its own, with a tile of its own.
TEST(Lower, ParallelLoopsAreBands) {
  const Computation c = computed("matmul(m=7,n=10,k=3)");
  const auto program = lower(c,
                             steps("tile C i 2\ntile C j 4\norder C j.0 i.0 l.0 i.1 j.1\nparallel C i.0 j.0\n"
                                   "accumulate C above l.0\npack C A above l.0\n"),
                             1, 2);
  ASSERT_TRUE(program.ok()) << program.reason().text;
  check(*program, "test");
  EXPECT_LE(worst_excess(c, *program, 3), 0) << to_text(*program);
  std::vector<std::string> outermost;
  for (std::size_t n = 0; n < program->run.size(); n = std::size_t(program->run[n].end)) {
    const Node& node = program->run[n];
    ASSERT_EQ(node.kind, Node::Kind::loop);
    const Loop& loop = program->loops[std::size_t(node.item)];
    outermost.push_back(loop.name + (loop.kind == LoopKind::parallel ? " parallel" : ""));
    if (loop.kind != LoopKind::parallel) continue;
    for (std::size_t inner = n + 2; inner < std::size_t(node.end); ++inner) {
      if (program->run[inner].kind != Node::Kind::loop) continue;
      EXPECT_NE(program->loops[std::size_t(program->run[inner].item)].kind, LoopKind::parallel);
    }
  }
  EXPECT_EQ(outermost, std::vector<std::string>(4, "j.0 parallel")) << "the last one of a single iteration";
  std::set<std::string> names;
  for (const Buffer& buffer : program->buffers) EXPECT_TRUE(names.insert(buffer.name).second) << buffer.name;
  EXPECT_EQ(names.count("C.tile3"), 1u);
}

TEST(Lower, OneThreadLowersAsIfThreadsWereNotKnown) {
  const Computation c = computed("conv2d(c=16,h=34,w=34,k=8,r=3,s=3,pad=1)");
  EXPECT_EQ(hash(*lower(c, {}, 8, 1)), hash(*lower(c, {}, 8)));
  EXPECT_NE(hash(*lower(c, {}, 8, 2)), hash(*lower(c, {}, 8)));
}

TEST(Lower, LargeNestsThatNoStepDescribesRunInParallel) {
  const auto kinds = [](const LoopProgram& program) {
    std::vector<int> bands;
    for (std::size_t n = 0; n < program.run.size(); n = std::size_t(program.run[n].end)) {
      int parallel = 0;
      for (std::size_t at = n; at < std::size_t(program.run[n].end); ++at) {
        const Node& node = program.run[at];
        parallel += node.kind == Node::Kind::loop && program.loops[std::size_t(node.item)].kind == LoopKind::parallel;
      }
      bands.push_back(parallel);
    }
    return bands;
  };
  // Zeros, the inside, the start values and the sum.
  const Computation large = computed("conv2d(c=20,h=32,w=32,k=20,r=3,s=3,pad=1)");
  EXPECT_EQ(kinds(*lower(large, {}, 8, 2)), (std::vector<int>{1, 1, 1, 1}));
  EXPECT_EQ(kinds(*lower(large, {}, 8, 8)), (std::vector<int>{2, 2, 2, 2})) << "20 tasks are too few for 8 threads";
  EXPECT_EQ(kinds(*lower(large, {}, 8, 1)), (std::vector<int>{0, 0, 0, 0}));
  const Computation small = computed("conv2d(c=2,h=12,w=12,k=2,r=3,s=3,pad=1)");
  EXPECT_EQ(kinds(*lower(small, {}, 8, 2)), (std::vector<int>{0, 0, 0, 0}));
  const Computation c = computed("matmul(m=4,n=256,k=130)");
  const auto packed = lower(c,
                            steps("tile C j 16\norder C j.0 i.0 l.0 j.1\nvector C j.1\nparallel C j.0 i.0\n"
                                  "accumulate C above l.0\npack C B above j.0\n"),
                            16, 2);
  ASSERT_TRUE(packed.ok()) << packed.reason().text;
  EXPECT_EQ(kinds(*packed), (std::vector<int>{1, 2}));
  EXPECT_LE(worst_excess(c, *packed, 3), 0);
}

TEST(Lower, FewerTasksThanThreadsAreRefused) {
  const Computation c = computed("matmul(m=8,n=8,k=8)");
  const Schedule schedule = steps("tile C i 4\norder C i.0 j.0 l.0 i.1\nparallel C i.0\n");
  EXPECT_TRUE(lower(c, schedule, 1, 2).ok());
  const auto refused = lower(c, schedule, 1, 3);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.reason().text, "parallel C: 2 tasks for 3 threads");
}

TEST(Lower, FusingOutsideOfTheReductionIsRefused) {
  const auto program = lower(computed("dense(m=8,n=8,k=8)"),
                             steps("tile T l 2\norder T l.0 i.0 j.0 l.1\naccumulate T above l.1\nfuse T Y\n"), 1);
  ASSERT_FALSE(program.ok());
  EXPECT_NE(program.reason().text.find("l.0 reduces outside of its tile"), std::string::npos) << program.reason().text;
}

TEST(Space, SampledProgramsComputeTheReference) {
  for (const char* text :
       {"matmul(m=20,n=37,k=11)", "dense(m=9,n=24,k=10)", "conv2d(c=6,h=9,w=9,k=20,r=3,s=3,stride=2,pad=1)",
        "conv2d(c=5,h=7,w=7,k=18,r=3,s=3,pad=1)", "conv2d_nchwc(c=16,h=6,w=6,k=32,r=3,s=3,pad=1,block=16)",
        "depthwise_conv2d(c=4,h=12,w=12,r=3,s=3,pad=1)", "matmul(m=4,n=4,k=4)",
        "input A[40]; output S[] += A[i] * A[i] where i=40",
        "input A[9,30]; output B[i,j] = exp(A[i,j]) where i=9, j=30"}) {
    const Workload workload = parse_workload(text);
    const Computation c = workload.computation();
    Target threads = target_with(256, 16);
    threads.threads = 2;
    for (const Target& target :
         {target_with(0, 32), target_with(128, 16), target_with(256, 16), target_with(512, 32), threads}) {
      const JudgedSpace space = judged_space(workload, target);
      base::Stream stream(7, text, std::uint64_t(target.vector_bits));
      Candidate candidate = space.sample(stream);
      for (int i = 0; i < 12; ++i) {
        const auto program = codegen::program(candidate, target);
        ASSERT_TRUE(program.ok()) << program.reason().text;
        ASSERT_LE(worst_excess(c, *program, 11), 0) << text << " bits " << target.vector_bits << " draw " << i << "\n"
                                                    << to_text(*schedule(candidate)) << to_text(*program);
        check(*program, "sample");
        const auto mutant = space.mutate(candidate, stream);
        candidate = i % 2 == 0 && mutant ? *mutant : space.sample(stream);
      }
    }
  }
}

}  // namespace
}  // namespace graft::codegen
