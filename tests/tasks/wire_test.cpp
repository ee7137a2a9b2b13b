// What passes for an expected value.
#include <gtest/gtest.h>

#include <limits>

#include "tasks/worker/wire.h"

namespace graft::tasks {
namespace {

TEST(Wire, NanPassesForNanOnly) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(wire::within(nan, nan, 0));
  EXPECT_FALSE(wire::within(nan, 1, infinity));
  EXPECT_FALSE(wire::within(1, nan, infinity));
  EXPECT_TRUE(wire::within(infinity, infinity, 0));
  EXPECT_FALSE(wire::within(-infinity, infinity, 1));
  EXPECT_TRUE(wire::within(1.5, 1, 0.5));
  EXPECT_FALSE(wire::within(1.5, 1, 0.25));
}

}  // namespace
}  // namespace graft::tasks
