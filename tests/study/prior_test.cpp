#include "study/knowledge/prior.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace graft::study {
namespace {

tasks::Platform platform(const std::string& name, const std::string& triple, const std::string& cpu,
                         std::int64_t vector_bits) {
  tasks::Platform out;
  out.name = name;
  out.target.triple = triple;
  out.target.cpu = cpu;
  out.target.vector_bits = vector_bits;
  return out;
}

constexpr const char *x86 = "x86_64-unknown-linux-gnu", *arm = "aarch64-unknown-linux-gnu";

// Whose programs a search on the platform begins with, "" for none.
std::string known_from(const tasks::Platform& on) {
  std::vector<meta::KnownPrograms> known;
  for (const tasks::Platform& each :
       {platform("model:haswell", x86, "haswell", 256), platform("native:v3", x86, "x86-64-v3", 256),
        platform("native:v4", x86, "x86-64-v4", 512), platform("model:cortex-a72", arm, "cortex-a72", 128)})
    known.push_back({each.name, each.target});
  const meta::KnownPrograms* const found = known_on(known, on);
  return found == nullptr ? "" : found->platform;
}

TEST(KnownOn, APlatformHasItsOwn) {
  EXPECT_EQ(known_from(platform("native:v3", x86, "x86-64-v3", 256)), "native:v3");
  EXPECT_EQ(known_from(platform("model:haswell", x86, "haswell", 256)), "model:haswell");
  EXPECT_EQ(known_from(platform("native:v3,threads=2", x86, "x86-64-v3", 256)), "native:v3");
  EXPECT_EQ(known_from(platform("model:cortex-a72,threads=4,noise=1", arm, "cortex-a72", 128)), "model:cortex-a72");
}

TEST(KnownOn, ThisHostHasThoseOfNativeCodeWithEqualVectors) {
  EXPECT_EQ(known_from(platform("native", "x86_64-pc-linux-gnu", "znver4", 512)), "native:v4");
  EXPECT_EQ(known_from(platform("native,threads=2", "x86_64-pc-linux-gnu", "haswell", 256)), "native:v3");
  EXPECT_EQ(known_from(platform("native", "x86_64-pc-linux-gnu", "nehalem", 128)), "");
  EXPECT_EQ(known_from(platform("native", "aarch64-unknown-linux-gnu", "a64fx", 512)), "");
}

TEST(KnownOn, ABoardHasThoseOfTheModelOfItsCpu) {
  EXPECT_EQ(known_from(platform("raspberry-pi-4", arm, "cortex-a72", 128)), "model:cortex-a72");
  EXPECT_EQ(known_from(platform("raspberry-pi-5", arm, "cortex-a76", 128)), "");
  EXPECT_EQ(known_from(platform("desktop", x86, "haswell", 256)), "model:haswell");
  EXPECT_EQ(known_from(platform("desktop", x86, "haswell", 128)), "");  // compiled for other vectors
}

}  // namespace
}  // namespace graft::study
