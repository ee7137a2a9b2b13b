// Sums of blocks of products with packed bytes: a block at a time, within a register tile of the result.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "codegen/schedule/rules.h"
#include "tests/schedule/sampled.h"
#include "tests/schedule/support.h"

namespace graft::codegen {
namespace {

using namespace test;

struct Sizes {
  int m = 1, n = 32, blocks = 3, bytes = 8, bits = 4;
  int each() const { return 8 / bits; }
  int within() const { return bytes * each(); }
};

// As networks have it; `last` is what follows the result C.
std::string product(const Sizes& s, const std::string& last = "", const std::string& type = "u8") {
  const std::string number =
      s.bits == 8 ? "B[j,b,p + h]" : fmt::format("bit_and(B[j,b,p] >> {} * h,{})", s.bits, (1 << s.bits) - 1);
  return fmt::format(
      "input X[{m},{k}]; constant B[{n},{blocks},{bytes}]:{type}; constant S[{n},{blocks}]; input T[{m},{blocks}]; "
      "constant d[{n}]; P[i,b,j | p,h] += X[i,{within}*b + {each}*p + h] * cast_f32({number}); "
      "{begin} += S[j,b] * (P[i,b,j] - {zero} * T[i,b]) where i={m}, b={blocks}, j={n}, p={bytes}, h={each}{last}",
      fmt::arg("m", s.m), fmt::arg("k", s.blocks * s.within()), fmt::arg("n", s.n), fmt::arg("blocks", s.blocks),
      fmt::arg("bytes", s.bytes), fmt::arg("type", type), fmt::arg("within", s.within()), fmt::arg("each", s.each()),
      fmt::arg("number", number), fmt::arg("zero", 1 << (s.bits - 1)),
      fmt::arg("begin", last.empty() ? "output Y[i,j]" : "C[i,j]"),
      fmt::arg("last", last.empty() ? "" : fmt::format("; output Y[i,j] = {} where i={}, j={}", last, s.m, s.n)));
}

TEST(BlockSums, SampledSchedulesComputeTheReference) {
  const std::string workloads[] = {
      product({}),
      product({.m = 3, .n = 48}, "max(C[i,j] + d[j],0)"),
      product({.m = 17, .n = 64, .blocks = 1, .bytes = 16}),
      product({.n = 128, .blocks = 5, .bytes = 4, .bits = 2}, "C[i,j] + d[j]"),
      product({.m = 2, .n = 16, .blocks = 2, .bytes = 16, .bits = 8}, "", "i8"),
  };
  for (const std::string& text : workloads) expect_one_right_sketch(text, "blocks_P_", 6, false);
  expect_one_right_sketch(product({.m = 5}), "blocks_P_", 6, false, 0);
}

// Sums that are not such a chain: weights of floating point, results that no vectors cover, an input in place of the
// constant.
TEST(BlockSums, OthersHaveSketchesOfTheirOwn) {
  const auto is_one = [](std::string text, const std::string& from = "", const std::string& to = "") {
    if (!from.empty()) text.replace(text.find(from), from.size(), to);
    return derive_sketches(computed(text), target_with(256, 16))[0].sketch->name.starts_with("blocks_");
  };
  const std::string bytes = product({.bytes = 8, .bits = 8});
  EXPECT_TRUE(is_one(bytes));
  EXPECT_FALSE(is_one(bytes, "constant B[32,3,8]:u8", "constant B[32,3,8]"));
  EXPECT_FALSE(is_one(bytes, "constant B", "input B"));
  EXPECT_FALSE(is_one(product({.n = 20})));
}

}  // namespace
}  // namespace graft::codegen
