#include "features/context_relation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "codegen/program/forms.h"
#include "tests/features/encoded.h"
#include "tests/support/programs.h"

namespace graft::features {
namespace {

using codegen::LoopProgram;
using codegen::parse_program;
using codegen::test::matmul;
using codegen::test::tiled;

using test::count;

test::Values encoded(const LoopProgram& program) {
  return test::rows_of("context_relation", program).front();
}
test::Values encoded(const std::string& text) {
  return encoded(parse_program(text, "p"));
}

// The curve's values at thresholds 2^0, 2^1, ... up to its end.
std::vector<std::int64_t> curve(const test::Values& values, const std::string& name, int length) {
  std::vector<std::int64_t> result;
  for (int t = 0; t < length; ++t) result.push_back(count(values, fmt::format("{}.t{:02}", name, t)));
  // Nothing changes after the compared part, which the caller chose long enough.
  EXPECT_EQ(count(values, name + ".t31"), result.back()) << name;
  return result;
}

using Curve = std::vector<std::int64_t>;

// (touched, reuse, top-down) of loops i, j, k, worked out in tests/program/analysis_test.cpp:
//   A: i (32,2,4)  j (8,2,8)  k (8,1,64)     128 bytes: slot b0
//   B: i (16,4,4)  j (16,1,8) k (8,1,64)      64 bytes: slot b1
//   C: i (8,8,4)   j (2,8,8)  k (1,8,64)      32 bytes: slot b2
TEST(ContextRelation, MatmulByHand) {
  const auto values = encoded(matmul);
  // Thresholds:                                      1  2  4   8  16  32  64 128
  // A: below 16 elements are j and k, below 64 all; so reuse is max(2,1) from 16 on.
  EXPECT_EQ(curve(values, "b0.touched>reuse", 8), (Curve{0, 0, 0, 0, 2, 2, 2, 2}));
  // Reuse below 2: only k, with 8 elements; below 4: all, with 32 at most.
  EXPECT_EQ(curve(values, "b0.reuse>touched", 8), (Curve{0, 8, 32, 32, 32, 32, 32, 32}));
  EXPECT_EQ(curve(values, "b0.touched>topdown", 8), (Curve{0, 0, 0, 0, 64, 64, 64, 64}));
  // Top-down below 8: only i, with 32.
  EXPECT_EQ(curve(values, "b0.topdown>touched", 8), (Curve{0, 0, 0, 32, 32, 32, 32, 32}));
  // B: below 16 elements is only k (reuse 1); below 32 all, i with reuse 4.
  EXPECT_EQ(curve(values, "b1.touched>reuse", 8), (Curve{0, 0, 0, 0, 1, 4, 4, 4}));
  EXPECT_EQ(curve(values, "b1.reuse>touched", 8), (Curve{0, 16, 16, 16, 16, 16, 16, 16}));
  EXPECT_EQ(curve(values, "b1.touched>topdown", 8), (Curve{0, 0, 0, 0, 64, 64, 64, 64}));
  EXPECT_EQ(curve(values, "b1.topdown>touched", 8), (Curve{0, 0, 0, 16, 16, 16, 16, 16}));
  // C: all reuse is 8, so nothing is below 8.
  EXPECT_EQ(curve(values, "b2.touched>reuse", 8), (Curve{0, 8, 8, 8, 8, 8, 8, 8}));
  EXPECT_EQ(curve(values, "b2.reuse>touched", 8), (Curve{0, 0, 0, 0, 8, 8, 8, 8}));
  EXPECT_EQ(curve(values, "b2.touched>topdown", 8), (Curve{0, 64, 64, 64, 64, 64, 64, 64}));
  EXPECT_EQ(curve(values, "b2.topdown>touched", 8), (Curve{0, 0, 0, 8, 8, 8, 8, 8}));

  EXPECT_EQ(count(values, "b0.bytes_touched"), 128);
  EXPECT_EQ(count(values, "b1.bytes_touched"), 64);
  EXPECT_EQ(count(values, "b2.bytes_touched"), 32);
  EXPECT_EQ(values.at("b0.element_bytes"), 4);
  EXPECT_EQ(values.at("b0.written"), 0);
  EXPECT_EQ(values.at("b2.written"), 1);
  EXPECT_EQ(count(values, "b0.executions"), 64);
  EXPECT_EQ(values.at("b0.vector_none"), 1);
  EXPECT_EQ(values.at("b0.inner_stride_1"), 1);      // k moves A by 1,
  EXPECT_EQ(values.at("b1.inner_stride_other"), 1);  // B by 2,
  EXPECT_EQ(values.at("b2.inner_stride_0"), 1);      // C not at all
  EXPECT_EQ(values.at("b2.inner_stride_1"), 0);
}

// I: k (18,7,3) x (18,2,21) c (6,1,42) r (3,1,126)    72 bytes: b1, before W because it is used first
// W: k (18,7,3) x (6,7,21)  c (6,1,42) r (3,1,126)    72 bytes: b2
// O: k (21,6,3) x (7,6,21)  c (1,6,42) r (1,3,126)    84 bytes: b0
TEST(ContextRelation, ConvolutionWithOverlappingWindowsByHand) {
  const auto values = encoded(codegen::test::convolution);
  // Thresholds:                                      1  2  4  8 16 32 64
  // I: below 4 elements is r, below 8 also c, below 32 all.
  EXPECT_EQ(curve(values, "b1.touched>reuse", 7), (Curve{0, 0, 1, 1, 1, 7, 7}));
  EXPECT_EQ(curve(values, "b1.reuse>touched", 7), (Curve{0, 6, 18, 18, 18, 18, 18}));
  EXPECT_EQ(curve(values, "b1.touched>topdown", 7), (Curve{0, 0, 126, 126, 126, 126, 126}));
  EXPECT_EQ(curve(values, "b1.topdown>touched", 7), (Curve{0, 0, 18, 18, 18, 18, 18}));
  // W: x touches 6 with reuse 7, hence reuse 7 below 8 elements already.
  EXPECT_EQ(curve(values, "b2.touched>reuse", 7), (Curve{0, 0, 1, 7, 7, 7, 7}));
  EXPECT_EQ(curve(values, "b2.reuse>touched", 7), (Curve{0, 6, 6, 18, 18, 18, 18}));
  // O: below 2 elements are c and r.
  EXPECT_EQ(curve(values, "b0.touched>reuse", 7), (Curve{0, 6, 6, 6, 6, 6, 6}));
  EXPECT_EQ(curve(values, "b0.reuse>touched", 7), (Curve{0, 0, 1, 21, 21, 21, 21}));
  EXPECT_EQ(curve(values, "b0.touched>topdown", 7), (Curve{0, 126, 126, 126, 126, 126, 126}));
  EXPECT_EQ(count(values, "b0.bytes_touched"), 84);
  EXPECT_EQ(count(values, "b1.bytes_touched"), 72);
  EXPECT_EQ(values.at("b1.written"), 0);
}

// Sorted each on its own, touched 8, 8, 32 of the matmul's A would be paired with top-down products 4, 8, 64: 8 below
// 16 touched elements, where the loop k has 64.
TEST(ContextRelation, PointsStayPairedByLoop) {
  const std::vector<ContextPoint> points{{32, 2, 4}, {8, 2, 8}, {8, 1, 64}};
  EXPECT_EQ(relation(points, &ContextPoint::touched, &ContextPoint::top_down)[4], 64);
  const std::vector<ContextPoint> independently_sorted{{8, 1, 4}, {8, 2, 8}, {32, 2, 64}};
  EXPECT_EQ(relation(independently_sorted, &ContextPoint::touched, &ContextPoint::top_down)[4], 8);
  EXPECT_EQ(count(encoded(matmul), "b0.touched>topdown.t04"), 64);
}

TEST(ContextRelation, ThresholdsAreStrictAndTheMaximumIsRunning) {
  const std::vector<ContextPoint> points{{1, 5, 9}, {4, 3, 9}, {std::int64_t(1) << 30, 100, 9}};
  const auto values = relation(points, &ContextPoint::touched, &ContextPoint::reuse);
  EXPECT_EQ(values[0], 0);  // nothing is below 1
  EXPECT_EQ(values[1], 5);
  EXPECT_EQ(values[2], 5);   // 4 is not below 4
  EXPECT_EQ(values[3], 5);   // 4 is below 8, but its reuse is the smaller one
  EXPECT_EQ(values[30], 5);  // 2^30 is not below 2^30
  EXPECT_EQ(values[31], 100);
  const std::vector<ContextPoint> beyond{{std::int64_t(1) << 31, 100, 9}};
  for (const std::int64_t value : relation(beyond, &ContextPoint::touched, &ContextPoint::reuse)) EXPECT_EQ(value, 0);
  for (const std::int64_t value : relation({}, &ContextPoint::touched, &ContextPoint::reuse)) EXPECT_EQ(value, 0);
}

// Two accesses of T in one nest: per loop the larger of each quantity.
// T[i]: i touched 4, reuse 32/4 = 8; j touched 1, reuse 8. T[2*j]: i touched 8, reuse 4; j touched 8, reuse 1.
// Together: i (8,8,4), j (8,8,32).
TEST(ContextRelation, AccessesOfOneBufferAreMerged) {
  const auto values = encoded(R"(buffer T f32 [15] input
buffer O f32 [] output
run
  for i 4
    for j 8
      O[] += T[i] * T[2*j]
)");
  EXPECT_EQ(curve(values, "b0.touched>reuse", 5), (Curve{0, 0, 0, 0, 8}));
  EXPECT_EQ(curve(values, "b0.reuse>touched", 5), (Curve{0, 0, 0, 0, 8}));
  EXPECT_EQ(curve(values, "b0.topdown>touched", 7), (Curve{0, 0, 0, 8, 8, 8, 8}));
  // The box is 15 wide, but the accesses touch 4 + 8 = 12 elements at most.
  EXPECT_EQ(count(values, "b0.bytes_touched"), 4 * 12);
  EXPECT_EQ(count(values, "b0.executions"), 64);
  // Half of the executions are not moved by j, half by 2.
  EXPECT_EQ(values.at("b0.inner_stride_0"), 0.5f);
  EXPECT_EQ(values.at("b0.inner_stride_other"), 0.5f);
}

TEST(ContextRelation, KindsOfLoopsAndTheProgramAsAWhole) {
  const auto values = encoded(tiled);
  // B: 16*32*4 = 2048 bytes: b0; C: 1024: b1; A: 512: b2.
  EXPECT_EQ(count(values, "b0.bytes_touched"), 2048);
  EXPECT_EQ(count(values, "b1.bytes_touched"), 1024);
  EXPECT_EQ(count(values, "b2.bytes_touched"), 512);
  EXPECT_EQ(values.at("b0.vector_stride_1"), 1);
  EXPECT_EQ(values.at("b1.vector_stride_1"), 1);
  EXPECT_EQ(values.at("b2.vector_stride_0"), 1);
  EXPECT_EQ(values.at("b2.vector_none"), 0);
  EXPECT_EQ(values.at("b0.inner_stride_0"), 1);      // i.1 does not move B
  EXPECT_EQ(values.at("b2.inner_stride_other"), 1);  // and moves A by a row
  EXPECT_EQ(count(values, "b0.vector_reuse"), 1);
  EXPECT_EQ(count(values, "b0.vector_touched"), 16);
  EXPECT_EQ(count(values, "b0.unrolled_reuse"), 4);
  EXPECT_EQ(count(values, "b0.unrolled_touched"), 1);
  EXPECT_EQ(count(values, "b0.parallel_reuse"), 2);
  EXPECT_EQ(count(values, "b0.parallel_touched"), 1);
  EXPECT_EQ(count(values, "b2.vector_reuse"), 16);
  EXPECT_EQ(count(values, "b2.unrolled_touched"), 4);
  EXPECT_EQ(count(values, "b2.parallel_touched"), 2);

  const std::int64_t products = 8 * 32 * 16, outputs = 8 * 32;
  EXPECT_EQ(count(values, "add"), products);
  EXPECT_EQ(count(values, "mul"), products);
  EXPECT_EQ(count(values, "compare"), outputs);
  EXPECT_EQ(count(values, "div"), 0);
  EXPECT_EQ(count(values, "special"), 0);
  EXPECT_EQ(count(values, "vector_extent"), 16);
  EXPECT_EQ(count(values, "unrolled_extent"), 4);
  EXPECT_EQ(count(values, "parallel_extent"), 2);
  EXPECT_EQ(count(values, "executions"), products + 2 * outputs);
  EXPECT_EQ(count(values, "statements"), 3 * 4);
  EXPECT_EQ(values.at("depth"), 5);
  EXPECT_EQ(count(values, "buffers"), 3);
  EXPECT_EQ(count(values, "register_elements"), 64);
  EXPECT_EQ(count(values, "register_vectors"), 4);
  EXPECT_EQ(count(values, "loops.serial"), 2);
  EXPECT_EQ(count(values, "loops.unrolled"), 3);
  EXPECT_EQ(count(values, "loops.vector"), 3);
  EXPECT_EQ(count(values, "loops.parallel"), 1);
  EXPECT_EQ(count(values, "loops.block_x"), 0);
  // Memory operations: A once per (i, j.0, k) = 8*2*16; B once per (i.0, j.0, k) = 2*2*16, as i.1 does not move it; C
  // stored once per (i, j.0) = 8*2.
  const double accesses = 256 + 64 + 16;
  EXPECT_NEAR(values.at("flops_per_access"), std::log2(1 + double(2 * products + outputs) / accesses), 1e-5);
}

TEST(ContextRelation, RegisterBuffersCountWhileTheyAreAlive) {
  const auto values = encoded(R"(buffer C f32 [8] output
buffer a f32 [8] temporary registers
buffer b f32 [8] temporary registers
buffer c f32 [4] temporary registers
run
  for i 8 vector
    a[i] = 1
  for i 4 unrolled
    c[i] = a[2*i]
  for i 8 unrolled
    b[i] = 2
  for i 8 unrolled
    C[i] = b[i]
)");
  // a (one vector) and c (4 scalars) overlap, b (8 scalars) is alone.
  EXPECT_EQ(count(values, "register_elements"), 8 + 4);
  EXPECT_EQ(count(values, "register_vectors"), 8);
}

std::string many_buffers(int inputs) {
  std::string text;
  for (int b = 0; b < inputs; ++b) text += fmt::format("buffer I{} f32 [{}] input\n", b, 10 * (b + 1));
  text += "buffer O f32 [1000] output\nrun\n";
  text += "  for i 1000\n    O[i] = 1\n";
  for (int b = 0; b < inputs; ++b)
    text += fmt::format("  for i {} {}\n    O[i] += I{}[i]\n", 10 * (b + 1), b % 2 == 0 ? "serial" : "vector", b);
  return text;
}

TEST(ContextRelation, LengthIsFixedAndTheRestIsASum) {
  const auto one = encoded(many_buffers(0));
  const auto seven = encoded(many_buffers(6));
  EXPECT_EQ(one.size(), seven.size());
  EXPECT_EQ(one.size(), encoding_named("context_relation").features.size());
  // O, I5, I4, I3, I2 have slots; what is left is I1 and I0. Without the largest buffer, O being still the first, and
  // with just these two inputs they are in b1 and b2.
  const auto three = encoded(many_buffers(2));
  int compared = 0, not_zero = 0;
  for (const auto& [name, value] : seven) {
    if (name.rfind("rest.", 0) != 0) continue;
    const std::string what = name.substr(5);
    EXPECT_FLOAT_EQ(value, three.at("b1." + what) + three.at("b2." + what)) << name;
    ++compared;
    not_zero += value != 0;
    // Missing buffers are zero.
    EXPECT_EQ(three.at(name), 0) << name;
    for (int b = 3; b < buffer_slots; ++b) EXPECT_EQ(three.at(fmt::format("b{}.{}", b, what)), 0) << name;
    for (int b = 1; b < buffer_slots; ++b) EXPECT_EQ(one.at(fmt::format("b{}.{}", b, what)), 0) << name;
  }
  EXPECT_EQ(compared, 4 * thresholds + 17);
  EXPECT_GT(not_zero, 50);
}

TEST(ContextRelation, NamesChangeNothing) {
  const LoopProgram program = parse_program(tiled, "p");
  LoopProgram renamed = program;
  for (std::size_t b = 0; b < renamed.buffers.size(); ++b) renamed.buffers[b].name = fmt::format("z{}", 9 - b);
  for (std::size_t l = 0; l < renamed.loops.size(); ++l) renamed.loops[l].name = fmt::format("y{}", 99 - l);
  EXPECT_EQ(encoded(program), encoded(renamed));
}

TEST(ContextRelation, PrepareIsNotEncoded) {
  std::string prepared = tiled;
  prepared.insert(prepared.find("buffer acc"), "buffer W f32 [4] temporary\n");
  prepared.insert(prepared.find("run\n"), "prepare\n  for i 4\n    W[i] = 1\n");
  EXPECT_EQ(encoded(prepared), encoded(tiled));
}

TEST(ContextRelation, StoresWithoutLoopsEncode) {
  const auto values = encoded("buffer O f64 [] output\nrun\n  O[] = 1\n");
  EXPECT_EQ(count(values, "b0.bytes_touched"), 8);
  EXPECT_EQ(values.at("b0.element_bytes"), 8);
  EXPECT_EQ(count(values, "b0.touched>reuse.t31"), 0);
  EXPECT_EQ(count(values, "executions"), 1);
  EXPECT_EQ(values.at("depth"), 0);
}

}  // namespace
}  // namespace graft::features
