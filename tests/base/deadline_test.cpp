#include "base/deadline.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/within.h"

namespace graft::base {
namespace {

TEST(Deadline, IsOverWhenItsTimeIs) {
  EXPECT_FALSE(Deadline().exists());
  EXPECT_FALSE(Deadline(0).exists());
  EXPECT_FALSE(Deadline().is_over());
  EXPECT_TRUE(std::isinf(Deadline().left()));
  const Deadline long_ago(1e-12), later(1e6);
  EXPECT_TRUE(long_ago.exists() && long_ago.is_over());
  EXPECT_FALSE(later.is_over());
  EXPECT_GT(later.left(), 9e5);
  Monitor nobody;
  EXPECT_TRUE(UntilMonitor(nobody, long_ago).stop_requested());
  EXPECT_FALSE(UntilMonitor(nobody, later).stop_requested());
  EXPECT_TRUE(UntilMonitor(nobody, later, 2e6).stop_requested());  // the reserve
  EXPECT_FALSE(UntilMonitor(nobody, long_ago, -INFINITY).stop_requested());
}

TEST(Within, InfinityStandsForWhatIsBeyondTheType) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), largest = 3.4e38;
  EXPECT_TRUE(within(1, 1.5, 0.5, largest));
  EXPECT_FALSE(within(1, 1.6, 0.5, largest));
  EXPECT_TRUE(within(nan, nan, 0, largest));
  EXPECT_FALSE(within(nan, 1, 9, largest));
  EXPECT_FALSE(within(1, nan, 9, largest));
  EXPECT_TRUE(within(INFINITY, INFINITY, 0, largest));
  EXPECT_TRUE(within(INFINITY, 2e39, 0, largest));
  EXPECT_TRUE(within(-INFINITY, -2e39, 0, largest));
  EXPECT_FALSE(within(-INFINITY, INFINITY, 1, largest));
  EXPECT_FALSE(within(INFINITY, -2e39, 0, largest));
  EXPECT_FALSE(within(INFINITY, 3e38, 1e37, largest));
  EXPECT_TRUE(within(INFINITY, 3.39e38, 1e37, largest));  // rounded to beyond it
  EXPECT_FALSE(within(3.4e38, INFINITY, 1e39, largest));
}

}  // namespace
}  // namespace graft::base
