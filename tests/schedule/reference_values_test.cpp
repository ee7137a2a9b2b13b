// The reference of random expressions against loop programs that are run literally, one point after the other.
#include <gtest/gtest.h>

#include "base/error.h"
#include "codegen/expression/padding.h"
#include "tests/schedule/support.h"
#include "tests/support/random_expression.h"

namespace graft::codegen::test {
namespace {

TEST(ReferenceValues, are_those_of_the_expression_evaluated_point_by_point) {
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const std::string text = RandomExpression(seed).text();
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, text));
    std::optional<Computation> computation;
    try {
      computation = parse_workload(text).computation();
    } catch (const base::UserError&) {
      continue;  // without a meaning
    }
    ++compared;
    EXPECT_LE(worst_excess(*computation, naive_program(with_padding_stages(*computation)), seed), 0);
  }
  EXPECT_GT(compared, 200);
}

}  // namespace
}  // namespace graft::codegen::test
