// Attention: all stages for a block of rows before the next one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/random.h"
#include "codegen/program/forms.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/schedule/rules.h"
#include "tests/schedule/sampled.h"
#include "tests/schedule/support.h"
#include "tests/support/judged_space.h"

namespace graft::codegen {
namespace {

using namespace test;

struct Sizes {
  int b = 1, h = 2, i = 24, j = 24, l = 8, d = 24;
};

// Heads within the rows, as networks have them; `scores` is what softmax is of, in S and further operands.
std::string attention(const Sizes& n, const std::string& scores = "S[b,h,i,j] / 3", const std::string& operands = "") {
  return fmt::format(
      "input Q[{0},{2},{1},{4}]; input K[{0},{3},{1},{4}]; input V[{0},{3},{1},{5}]; {7}"
      "S[b,h,i,j] += Q[b,i,h,l] * K[b,j,h,l]; T[b,h,i,j] = {6}; M[b,h,i] max= T[b,h,i,j];"
      "E[b,h,i,j] = exp(T[b,h,i,j] - M[b,h,i]); D[b,h,i] += E[b,h,i,j]; O[b,h,i,d] += E[b,h,i,j] * V[b,j,h,d];"
      "output Y[b,i,h,d] = O[b,h,i,d] / D[b,h,i] where b={0}, h={1}, i={2}, j={3}, l={4}, d={5}",
      n.b, n.h, n.i, n.j, n.l, n.d, scores, operands);
}

// Shapes that blocks, vectors and register tiles divide, and others; masks that stay along the rows, and others.
TEST(ProductRows, SampledSchedulesComputeTheReference) {
  const std::string workloads[] = {
      attention({}),
      attention({2, 3, 21, 19, 5, 7}),
      attention({1, 1, 37, 50, 9, 33}),
      attention({}, "S[b,h,i,j] * 0.25 + m[b,j]", "input m[1,24]; "),
      attention({2, 2, 19, 23, 6, 9}, "S[b,h,i,j] * 0.25 + m[i,j]", "input m[19,23]; "),
      attention({1, 2, 17, 17, 6, 9}, "select(m[i,j] == 1, S[b,h,i,j], -5)", "input m[17,17] : u8; "),
      // The scores themselves, without a stage between.
      "input Q[2,20,5]; input K[2,5,18]; input V[2,18,12]; S[h,i,j] += Q[h,i,l] * K[h,l,j]; M[h,i] max= S[h,i,j];"
      "E[h,i,j] = exp(S[h,i,j] - M[h,i]); D[h,i] += E[h,i,j]; O[h,i,d] += E[h,i,j] * V[h,j,d];"
      "output Y[h,i,d] = O[h,i,d] / D[h,i] where h=2, i=20, j=18, l=5, d=12",
  };
  for (const std::string& text : workloads) expect_one_right_sketch(text, "product_rows_S_M_D_O", 10);
}

// What is kept between the stages is a block of rows of one head.
TEST(ProductRows, ScoresAreNeverThereAsAWhole) {
  const std::string text = attention({2, 4, 64, 40, 8, 16});
  const Target target = target_with(256, 16);
  const JudgedSpace space(parse_workload(text), target, derive_sketches(computed(text), target));
  base::Stream stream(5, "rows");
  bool is_smaller = false;
  for (int i = 0; i < 20; ++i) {
    const auto program = codegen::program(space.sample(stream), target);
    ASSERT_TRUE(program.ok()) << program.reason().text;
    for (const Buffer& buffer : program->buffers) {
      if (buffer.role != Role::temporary) continue;
      EXPECT_LE(buffer.elements(), 64 * 40) << buffer.name;
      is_smaller = is_smaller || (buffer.name == "E" && buffer.elements() < 64 * 40);
    }
  }
  EXPECT_TRUE(is_smaller);
}

TEST(ProductRows, OtherChainsAreNotTaken) {
  const auto is_taken = [](const std::string& text, std::int64_t bits = 256) {
    return schedules_together(computed(text), target_with(bits, 16));
  };
  EXPECT_TRUE(is_taken(attention({})));
  EXPECT_FALSE(is_taken(attention({}), 0)) << "no vectors";
  EXPECT_FALSE(is_taken(attention({8, 8, 4, 24, 8, 16}))) << "rows of less than a vector";
  const auto changed = [](const std::string& from, const std::string& to) {
    std::string text = attention({});
    EXPECT_TRUE(contains(text, from));
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
    return text;
  };
  EXPECT_FALSE(is_taken(changed("M[b,h,i]", "M[b,h,j]"))) << "the largest of a column";
  EXPECT_FALSE(is_taken(changed(" S[b,h,i,j] +=", " output S[b,h,i,j] +="))) << "scores are an output";
  EXPECT_FALSE(is_taken(changed("V[b,j,h,d]", "V[b,d,h,j]"))) << "the last product's results are not side by side";
  EXPECT_FALSE(is_taken(changed("E[b,h,i,j] * V", "E[b,h,j,i] * V"))) << "a transposed matrix";
  EXPECT_FALSE(is_taken("softmax(m=24,n=24)") && derive_sketches(computed("softmax(m=24,n=24)"), target_with(256, 16))
                                                     .front()
                                                     .sketch->name.starts_with("product_rows"));
  EXPECT_FALSE(is_taken(changed("input K", "constant K"))) << "constants are packed before the run";
  // A product after softmax alone, and softmax after a product alone.
  EXPECT_FALSE(
      is_taken("input X[24,24]; input V[24,16]; M[i] max= X[i,j]; E[i,j] = exp(X[i,j] - M[i]); D[i] += E[i,j];"
               "O[i,d] += E[i,j] * V[j,d]; output Y[i,d] = O[i,d] / D[i] where i=24, j=24, d=16"));
  EXPECT_FALSE(
      is_taken("input Q[24,16]; input K[24,16]; X[i,j] += Q[i,l] * K[j,l]; M[i] max= X[i,j];"
               "E[i,j] = exp(X[i,j] - M[i]); D[i] += E[i,j]; output Y[i,j] = E[i,j] / D[i] "
               "where i=24, j=24, l=16"));
}

}  // namespace
}  // namespace graft::codegen
