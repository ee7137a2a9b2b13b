#include "tasks/peak.h"

#include <gtest/gtest.h>

namespace graft::tasks {
namespace {

TEST(Peak, IsWhatAModelledCoreCanDo) {
  const auto gflops = [](const char* platform) {
    return peak_flops_per_second(platform_named(platform)).value_or(0) * 1e-9;
  };
  const double haswell = 2 * 2 * 8 * 2.5;  // units, operations, lanes, GHz
  EXPECT_NEAR(gflops("model:haswell"), haswell, 0.02 * haswell);
  EXPECT_NEAR(gflops("model:haswell,threads=2"), 2 * haswell, 0.04 * haswell);
  const double cortex_a72 = 2 * 4 * 1.5;  // one unit
  EXPECT_NEAR(gflops("model:cortex-a72"), cortex_a72, 0.05 * cortex_a72);
  EXPECT_GT(gflops("model:sifive-x280"), gflops("model:sifive-u54"));
}

TEST(Peak, IsNotGuessedWhereNoClockIsKnown) {
  EXPECT_FALSE(peak_flops_per_second(platform_named("native")));
}

}  // namespace
}  // namespace graft::tasks
