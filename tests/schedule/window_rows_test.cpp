// Depthwise convolutions followed by products: both for a block of rows before the next one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "base/random.h"
#include "codegen/expression/parse.h"
#include "codegen/program/forms.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/schedule/rules.h"
#include "codegen/schedule/stored.h"
#include "tests/schedule/sampled.h"
#include "tests/schedule/support.h"
#include "tests/support/judged_space.h"

namespace graft::codegen {
namespace {

using namespace test;

struct Sizes {
  int n = 1, c = 16, h = 9, w = 13, k = 8, size = 3, stride = 1, pad = 1;
  int rows() const { return (h + 2 * pad - size) / stride + 1; }
  int columns() const { return (w + 2 * pad - size) / stride + 1; }
};

// As networks have it, in NCHW; `last` is what follows the product P.
std::string separable(const Sizes& s, const std::string& last = "P[n,k,y,x] + d[k]", const std::string& operands = "") {
  return fmt::format(
      "input X[{n},{c},{h},{w}]; constant V[{c},1,{r},{r}]; constant b[{c}]; constant W[{k},{c},1,1]; constant d[{k}]; "
      "{operands}{padded} S[n,c,y,x] += {from}[n,c,{stride}*y + r,{stride}*x + s] * V[c,0,r,s]; "
      "T[n,c,y,x] = min(max(S[n,c,y,x] + b[c],0),6); P[n,k,y,x] += T[n,c,y + u,x + v] * W[k,c,u,v]; "
      "output Y[n,k,y,x] = {last} where n={n}, c={c}, y={rows}, x={columns}, k={k}, r={r}, s={r}, u=1, v=1{extents}",
      fmt::arg("n", s.n), fmt::arg("c", s.c), fmt::arg("h", s.h), fmt::arg("w", s.w), fmt::arg("k", s.k),
      fmt::arg("r", s.size), fmt::arg("stride", s.stride), fmt::arg("rows", s.rows()), fmt::arg("columns", s.columns()),
      fmt::arg("last", last), fmt::arg("operands", operands), fmt::arg("from", s.pad > 0 ? "Z" : "X"),
      fmt::arg("padded", s.pad > 0 ? fmt::format("Z[n,c,p,q] = pad(X[n,c,p - {0},q - {0}]);", s.pad) : ""),
      fmt::arg("extents", s.pad > 0 ? fmt::format(", p={}, q={}", s.h + 2 * s.pad, s.w + 2 * s.pad) : ""));
}

const std::string residual = "R[n,k,y,x] + (P[n,k,y,x] + d[k])";
std::string residual_operand(const Sizes& s) {
  return fmt::format("input R[{},{},{},{}]; ", s.n, s.k, s.rows(), s.columns());
}

// The same with channels in blocks, as networks store it.
std::string in_blocks(const std::string& text, int block, int result_block) {
  std::map<std::string, Layout> layouts;
  const Computation computation = computed(text);
  for (const Tensor& tensor : computation.tensors) {
    if ((tensor.role != Role::input && tensor.role != Role::output) || tensor.shape.size() != 4) continue;
    const std::int64_t size = tensor.name == "X" ? block : result_block;
    Layout layout;
    for (int d = 0; d < 4; ++d) layout.parts.push_back({d, 0, d == 1 ? size : 1});
    layout.parts.push_back({1, size, 1});
    layouts[tensor.name] = layout;
  }
  const auto stored = stored_as(computation, layouts);
  EXPECT_TRUE(stored.ok());
  return to_text(stored->computation);
}

TEST(WindowRows, SampledSchedulesComputeTheReference) {
  const Sizes strided{.c = 16, .h = 11, .w = 15, .k = 24, .stride = 2},
      wide{.n = 2, .h = 7, .w = 22, .k = 5, .size = 5, .pad = 2}, open{.h = 8, .w = 12, .k = 16, .pad = 0};
  const std::string workloads[] = {
      separable({}),
      separable(strided),
      separable(wide, residual, residual_operand(wide)),
      separable(open),
      in_blocks(separable({}), 8, 8),
      in_blocks(separable(strided), 8, 4),
      in_blocks(separable(wide, "max(P[n,k,y,x],0)"), 4, 5),
      in_blocks(separable(open, residual, residual_operand(open)), 8, 8),
  };
  for (const std::string& text : workloads) expect_one_right_sketch(text, "window_rows_", 6);
}

// What lies between the sums is a block of rows, next to the block's other stages.
TEST(WindowRows, WhatWindowsGiveIsNeverThereAsAWhole) {
  const std::string text = in_blocks(separable({.c = 32, .h = 16, .w = 16, .k = 16}), 8, 8);
  const Target target = target_with(256, 16);
  const JudgedSpace space(parse_workload(text), target, derive_sketches(computed(text), target));
  base::Stream stream(5, "rows");
  std::int64_t least = 32 * 16 * 16;
  for (int i = 0; i < 20; ++i) {
    const auto program = codegen::program(space.sample(stream), target);
    ASSERT_TRUE(program.ok()) << program.reason().text;
    for (const Buffer& buffer : program->buffers) {
      EXPECT_NE(buffer.name, "S") << "written as T at once";
      EXPECT_NE(buffer.name, "Z") << "padding is read where it is";
      if (buffer.name == "T") least = std::min(least, buffer.elements());
    }
  }
  EXPECT_LE(least, 32 * 16 * 2);
}

TEST(WindowRows, OtherChainsAreNotTaken) {
  const auto is_taken = [](const std::string& text, std::int64_t bits = 256) {
    const Target target = target_with(bits, 16);
    const Computation c = computed(text);
    EXPECT_EQ(is_fused_by_choice(c, target), schedules_together(c, target)) << text;
    return schedules_together(c, target);
  };
  const auto changed = [](const std::string& from, const std::string& to) {
    std::string text = separable({});
    EXPECT_TRUE(contains(text, from));
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
    return text;
  };
  EXPECT_TRUE(is_taken(separable({})));
  EXPECT_FALSE(is_taken(separable({}), 0)) << "no vectors";
  EXPECT_FALSE(is_taken(changed("T[n,c,y,x] =", "output T[n,c,y,x] ="))) << "what lies between is an output";
  EXPECT_FALSE(is_taken(changed("P[n,k,y,x] + d", "P[n,k,y,x] + T[n,0,y,x] + d"))) << "and what is read later";
  EXPECT_FALSE(is_taken(changed("T[n,c,y + u,x + v]", "T[n,c,8 - y + u,x + v]"))) << "rows from the last to the first";
  EXPECT_FALSE(is_taken(changed("+= T[n,c,y + u,x + v] * W", "+= T[n,c,y + u,x + v] + W"))) << "a sum of sums";
  EXPECT_FALSE(is_taken(changed("P[n,k,y,x] +=", "P[n,k,y,x] max="))) << "a maximum";
  EXPECT_FALSE(is_taken(in_blocks(separable({.c = 8, .w = 3}), 2, 2))) << "channels that fill no vector";
  // A product after a convolution that sums channels, and a convolution after a product.
  EXPECT_FALSE(
      is_taken("input X[1,8,12,12]; constant V[16,8,3,3]; constant W[8,16]; "
               "S[n,c,y,x] += X[n,i,y + r,x + s] * V[c,i,r,s]; P[n,k,y,x] += S[n,c,y,x] * W[k,c]; "
               "output Y[n,k,y,x] = max(P[n,k,y,x],0) where n=1, c=16, i=8, y=10, x=10, k=8, r=3, s=3"));
  EXPECT_FALSE(
      is_taken("input X[1,8,12,12]; constant W[16,8]; constant V[16,3,3]; P[n,c,h,w] += X[n,i,h,w] * W[c,i]; "
               "S[n,c,y,x] += P[n,c,y + r,x + s] * V[c,r,s]; output Y[n,c,y,x] = max(S[n,c,y,x],0) "
               "where n=1, c=16, i=8, h=12, w=12, y=10, x=10, r=3, s=3"));
}

}  // namespace
}  // namespace graft::codegen
