#include "tasks/modelled/twin.h"

#include <gtest/gtest.h>

#include <string>

#include "base/files.h"
#include "codegen/machine/core_timing.h"
#include "tasks/modelled/modelled.h"
#include "tests/tasks/support.h"

namespace graft::tasks {
namespace {

using test::expect_contains;
using test::message_of;

// Its ways divide the caches of almost any host.
const std::string profile = std::string(GRAFT_SOURCE_DIR) + "/platforms/hosts/znver3.yaml";

TEST(Twin, HasTheCodeOfThePlatformAndTheCoreOfTheProfile) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "the profile is of an x86-64 cpu";
#endif
  const Platform native = platform_named("native:v2");
  const Platform twin = twin_of(native, profile);
  EXPECT_EQ(twin.target, native.target);
  EXPECT_EQ(twin.device->source(), "modelled");
  EXPECT_EQ(profile_of(twin)->model_cpu, "znver3");
  // 512-bit code is timed by tables that have both of a Xeon's wide units.
  Platform wide = native;
  wide.target.vector_bits = 512;
  wide.target.l1_bytes = wide.target.l2_bytes = wide.target.l3_bytes = std::nullopt;  // the profile's
  const std::string xeon = std::string(GRAFT_SOURCE_DIR) + "/platforms/hosts/sapphirerapids.yaml";
  EXPECT_EQ(profile_of(twin_of(wide, xeon))->model_cpu, "skylake-avx512");
  const auto time = modelled_time(test::good_matmul(), twin);
  ASSERT_TRUE(time.ok());
  EXPECT_GT(time->seconds, 0);

  // The same code on another core.
  codegen::CoreTimingSettings atom;
  atom.model_cpu = "silvermont";
  const auto small = codegen::core_timing(test::good_matmul(), native.target, atom);
  ASSERT_TRUE(small.ok());
  EXPECT_EQ(small->instructions, time->instructions);
  EXPECT_GT(small->cycles, 1.2 * time->core_cycles);
}

TEST(Twin, RefusesWhatItCannotBe) {
  const Platform board = platform_named(std::string(GRAFT_SOURCE_DIR) + "/platforms/sifive-p450.yaml");
  expect_contains(message_of<base::UserError>([&] { twin_of(board, profile); }), "native:v3");
  const Platform native = platform_named("native");
  expect_contains(message_of<base::UserError>([&] { twin_of(native, "no-such.yaml"); }), "no-such.yaml");
}

TEST(Twin, ShippedProfilesAreGood) {
  for (const char* name : {"sapphirerapids", "znver3", "znver4"}) {
    const Platform one = platform_named(std::string(GRAFT_SOURCE_DIR) + "/platforms/hosts/" + name + ".yaml");
    EXPECT_EQ(one.target.cpu, name);
    EXPECT_NO_THROW(geometry_of(one)) << name;
  }
}

}  // namespace
}  // namespace graft::tasks
