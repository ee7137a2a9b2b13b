#include <gtest/gtest.h>

#include "tasks/platform.h"

namespace graft::tasks {
namespace {

TEST(Peak, IsWhatAModelledCoreCanDo) {
  const auto gflops = [](const char* id) {
    const Platform platform = platform_named(id);
    return platform.device->peak_flops_per_second(platform).value_or(0) * 1e-9;
  };
  const double haswell = 2 * 2 * 8 * 2.5;  // units, operations, lanes, GHz
  EXPECT_NEAR(gflops("model:haswell"), haswell, 0.02 * haswell);
  EXPECT_NEAR(gflops("model:haswell,threads=2"), 2 * haswell, 0.04 * haswell);
  const double cortex_a72 = 2 * 4 * 1.5;  // one unit
  EXPECT_NEAR(gflops("model:cortex-a72"), cortex_a72, 0.05 * cortex_a72);
  EXPECT_GT(gflops("model:sifive-x280"), gflops("model:sifive-u54"));
}

TEST(Peak, IsNotGuessedWhereNoClockIsKnown) {
  EXPECT_FALSE(this_host()->peak_flops_per_second(platform_named("native")));
}

}  // namespace
}  // namespace graft::tasks
