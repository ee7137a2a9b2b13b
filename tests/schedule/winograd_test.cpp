#include <gtest/gtest.h>

#include <array>

#include "codegen/expression/parse.h"
#include "codegen/program/forms.h"
#include "codegen/schedule/restructure.h"
#include "tests/schedule/support.h"

namespace graft::codegen {
namespace {

using namespace test;

std::string reason_of(std::string_view workload, std::string_view schedule) {
  const auto result = restructured(parse_workload(workload).computation(), steps(schedule));
  return result.ok() ? "applies" : result.reason().text;
}

bool touches(const LoopProgram& program, const Body& body, std::string_view buffer) {
  return std::any_of(body.begin(), body.end(), [&](const Node& node) {
    if (node.kind != Node::Kind::store) return false;
    const Store& store = program.stores[std::size_t(node.item)];
    const auto is = [&](const Access& a) { return program.buffers[std::size_t(a.tensor)].name == buffer; };
    return is(store.target) || std::any_of(store.value.loads.begin(), store.value.loads.end(), is);
  });
}

// The index expressions themselves, independent of their lowering.
void expect_equal_references(const Computation& before, const Computation& after) {
  const Reference expected = reference(before, 4), got = reference(after, 4);
  for (std::size_t t = 0; t < before.tensors.size(); ++t) {
    if (before.tensors[t].role != Role::output) continue;
    ASSERT_EQ(after.tensors[t], before.tensors[t]);
    for (std::size_t i = 0; i < expected.tensors[t].size(); ++i)
      ASSERT_NEAR(got.tensors[t][i], expected.tensors[t][i], 1e-12 * std::max(1.0, got.magnitude[t][i])) << i;
  }
}

constexpr const char* convolutions[] = {
    "conv2d(c=3,h=8,w=8,k=4,r=3,s=3,pad=1)",
    "conv2d(n=2,c=5,h=7,w=9,k=3,r=3,s=3,pad=1)",  // neither extent is a multiple of 2 or 4
    "conv2d(c=2,h=9,w=6,k=3,r=3,s=3)",            // no padding: the input itself ends too early
    "conv2d(c=1,h=3,w=3,k=1,r=3,s=3)",            // less than a tile
    "conv2d_nchwc(c=8,h=6,w=10,k=12,r=3,s=3,pad=1,block=4)",
    "conv2d_nchwc(n=2,c=4,h=7,w=8,k=4,r=3,s=3,pad=1,block=4)",
    "depthwise_conv2d(c=5,h=9,w=8,r=3,s=3,pad=1)",  // nothing is reduced but the taps
    // Channels last, operands the other way round, taps in the other order.
    "input X[1,10,9,5]; constant W[3,3,5,7]; output Y[b,y,x,o] += W[v,u,i,o] * X[b,y + u,x + v,i]"
    " where b=1, y=8, x=7, o=7, i=5, u=3, v=3",
    // Groups: an axis of data, weights and results.
    "input X[2,3,6,6]; constant W[2,4,3,3,3]; output Y[g,o,y,x] += X[g,i,y + u,x + v] * W[g,o,i,u,v]"
    " where g=2, o=4, y=4, x=4, i=3, u=3, v=3",
    // Whole tiles in a temporary that an element-wise stage reads a part of.
    "input X[1,3,9,9]; constant W[4,3,3,3]; constant bias[4];"
    "Y[b,o,y,x] += X[b,i,y + u,x + v] * W[o,i,u,v];"
    "output Z[b,o,y,x] = max(Y[b,o,y,x] + bias[o], 0) where b=1, o=4, y=7, x=7, i=3, u=3, v=3",
    // A reader that pads must not see more than there was.
    "input X[3,7,7]; constant W[4,3,3,3];"
    "Y[o,y,x] += X[i,y + u,x + v] * W[o,i,u,v] where o=4, y=5, x=5, i=3, u=3, v=3;"
    "output Z[o,y,x] += pad(Y[o,y + 2*u - 1,x]) where o=4, y=5, x=5, u=2",
};

TEST(Winograd, ComputesTheReference) {
  for (const char* workload : convolutions) {
    const Computation c = parse_workload(workload).computation();
    for (const char* schedule : {"winograd Y 2\n", "winograd Y 4\n"}) {
      SCOPED_TRACE(std::string(workload) + "\n" + schedule);
      const auto changed = restructured(c, steps(schedule));
      ASSERT_TRUE(changed.ok()) << changed.reason().text;
      (void)checked(changed->computation, "restructured");
      expect_equal_references(c, changed->computation);
      for (const std::int64_t lanes : {1, 4}) {
        const auto program = lower(with_padding_stages(c), steps(schedule), lanes);
        ASSERT_TRUE(program.ok()) << program.reason().text;
        check(*program, "test");
        EXPECT_LE(worst_excess(c, *program, 3, program->amplification), 0);
        // The weights are transformed once, before anything is timed.
        EXPECT_TRUE(touches(*program, program->prepare, "W"));
        EXPECT_TRUE(touches(*program, program->prepare, "Y.U"));
        EXPECT_FALSE(touches(*program, program->run, "W"));
        EXPECT_FALSE(touches(*program, program->run, "Y.U.rows"));
        EXPECT_FALSE(touches(*program, program->prepare, "Y.V"));
      }
    }
  }
}

TEST(Winograd, ReadsAsItsDefinition) {
  const auto changed = restructured(parse_workload("conv2d_nchwc(c=8,h=6,w=6,k=8,r=3,s=3,pad=1,block=4)").computation(),
                                    steps("winograd Y 2\n"));
  ASSERT_TRUE(changed.ok()) << changed.reason().text;
  EXPECT_EQ(to_text(changed->computation),
            "input X[1,2,6,6,4]; constant W[2,2,3,3,4,4]; "
            "P[b,i,p,q,d] = pad(X[b,i,p - 1,q - 1,d]) where b=1, i=2, p=8, q=8, d=4; "
            "literal Y.G[4,3] = {1,0,0,0.5,0.5,0.5,0.5,-0.5,0.5,0,0,1}; "
            "literal Y.B[4,4] = {1,0,-1,0,0,1,1,0,0,-1,1,0,0,1,0,-1}; "
            "literal Y.A[2,4] = {1,1,1,0,0,1,-1,-1}; "
            "Y.U.rows[fy,v,o,i,d,e] += Y.G[fy,u] * W[o,i,u,v,d,e] where fy=4, v=3, o=2, i=2, d=4, e=4, u=3; "
            "Y.U[fy,fx,o,i,d,e] += Y.G[fx,v] * Y.U.rows[fy,v,o,i,d,e] where fy=4, fx=4, o=2, i=2, d=4, e=4, v=3; "
            "Y.V.rows[fy,b,i,ty,x,d] += Y.B[fy,p] * P[b,i,2*ty + p,x,d] where fy=4, b=1, i=2, ty=3, x=8, d=4, p=4; "
            "Y.V[fy,fx,b,i,ty,tx,d] += Y.B[fx,p] * Y.V.rows[fy,b,i,ty,2*tx + p,d] where fy=4, fx=4, b=1, i=2, ty=3, "
            "tx=3, d=4, p=4; "
            "Y.M[fy,fx,b,o,ty,tx,e] += Y.V[fy,fx,b,i,ty,tx,d] * Y.U[fy,fx,o,i,d,e] where fy=4, fx=4, b=1, o=2, ty=3, "
            "tx=3, e=4, i=2, d=4; "
            "Y.rows[iy,fx,b,o,ty,tx,e] += Y.A[iy,fy] * Y.M[fy,fx,b,o,ty,tx,e] where iy=2, fx=4, b=1, o=2, ty=3, tx=3, "
            "e=4, fy=4; "
            "output Y[b,o,2*ty + iy,2*tx + ix,e] += Y.A[ix,fx] * Y.rows[iy,fx,b,o,ty,tx,e] where b=1, o=2, ty=3, iy=2, "
            "tx=3, ix=2, e=4, fx=4");
}

TEST(Winograd, ChannelsAreInnermostWhateverTheLayout) {
  const auto shape = [](const char* workload, const char* tensor) {
    const auto changed = restructured(parse_workload(workload).computation(), steps("winograd Y 4\n"));
    return changed->computation.tensors[std::size_t(changed->computation.tensor_named(tensor))].shape;
  };
  const char* nchw = "conv2d(n=2,c=5,h=8,w=12,k=7,r=3,s=3,pad=1)";
  EXPECT_EQ(shape(nchw, "Y.U"), (std::vector<std::int64_t>{6, 6, 5, 7}));
  EXPECT_EQ(shape(nchw, "Y.V"), (std::vector<std::int64_t>{6, 6, 2, 2, 3, 5}));
  EXPECT_EQ(shape(nchw, "Y.M"), (std::vector<std::int64_t>{6, 6, 2, 2, 3, 7}));
}

TEST(Winograd, StagesTakeEveryOtherStep) {
  const Computation c = parse_workload("conv2d_nchwc(c=16,h=8,w=8,k=16,r=3,s=3,pad=1,block=8)").computation();
  const Schedule schedule = steps(
      "winograd Y 4\n"
      "order Y.V.rows i.0 ty.0 x.0 p.0 fy.0 d.0\nvector Y.V.rows d.0\nunroll Y.V.rows p.0 fy.0\n"
      "accumulate Y.V.rows above p.0\n"
      "tile Y.M tx 2\norder Y.M fy.0 fx.0 o.0 ty.0 tx.0 i.0 d.0 tx.1 e.0\nvector Y.M e.0\nunroll Y.M tx.1\n"
      "accumulate Y.M above i.0\npack Y.M Y.U above fy.0\npack Y.M Y.V above i.0\n"
      "order Y o.0 ty.0 tx.0 iy.0 fx.0 ix.0 e.0\nvector Y e.0\nunroll Y fx.0 ix.0\naccumulate Y above fx.0\n");
  const auto program = lower(with_padding_stages(c), schedule, 8);
  ASSERT_TRUE(program.ok()) << program.reason().text;
  check(*program, "test");
  EXPECT_LE(worst_excess(c, *program, 3, program->amplification), 0);
  EXPECT_FALSE(touches(*program, program->run, "Y.U")) << "packed in prepare";
}

// A row of tiles goes through all stages before the next one: the data between them stay small.
TEST(Winograd, StagesAreComputedWithinTheLoopsOfTheLast) {
  const Computation c = parse_workload("conv2d_nchwc(c=16,h=8,w=12,k=16,r=3,s=3,pad=1,block=8)").computation();
  const Schedule schedule = steps(
      "winograd Y 4\n"
      "order Y ty.0 o.0 tx.0 iy.0 fx.0 ix.0 e.0\nvector Y e.0\nunroll Y fx.0 ix.0\naccumulate Y above fx.0\n"
      "compute Y Y.rows above o.0\n"
      "order Y.rows o.0 tx.0 fx.0 fy.0 iy.0 e.0\nvector Y.rows e.0\nunroll Y.rows fy.0 iy.0\n"
      "accumulate Y.rows above fy.0\n"
      "compute Y.rows Y.M above o.0\n"
      "tile Y.M tx 2\norder Y.M fy.0 fx.0 o.0 tx.0 i.0 d.0 tx.1 e.0\nvector Y.M e.0\nunroll Y.M tx.1\n"
      "accumulate Y.M above i.0\n"
      "compute Y.M Y.V above fy.0\n"
      "order Y.V i.0 tx.0 fy.0 p.0 fx.0 d.0\nvector Y.V d.0\nunroll Y.V p.0 fx.0\naccumulate Y.V above p.0\n"
      "compute Y.V Y.V.rows above tx.0\n"
      "order Y.V.rows x.0 p.0 fy.0 d.0\nvector Y.V.rows d.0\nunroll Y.V.rows p.0 fy.0\n"
      "accumulate Y.V.rows above p.0\n");
  const auto program = lower(with_padding_stages(c), schedule, 8);
  ASSERT_TRUE(program.ok()) << program.reason().text;
  check(*program, "test");
  EXPECT_LE(worst_excess(c, *program, 3, program->amplification), 0);
  const auto elements = [&](std::string_view name) {
    for (const Buffer& buffer : program->buffers)
      if (buffer.name == name) return buffer.elements();
    return std::int64_t(0);
  };
  EXPECT_EQ(elements("Y.V"), 6 * 6 * 16 * 3) << "one row of three tiles";
  EXPECT_EQ(elements("Y.M"), 6 * 6 * 16 * 3);
  EXPECT_EQ(elements("Y.V.rows"), 6 * 14 * 8);
}

TEST(Winograd, RowsMayReadUnpaddedDataThemselves) {
  const Computation c = parse_workload("conv2d_nchwc(c=8,h=9,w=8,k=8,r=3,s=3,pad=1,block=4)").computation();
  const Schedule schedule = steps(
      "winograd Y 4\nabsorb Y.V.rows P\norder Y.V.rows i.0 ty.0 x.0 p.0 fy.0 d.0\nvector Y.V.rows d.0\n"
      "unroll Y.V.rows p.0 fy.0\naccumulate Y.V.rows above p.0\n");
  const auto program = lower(with_padding_stages(c), schedule, 4);
  ASSERT_TRUE(program.ok()) << program.reason().text;
  check(*program, "test");
  EXPECT_LE(worst_excess(c, *program, 3, program->amplification), 0);
}

TEST(Winograd, AnElementwiseStageIsFusedIntoWholeTiles) {
  const char* text =
      "input X[3,10,6]; constant W[8,3,3,3]; constant bias[8]; Y[o,y,x] += X[i,y + u,x + v] * W[o,i,u,v];"
      "output Z[o,y,x] = max(Y[o,y,x] + bias[o], 0) where o=8, y=8, x=4, i=3, u=3, v=3";
  const Computation c = parse_workload(text).computation();
  const auto program = lower(c, steps("winograd Y 4\naccumulate Y above fx.0\nfuse Y Z\n"), 4);
  ASSERT_TRUE(program.ok()) << program.reason().text;
  for (const Buffer& buffer : program->buffers) EXPECT_NE(buffer.name, "Y");
  check(*program, "test");
  EXPECT_LE(worst_excess(c, *program, 3, program->amplification), 0);
}

TEST(Winograd, NothingBehindTheResultsIsFused) {
  const char* text =
      "input X[3,9,9]; constant W[8,3,3,3]; Y[o,y,x] += X[i,y + u,x + v] * W[o,i,u,v];"
      "output Z[o,y,x] = max(Y[o,y,x], 0) where o=8, y=7, x=7, i=3, u=3, v=3";
  const auto program =
      lower(parse_workload(text).computation(), steps("winograd Y 4\naccumulate Y above fx.0\nfuse Y Z\n"), 4);
  ASSERT_FALSE(program.ok());
  EXPECT_TRUE(contains(program.reason().text, "Z reads a part of Y only")) << program.reason().text;
}

TEST(ReductionFactoring, ComputesTheReference) {
  for (const std::array<const char*, 2>& each : std::initializer_list<std::array<const char*, 2>>{
           {"matmul(m=5,n=3,k=24)", "rfactor C l 8\n"},
           {"matmul(m=5,n=3,k=24)", "rfactor C l 24\n"},
           {"matmul(m=5,n=3,k=24)", "rfactor C l 1\n"},
           {"matmul(m=5,n=3,k=24,dtype=i32)", "rfactor C l 4\nrfactor C.rf l_o 3\n"},
           {"conv2d(c=4,h=7,w=6,k=3,r=3,s=3,pad=1)", "rfactor Y i 2\n"},
           {"conv2d(c=4,h=7,w=6,k=3,r=3,s=3,pad=1)", "rfactor Y v 3\n"},
           {"conv2d(c=4,h=7,w=6,k=3,r=3,s=3,pad=1)", "winograd Y 2\nrfactor Y.M i 4\n"},
           {"input A[30]; output S[] += A[i] where i=30", "rfactor S i 10\n"},
           {"input A[4,30]; output S[i] max= A[i,j] where i=4, j=30", "rfactor S j 6\n"},
           {"input A[30]; output S[] += pad(A[i - 3]) where i=36", "rfactor S i 4\n"}}) {
    SCOPED_TRACE(std::string(each[0]) + "\n" + each[1]);
    const Computation c = parse_workload(each[0]).computation();
    const auto changed = restructured(c, steps(each[1]));
    ASSERT_TRUE(changed.ok()) << changed.reason().text;
    (void)checked(changed->computation, "restructured");
    expect_equal_references(c, changed->computation);
    const auto program = lower(with_padding_stages(c), steps(each[1]), 4);
    ASSERT_TRUE(program.ok()) << program.reason().text;
    check(*program, "test");
    EXPECT_LE(worst_excess(c, *program, 3, program->amplification), 0);
  }
}

TEST(ReductionFactoring, AReductionAlongContiguousMemoryBecomesAVector) {
  const Computation c = parse_workload("input A[6,32]; output S[i] += A[i,l] * A[i,l] where i=6, l=32").computation();
  EXPECT_FALSE(lower(c, steps("order S i.0 l.0\nvector S l.0\n"), 8).ok());
  const auto program = lower(c,
                             steps("rfactor S l 8\norder S.rf i.0 l_o.0 l_i.0\nvector S.rf l_i.0\n"
                                   "accumulate S.rf above l_o.0\n"),
                             8);
  ASSERT_TRUE(program.ok()) << program.reason().text;
  EXPECT_TRUE(contains(to_text(*program),
                       "    for l_o.0 4\n"
                       "      for l_i.0 8 vector\n"
                       "        S.rf.tile[l_i.0] += A[i.0,8*l_o.0 + l_i.0] * A[i.0,8*l_o.0 + l_i.0]\n"))
      << to_text(*program);
  EXPECT_LE(worst_excess(c, *program, 3), 0);
}

TEST(Winograd, WhatDoesNotApplyHasAReason) {
  const char* conv = "conv2d(c=4,h=8,w=8,k=4,r=3,s=3,pad=1)";
  EXPECT_TRUE(contains(reason_of(conv, "winograd Z 4\n"), "winograd Z 4: there is no stage Z"));
  EXPECT_TRUE(contains(reason_of(conv, "winograd Y 3\n"), "tiles of 2 and 4 are known, not 3"));
  EXPECT_TRUE(contains(reason_of(conv, "winograd P 4\n"), "is not a sum of products"));
  EXPECT_TRUE(contains(reason_of(conv, "winograd Y 4\nwinograd Y 4\n"), "is not a"));
  EXPECT_TRUE(contains(reason_of("conv2d(c=4,h=9,w=9,k=4,r=3,s=3,stride=2)", "winograd Y 4\n"), "stride 1"));
  EXPECT_TRUE(contains(reason_of("conv2d(c=4,h=9,w=9,k=4,r=5,s=5)", "winograd Y 4\n"), "3 x 3"));
  EXPECT_TRUE(contains(reason_of("conv2d(c=4,h=9,w=9,k=4,r=3,s=1)", "winograd Y 4\n"), "3 x 3"));
  EXPECT_TRUE(contains(reason_of("matmul(m=3,n=3,k=3)", "winograd C 4\n"), "3 x 3"));
  EXPECT_TRUE(contains(reason_of("conv2d(c=4,h=9,w=9,k=4,r=3,s=3,dtype=i32)", "winograd Y 4\n"), "integers"));
  EXPECT_TRUE(contains(reason_of("matmul(m=3,n=3,k=9)", "rfactor C l 2\n"), "2 does not divide 9"));
  EXPECT_TRUE(contains(reason_of("matmul(m=3,n=3,k=9)", "rfactor C i 3\n"), "C does not reduce over i"));
  const auto tiles = lower(parse_workload("input X[3,10,6]; constant W[8,3,3,3];"
                                          "Y[o,y,x] += X[i,y + u,x + v] * W[o,i,u,v];"
                                          "output Z[o,y,x] = max(Y[o,y,x], 0)"
                                          " where o=8, y=8, x=4, i=3, u=3, v=3")
                               .computation(),
                           steps("winograd Y 4\ncompute Z Y above y.0\n"), 1);
  ASSERT_FALSE(tiles.ok());
  EXPECT_TRUE(contains(tiles.reason().text, "Y is made of tiles of its own")) << tiles.reason().text;
  const auto program = lower(computed(conv), steps("winograd Y 3\n"), 1);
  ASSERT_FALSE(program.ok());
  EXPECT_TRUE(contains(program.reason().text, "winograd Y 3"));
}

TEST(Winograd, OnlyWinogradAllowsMoreError) {
  const Computation c = parse_workload("conv2d(c=64,h=8,w=8,k=4,r=3,s=3,pad=1)").computation();
  EXPECT_EQ(restructured(c, {})->amplification, 1);
  EXPECT_EQ(restructured(c, steps("rfactor Y i 4\norder Y.rf b.0\n"))->amplification, 1);
  EXPECT_EQ(restructured(c, steps("winograd Y 2\n"))->amplification, 1)
      << "its chains of additions are a sixth as long";
  EXPECT_DOUBLE_EQ(restructured(c, steps("winograd Y 4\norder Y x.0\n"))->amplification,
                   16 * 16 * (64 + 32) / (9 * 64.0) / 4);
}

}  // namespace
}  // namespace graft::codegen
