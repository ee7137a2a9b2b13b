#include "base/clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace graft::base {
namespace {

TEST(Clock, SleepCountsOnTheWallOnly) {
  const double wall = wall_seconds(), thread = thread_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_GE(wall_seconds() - wall, 0.03);
  EXPECT_LT(thread_seconds() - thread, 0.03);
}

TEST(Clock, WorkCountsOnBoth) {
  const double wall = wall_seconds(), thread = thread_seconds();
  while (thread_seconds() - thread < 0.002) {
  }
  EXPECT_GE(wall_seconds() - wall, 0.002);
}

}  // namespace
}  // namespace graft::base
