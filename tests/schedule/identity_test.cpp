// Hashes are names: journals and datasets hold them, and what they name must be found in every release. A change here
// makes what is stored nameless; it is never the test that is wrong.
#include <gtest/gtest.h>

#include "base/hash.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/schedule/template.h"
#include "codegen/space/space.h"
#include "tests/schedule/support.h"

namespace graft::codegen {
namespace {

using namespace test;

const char* const blocked =
    "sketch blocked\n"
    "tile C i $i1 $i2\n"
    "tile C j $j1 8\n"
    "order C $outer{i.0 j.0|j.0 i.0} l.0 i.1 j.1 i.2 j.2\n"
    "vector C j.2\n"
    "unroll C i.2\n"
    "accumulate C above l.0\n"
    "$packing{|pack C B above l.0}\n";

Candidate candidate() {
  return {parse_workload("matmul(m=12,n=16,k=4)"),
          std::make_shared<const Sketch>(parse_sketch(blocked, "test")),
          {12, 4, 16, 1, 1}};
}

TEST(Identity, OfWorkloads) {
  EXPECT_EQ(base::to_hex(hash(parse_workload("matmul(k=4, m=12, n=16)"))), "e93d15f291ff3cce");
  EXPECT_EQ(base::to_hex(hash(parse_workload("resnet18.C2"))), "7fb527f1eea66d25");
  EXPECT_EQ(base::to_hex(hash(parse_workload("input A[9,30]; output B[i,j] = exp(A[i,j]) where i=9, j=30"))),
            "baf97cf61c4ed1f9");
}

TEST(Identity, OfSchedules) {
  EXPECT_EQ(base::to_hex(hash(*candidate().sketch)), "6095dfb41d098a0a");
  EXPECT_EQ(base::to_hex(hash(candidate())), "9ee669f55a113c50");
}

TEST(Identity, OfPrograms) {
  EXPECT_EQ(base::to_hex(hash(*program(candidate(), target_with(256, 16)))), "536c532094178c77");
  EXPECT_EQ(base::to_hex(hash(naive_program(computed("conv2d(c=3,h=9,w=9,k=4,r=3,s=3,stride=2,pad=1)")))),
            "cbe7813f196fcb58");
}

TEST(Identity, OfSpaces) {
  const Target target = target_with(256, 16);
  const std::string text = std::string(blocked) + "domain i1 i2 = (12 4) (6 2)\ndomain j1 = 8 16\n";
  EXPECT_EQ(base::to_hex(parse_space(text, "test", candidate().workload, target).hash()), "a0f0edaa74ce5fb3");
  EXPECT_EQ(base::to_hex(parse_space(text + "forbid $i2 * $j1 > 32\n", "test", candidate().workload, target).hash()),
            "1c02fc5bbd8c7d4d");
}

}  // namespace
}  // namespace graft::codegen
