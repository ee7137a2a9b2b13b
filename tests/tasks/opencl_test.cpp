#include "tasks/opencl.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "base/monitor.h"
#include "base/random.h"
#include "codegen/machine/opencl.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/schedule/rules.h"
#include "tasks/measurer.h"
#include "tasks/platform.h"
#include "tests/support/judged_space.h"
#include "tests/tasks/support.h"

namespace graft::tasks {
namespace {

using datasets::Status;
using test::expect_contains;
using test::message_of;

constexpr const char* yaml =
    "name: gpu\ntarget: {triple: opencl, cpu: any, vector_bits: 512, vector_registers: 64, cores: 2,\n"
    "         group_items: 64, group_bytes: 16384}\nopencl: {device: 0}\n";

// With the tests' own driver (fake_opencl.c), which the worker loads in place of the system's.
class FakeDriver : public ::testing::Test {
 protected:
  FakeDriver() { ::setenv("LD_LIBRARY_PATH", GRAFT_FAKE_OPENCL_FOLDER, 1); }
  ~FakeDriver() override {
    ::unsetenv("LD_LIBRARY_PATH");
    ::unsetenv("GRAFT_FAKE_OPENCL");
  }

  // Candidates of matmul: with or without loads of four.
  codegen::Candidate candidate(bool with_vload4) {
    const codegen::JudgedSpace space(codegen::derive_space(workload_, platform_.target), platform_.target);
    for (int draw = 0; draw < 500; ++draw) {
      codegen::Candidate drawn = space.sample(stream_);
      const auto program = codegen::program(drawn, platform_.target);
      if (!program) continue;
      const auto source = codegen::opencl_source(*program, platform_.target);
      if (source.ok() && (source->find("vload4") != std::string::npos) == with_vload4) return drawn;
    }
    ADD_FAILURE() << "no such candidate";
    return space.sample(stream_);
  }

  // What the measurements of a candidate without, with and without such loads come to, when those meet `what`.
  std::vector<datasets::Measurement> measured(const char* what) {
    ::setenv("GRAFT_FAKE_OPENCL", what, 1);
    MeasureSettings settings;
    settings.timeout_seconds = 1;
    const std::unique_ptr<Measurer> measurer = platform_.device->measurer(platform_, settings, nullptr);
    const std::vector<codegen::Candidate> all{candidate(false), candidate(true), candidate(false)};
    std::vector<datasets::Measurement> found;
    base::Monitor monitor;
    measurer->measure(
        all, [&](const Measured& each) { found.push_back(each.measurement); }, monitor);
    EXPECT_EQ(found.size(), 3u) << what;
    found.resize(3);
    return found;
  }

  Platform platform_ = parse_platform(yaml, "gpu.yaml");
  codegen::Workload workload_ = codegen::parse_workload("matmul(m=16,n=64,k=16)");
  base::Stream stream_{1, "candidates"};
};

TEST_F(FakeDriver, ADriverThatFailsCostsOneTrial) {
  struct Fault {
    Status status;
    const char* reason;
  };
  const std::map<const char*, Fault> faults{
      {"crash", {Status::crashed, "the worker process ended"}},
      {"hang", {Status::timed_out, "the kernel took more than 1 s"}},
      {"build_error", {Status::does_not_compile, "the driver cannot build it: no registers are left"}},
      {"group", {Status::does_not_compile, "clEnqueueNDRangeKernel gives -54"}},
      {"resources", {Status::out_of_memory, "clEnqueueNDRangeKernel gives -5"}}};
  for (const auto& [what, fault] : faults) {
    const std::vector<datasets::Measurement> found = measured(what);
    EXPECT_EQ(found[1].status, fault.status) << what << ": " << found[1].reason;
    EXPECT_EQ(found[1].reason, fault.reason);
    // The driver computes nothing, which the check of the others sees.
    for (const int other : {0, 2}) {
      EXPECT_EQ(found[std::size_t(other)].status, Status::wrong_result) << what;
      expect_contains(found[std::size_t(other)].reason, "C: element 0 is ");
    }
  }
}

TEST_F(FakeDriver, DevicesBecomePlatforms) {
  EXPECT_EQ(opencl_devices(), std::vector<std::string>{"fake"});
  const Platform platform = platform_named("opencl:0");
  EXPECT_EQ(platform.device->source(), "opencl");
  EXPECT_EQ(platform.target.group_items, 64);
  EXPECT_EQ(platform.target.group_bytes, 16384);
  EXPECT_EQ(platform.target.cores, 64);
  EXPECT_EQ(message_of<base::UserError>([] { (void)platform_named("opencl:1"); }), "opencl:1: this host has 1 devices");
  EXPECT_EQ(message_of<base::UserError>([] { (void)platform_named("opencl:x"); }), "opencl:x: expected opencl:NUMBER");
}

TEST(Opencl, PlatformsThatAreNotWhole) {
  const std::string text = yaml;
  expect_contains(message_of<base::UserError>([&] {
                    (void)parse_platform(text.substr(0, text.find(", cores")) + "}\nopencl: {device: 0}\n", "gpu.yaml");
                  }),
                  "expected group_items");
  expect_contains(
      message_of<base::UserError>([&] { (void)parse_platform(text.substr(0, text.size() - 3) + "-1}\n", "gpu.yaml"); }),
      "there is no device -1");
}

}  // namespace
}  // namespace graft::tasks
