#include "codegen/schedule/rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "codegen/expression/suites.h"
#include "codegen/program/forms.h"
#include "codegen/schedule/candidate_program.h"
#include "tests/schedule/support.h"
#include "tests/support/judged_space.h"

namespace graft::codegen {
namespace {

using namespace test;

std::vector<SketchSpace> derived(std::string_view workload, std::int64_t vector_bits = 256) {
  return derive_sketches(computed(workload), target_with(vector_bits, 16));
}

std::vector<std::string> names(const std::vector<SketchSpace>& sketches) {
  std::vector<std::string> result;
  for (const SketchSpace& sketch : sketches) result.push_back(sketch.sketch->name);
  return result;
}
using Names = std::vector<std::string>;

TEST(Rules, OneSketchPerAxisThatCanBeVectorised) {
  EXPECT_EQ(names(derived("matmul(m=32,n=32,k=32)")), Names{"C_by_j"});
  // Weights vary along o and, contiguous, the results along x; y would move activations by a whole row.
  EXPECT_EQ(names(derived("conv2d(c=8,h=18,w=18,k=16,r=3,s=3)")),
            (Names{"Y_by_o", "Y_by_x", "Y_winograd_4", "Y_winograd_2"}));
  EXPECT_EQ(names(derived("conv2d_nchwc(c=16,h=6,w=6,k=32,r=3,s=3,stride=2,block=16)")), Names{"Y_by_e"});
  EXPECT_EQ(names(derived("input A[9,30]; output B[i,j] = exp(A[i,j]) where i=9, j=30")), Names{"B_by_j"});
}

TEST(Rules, WithoutVectorsOrALongEnoughAxisThereIsOneScalarSketch) {
  EXPECT_EQ(names(derived("conv2d(c=8,h=18,w=18,k=16,r=5,s=5)", 0)), Names{"Y_scalar"});
  EXPECT_EQ(names(derived("matmul(m=32,n=3,k=32)")), Names{"C_scalar"});
  for (const SketchSpace& sketch : derived("matmul(m=32,n=3,k=32)")) {
    EXPECT_FALSE(contains(to_text(*sketch.sketch), "vector C"));
  }
}

TEST(Rules, EveryReducingStageIsTiledInEveryCombination) {
  const auto sketches = derived(
      "input A[8,16]; input B[16,8]; input D[8,8]; T[i,j] += A[i,l] * B[l,j];"
      "output U[i,j] += T[i,m] * D[m,j] where i=8, j=8, l=16, m=8");
  EXPECT_EQ(names(sketches), Names{"T_by_j_U_by_j"});
  EXPECT_TRUE(contains(to_text(*sketches[0].sketch), "tile T l "));
  EXPECT_TRUE(contains(to_text(*sketches[0].sketch), "tile U m "));
}

TEST(Rules, ConstantsThatVectorsNeedPackedAreAlwaysPacked) {
  const auto sketches = derived("conv2d(n=2,c=8,h=18,w=18,k=16,r=3,s=3)");
  ASSERT_GE(sketches.size(), 2u);
  const std::string by_o = to_text(*sketches[0].sketch), by_x = to_text(*sketches[1].sketch);
  EXPECT_TRUE(contains(by_o, "\npack Y W above b.0 o.0 y.0 x.0\n")) << by_o;
  EXPECT_TRUE(contains(by_x, "\n$Y_pack_W{|pack Y W above b.0 o.0 y.0 x.0}\n")) << by_x;
  EXPECT_FALSE(contains(by_o + by_x, "pack Y X")) << "windows overlap: packing would copy elements twice";
  base::Stream stream(1, "rules");
  const JudgedSpace space(parse_workload("conv2d(n=2,c=8,h=18,w=18,k=16,r=3,s=3)"), target_with(256, 16),
                          {sketches[0]});
  for (int i = 0; i < 20; ++i) {
    const auto program = codegen::program(space.sample(stream), space.target());
    ASSERT_TRUE(program.ok());
    EXPECT_FALSE(program->prepare.empty());
  }
}

// Every stage by itself, with the border read in place, or each within its reader: all of it samples and is right.
TEST(Rules, WinogradIsProposedWhereItApplies) {
  for (const char* workload :
       {"conv2d_nchwc(c=16,h=9,w=8,k=16,r=3,s=3,pad=1,block=8)", "conv2d(c=9,h=8,w=8,k=8,r=3,s=3,pad=1)",
        "conv2d_residual(c=8,h=8,w=8,k=8,r=3,s=3,pad=1)"}) {
    const Computation c = computed(workload);
    int winograd = 0;
    for (const SketchSpace& sketch : derived(workload)) {
      if (sketch.sketch->name.find("winograd") == std::string::npos) continue;
      ++winograd;
      const JudgedSpace space(parse_workload(workload), target_with(256, 16), {sketch});
      base::Stream stream(1, "rules");
      bool within = false, apart = false;
      for (int i = 0; i < 12; ++i) {
        const Candidate candidate = space.sample(stream);
        (contains(to_text(*schedule(candidate)), "compute ") ? within : apart) = true;
        const auto program = codegen::program(candidate, space.target());
        ASSERT_TRUE(program.ok()) << program.reason().text;
        EXPECT_LE(worst_excess(c, *program, 1), 0) << workload << "\n" << to_text(*schedule(candidate));
      }
      EXPECT_TRUE(apart) << workload;
      EXPECT_TRUE(within || !contains(workload, "nchwc") || sketch.sketch->name.back() == '2') << workload;
    }
    EXPECT_EQ(winograd, 2) << workload;
  }
  for (const char* workload : {"conv2d(c=8,h=9,w=9,k=8,r=3,s=3,stride=2)", "conv2d(c=8,h=9,w=9,k=8,r=1,s=1)",
                               "depthwise_conv2d(c=8,h=9,w=9,r=3,s=3)", "matmul(m=8,n=8,k=8)"}) {
    for (const std::string& name : names(derived(workload))) {
      EXPECT_FALSE(contains(name, "winograd")) << workload;
    }
  }
}

// Images with one channel after the other: transforms read along rows or channels, and write along the others. Vectors
// are as they are read, a few side by side, and turned in registers.
TEST(Rules, WinogradsTransformsHaveVectorsWhereResultsLieOtherwise) {
  const char* const workload = "conv2d(c=19,h=16,w=16,k=18,r=3,s=3,pad=1)";
  const Computation c = computed(workload);
  for (const SketchSpace& sketch : derived(workload)) {
    if (!contains(sketch.sketch->name, "winograd")) continue;
    const std::string text = to_text(*sketch.sketch);
    for (const char* stage : {"Y", "Y.rows", "Y.M", "Y.V", "Y.V.rows"})
      EXPECT_TRUE(contains(text, std::string("\nvector ") + stage + " ")) << stage << "\n" << text;
    EXPECT_TRUE(contains(text, "vector Y o.")) << text;
    EXPECT_TRUE(contains(text, "vector Y.V.rows x.")) << text;
    EXPECT_TRUE(contains(text, "unroll Y.V.rows p.0 fy.0 i.1")) << text;
    const JudgedSpace space(parse_workload(workload), target_with(256, 16), {sketch});
    base::Stream stream(2, "rules");
    for (int i = 0; i < 6; ++i) {
      const Candidate candidate = space.sample(stream);
      const auto program = codegen::program(candidate, space.target());
      ASSERT_TRUE(program.ok()) << program.reason().text;
      EXPECT_LE(worst_excess(c, *program, 1), 0) << to_text(*schedule(candidate));
    }
  }
}

TEST(Rules, SumsAlongMemoryAreFactored) {
  const char* const workload = "input A[5,64]; output B[i] += A[i,j] where i=5, j=64";
  const auto sketches = derived(workload);
  EXPECT_EQ(names(sketches), (Names{"B_scalar", "B.rf_by_j_i_B_scalar_factored", "B_lanes_of_j"}));
  const JudgedSpace space(parse_workload(workload), target_with(256, 16), {sketches[1]});
  base::Stream stream(1, "rules");
  for (int i = 0; i < 10; ++i) {
    const auto program = codegen::program(space.sample(stream), space.target());
    ASSERT_TRUE(program.ok()) << program.reason().text;
    EXPECT_LE(worst_excess(computed(workload), *program, 1), 0);
  }
}

TEST(Rules, RowsAreReducedInLanesAndChainsOfThemBlockByBlock) {
  const std::tuple<const char*, const char*, std::int64_t> rows[] = {
      {"softmax(m=9,n=45)", "rows_largest_total", 1},
      {"layer_norm(m=9,n=45)", "rows_total_square", 1},
      {"softmax(m=9,n=45)", "rows_largest_total", 2},
      {"input A[7,45]; output B[i] += A[i,j] where i=7, j=45", "B_lanes_of_j", 1},
      {"input A[45]; output B[] max= A[j] where j=45", "B_lanes_of_j", 1},
      {"input A[9,45]; output B[i] += A[i,j] * A[i,j] where i=9, j=45", "B_lanes_of_j", 2},
      // Without a vector for the rows: the element-wise stages are absorbed or fused.
      {"input A[7,45]; E[i,j] = exp(A[i,j]); S[i] += E[i,l]; output Y[i] = log(S[i]) where i=7, j=45, l=45",
       "S_lanes_of_l", 1},
      {"input A[7,45]; M[i] max= A[i,l]; E[i,j] = exp(A[i,j] - M[i]); S[i] += E[i,l]; output Y[i] = log(S[i]) + M[i] "
       "where i=7, j=45, l=45",
       "rows_M_S", 1},
      // The last stage is a reduction itself; several leading axes; a row of its own for each of two.
      {"input A[7,45]; M[i] += A[i,l]; D[i,j] = A[i,j] - M[i] / 45; output V[i] += D[i,l] * D[i,l] where i=7, j=45, "
       "l=45",
       "rows_M_V", 1},
      {"input A[2,3,19]; M[b,i] max= A[b,i,l]; output Y[b,i,j] = A[b,i,j] - M[b,i] where b=2, i=3, j=19, l=19",
       "rows_M", 2},
      {"input A[1,40]; M[i] max= A[i,l]; output Y[i,j] = A[i,j] - M[i] where i=1, j=40, l=40", "rows_M", 1},
  };
  for (const auto& [workload, name, threads] : rows) {
    SCOPED_TRACE(workload);
    Target target = target_with(256, 16);
    target.threads = threads;
    const auto sketches = derive_sketches(computed(workload), target);
    const auto found = std::find_if(sketches.begin(), sketches.end(),
                                    [&](const SketchSpace& sketch) { return sketch.sketch->name == name; });
    ASSERT_NE(found, sketches.end()) << to_text(*sketches.back().sketch);
    const JudgedSpace space(parse_workload(workload), target, {*found});
    base::Stream stream(3, "rows");
    for (int i = 0; i < 10; ++i) {
      const auto program = codegen::program(space.sample(stream), target);
      ASSERT_TRUE(program.ok()) << program.reason().text;
      EXPECT_LE(worst_excess(computed(workload), *program, std::uint64_t(i)), 0) << to_text(*program);
      EXPECT_EQ(contains(to_text(*program), " parallel\n"), threads > 1) << to_text(*program);
    }
  }
}

// Datasets and models refer to sketches by name and text.
TEST(Rules, WhatReducesNoRowsHasTheSketchesThatItHad) {
  for (const Suite& suite : suites()) {
    for (const Workload& workload : suite.workloads) {
      const std::string& text = workload.text();
      if (contains(text, "softmax") || contains(text, "layer_norm")) continue;
      for (const std::string& name : names(derived(text))) {
        EXPECT_FALSE(contains(name, "rows_") || contains(name, "_lanes_of_")) << text << ": " << name;
      }
    }
  }
  for (const char* text : {"matmul(m=32,n=3,k=32)",
                           "input A[9,40]; input B[7,40]; output C[i,j] += A[i,l] * B[j,l] "
                           "where i=9, j=7, l=40"}) {
    for (const std::string& name : names(derived(text))) EXPECT_FALSE(contains(name, "_lanes_of_")) << name;
  }
}

// A stage whose axes are all of batches, and which sums one element: its loops' order is the only choice.
TEST(Rules, AStageOfBatchesAloneHasAnOrder) {
  for (const SketchSpace& space :
       derived("input A[3,4,1]; input B[3,4,1]; output y[i,j] += A[i,j,l] * B[i,j,l] where i=3, j=4, l=1")) {
    EXPECT_NE(to_text(*space.sketch).find("order y"), std::string::npos);
    for (const Domain& domain : space.domains)
      for (const int argument : domain.arguments) EXPECT_LT(argument, int(space.sketch->arguments.size()));
  }
}

TEST(Rules, AxesWithoutReuseAreNotTiled) {
  const std::string text = to_text(*derived("batch_matmul(b=6,m=16,n=16,k=16)")[0].sketch);
  EXPECT_FALSE(contains(text, "tile C z ")) << text;
  EXPECT_TRUE(contains(text, "z.0 i.0 j.0")) << text;
}

TEST(Rules, AStageThatReducesNothingHasASpaceToo) {
  base::Stream stream(1, "rules");
  // The second one's reduction is over nothing but axes of extent 1.
  for (const char* text : {"input A[33,61]; constant B[31,33]; output C[i,j] = A[j,2*i] + B[i,j] where i=31, j=33",
                           "transposed_conv2d(n=3,c=1,h=11,w=4,k=9,r=2,s=2)"}) {
    const JudgedSpace space = judged_space(parse_workload(text), target_with(256, 16));
    const Computation c = computed(space.workload().text());
    for (int i = 0; i < 10; ++i) {
      const auto program = codegen::program(space.sample(stream), space.target());
      ASSERT_TRUE(program.ok());
      EXPECT_LE(worst_excess(c, *program, 1), 0);
    }
  }
}

TEST(Rules, AChainOfElementwiseStagesIsFused) {
  for (const SketchSpace& sketch : derived("conv2d_residual(c=8,h=9,w=9,k=16,r=3,s=3,pad=1)")) {
    if (sketch.sketch->name.find("winograd") != std::string::npos) continue;
    const std::string text = to_text(*sketch.sketch);
    EXPECT_TRUE(contains(text, "\n$T_accumulate{fuse T S|}\n$T_accumulate{fuse S Y|}\n")) << text;
  }
}

TEST(Rules, AnElementwiseConsumerIsFusedWhereTheWholeReductionLiesInside) {
  const auto sketches = derived("dense(m=16,n=32,k=16)");
  ASSERT_FALSE(sketches.empty());
  for (const SketchSpace& sketch : sketches) {
    const std::string text = to_text(*sketch.sketch);
    EXPECT_TRUE(contains(text, "\naccumulate T above $T_accumulate{l.0|l.1}\n$T_accumulate{fuse T Y|}\n")) << text;
  }
  EXPECT_FALSE(contains(to_text(*derived("matmul(m=16,n=32,k=16)")[0].sketch), "fuse"));
}

TEST(Rules, TargetsWithThreadsHaveParallelLoopsWhereThereIsWork) {
  Target target = target_with(256, 16);
  const auto text = [&](std::string_view workload) {
    return to_text(*derive_sketches(computed(workload), target)[0].sketch);
  };
  EXPECT_FALSE(contains(text("matmul(m=32,n=32,k=32)"), "parallel"));
  target.threads = 2;
  EXPECT_TRUE(contains(text("matmul(m=32,n=32,k=32)"), "\norder C $C_order_s0{i.0 j.0|i.0 j.0|j.0 i.0|j.0 i.0} "))
      << text("matmul(m=32,n=32,k=32)");
  EXPECT_TRUE(contains(text("matmul(m=32,n=32,k=32)"), "\nparallel C $C_order_s0{i.0|i.0 j.0|j.0|j.0 i.0}\n"));
  EXPECT_TRUE(contains(text("matmul(m=1,n=32,k=32)"), "\nparallel C j.0\n"));
  EXPECT_FALSE(contains(text("matmul(m=1,n=4,k=32)"), "parallel")) << "one vector is one task";
  EXPECT_FALSE(contains(text("input A[40]; output S[] += A[i] where i=40"), "parallel"));
}

TEST(Rules, ProgramsOfEverySketchUseTheThreads) {
  Target target = target_with(256, 16);
  target.threads = 2;
  for (const char* text :
       {"conv2d_nchwc(c=16,h=12,w=12,k=16,r=3,s=3,pad=1,block=8)", "dense(m=9,n=24,k=40)", "matmul(m=7,n=64,k=9)"}) {
    const Workload workload = parse_workload(text);
    for (const SketchSpace& sketch : derive_sketches(computed(text), target)) {
      const JudgedSpace space(workload, target, {sketch});
      base::Stream stream(5, text);
      for (int draw = 0; draw < 12; ++draw) {
        const auto program = codegen::program(space.sample(stream), target);
        ASSERT_TRUE(program.ok()) << program.reason().text;
        EXPECT_TRUE(std::any_of(program->loops.begin(), program->loops.end(),
                                [](const Loop& loop) { return loop.kind == LoopKind::parallel; }))
            << sketch.sketch->name << "\n"
            << to_text(*program);
      }
    }
  }
}

TEST(Rules, EveryArgumentHasOneDomainAndTilesAreChains) {
  for (const char* workload : {"matmul(m=20,n=37,k=11)", "conv2d(c=3,h=9,w=9,k=20,r=3,s=3,stride=2,pad=1)"}) {
    for (const SketchSpace& sketch : derived(workload)) {
      std::vector<int> uses(sketch.sketch->arguments.size(), 0);
      for (const Domain& domain : sketch.domains) {
        for (const int argument : domain.arguments) ++uses[std::size_t(argument)];
        for (const std::vector<std::int64_t>& row : domain.values) {
          ASSERT_EQ(row.size(), domain.arguments.size());
          for (std::size_t i = 1; i < row.size(); ++i) EXPECT_EQ(row[i - 1] % row[i], 0) << domain.name;
        }
      }
      EXPECT_EQ(uses, std::vector<int>(uses.size(), 1)) << workload;
    }
  }
}

}  // namespace
}  // namespace graft::codegen
