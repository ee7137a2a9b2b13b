#include "tasks/expected.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tests/tasks/support.h"

namespace graft::tasks {
namespace {

using test::expect_contains;

std::string refusal_of(const std::string& workload, Place place, std::int64_t available,
                       const MeasureSettings& settings = {}) {
  return test::message_of<base::UserError>(
      [&] { require_memory(codegen::parse_workload(workload), place, settings, available); });
}

TEST(Memory, CountsTensorsReferenceAndCopies) {
  // 10 x 30 and 30 x 20 elements in, 10 x 20 out, of 4 bytes each.
  const codegen::Computation matmul = codegen::parse_workload("matmul(m=10,n=20,k=30)").computation();
  const std::int64_t inputs = 900 * 4, outputs = 200 * 4, expected = 200 * 16, file = inputs + expected;
  const MemoryNeed here = memory_need(matmul, Place::here);
  EXPECT_EQ(here.worker, file + inputs + outputs + inputs);
  EXPECT_EQ(here.here, std::max(here.worker, inputs + expected + file + 600 * 4));
  const MemoryNeed elsewhere = memory_need(matmul, Place::elsewhere);
  EXPECT_EQ(elsewhere.worker, 0);
  EXPECT_EQ(elsewhere.here, inputs + expected + 5 * inputs + outputs);
  EXPECT_GT(memory_need(matmul, Place::both).here, here.here);
}

TEST(Memory, RefusesWhatDoesNotFitByBothNumbersForEveryPlace) {
  const std::string square = "input A[1000000,1000000]; output C[i,j] = A[i,j] * 2 where i=1000000, j=1000000";
  for (const Place place : {Place::here, Place::elsewhere, Place::both}) {
    const std::string said = refusal_of(square, place, 24'000'000'000);
    expect_contains(said, " TB of memory, 24 GB are available");
    EXPECT_LT(said.size(), 250u);
    EXPECT_EQ(said.find('\n'), std::string::npos);
    require_memory(codegen::parse_workload("matmul(m=512,n=512,k=512)"), place, {}, 100'000'000);
    require_memory(codegen::parse_workload("matmul(m=4096,n=4096,k=4096)"), place, {}, 3'000'000'000);
  }
  // As many elements as a tensor may have, many times.
  std::string many;
  for (int t = 0; t < 60; ++t) many += "input A" + std::to_string(t) + "[1000000,1000000] : f64;";
  expect_contains(refusal_of(many + " output C[i] += A0[i,l] where i=1000000, l=1000000", Place::both,
                             std::numeric_limits<std::int64_t>::max() / 8192),
                  " PB of memory");
}

TEST(Memory, OfLargeTensorsIsThatOfTheirTypes) {
  const auto need = [](const char* text) {
    return double(memory_need(codegen::parse_workload(text).computation(), Place::here).here) * 1e-9;
  };
  // Two inputs here, in the worker, and repacked there; an output. The sample that is compared is small.
  EXPECT_NEAR(
      need("input A[23200,23200]; input B[23200,23200]; output C[i,j] = A[i,j] + B[i,j] where i=23200, j=23200"),
      (3 * 2 + 1) * 4 * 0.53824, 0.2);
  EXPECT_NEAR(need("input A[50000,50000] : i8; output C[i,j] : i8 = A[i,j] * 2 where i=50000, j=50000"), (3 + 1) * 2.5,
              0.2);
  EXPECT_NEAR(need("dense(m=1,n=128256,k=4096)"), 3 * 4 * 128.256e3 * 4096e-9, 0.2);
  // No executable is made of so much data.
  const codegen::Computation large =
      codegen::parse_workload(
          "input A[23200,23200]; input B[23200,23200]; output C[i,j] = A[i,j] + B[i,j] where i=23200, j=23200")
          .computation();
  EXPECT_NEAR(double(memory_need(large, Place::elsewhere).here) * 1e-9, 2 * 4 * 0.53824, 0.2);
}

TEST(Memory, RefusesWhatTheWorkerMayNotHave) {
  const std::string large = "matmul(m=20000,n=20000,k=20000)";
  MeasureSettings settings;
  settings.memory_limit_bytes = std::int64_t(4) << 30;
  expect_contains(refusal_of(large, Place::here, std::numeric_limits<std::int64_t>::max(), settings),
                  "the process that runs programs may have 4.29 GB");
  for (const Place place : {Place::here, Place::elsewhere})
    require_memory(codegen::parse_workload(large), place, {}, std::numeric_limits<std::int64_t>::max());
}

// What of a sample is compared and what is not: by an output as it is stored.
TEST(Difference, LooksAtTheSampleAndForNumbersElsewhere) {
  const codegen::Computation what =
      codegen::parse_workload("input A[100,200]; output C[i,j] = A[i,j] + 1 where i=100, j=200").computation();
  codegen::ReferenceSettings settings;
  settings.most_elements = 1000;
  settings.sampled_work = 100;
  base::Monitor nobody;
  const codegen::Reference some = codegen::reference(what, 1, settings, nobody);
  ASSERT_TRUE(some.tensors[1].is_sample());
  const codegen::Reference whole = codegen::reference(what, 1);
  const codegen::Layout turned = codegen::parse_layout(std::vector<std::string>{"1", "0"}, "test");
  for (const codegen::Layout& layout : {codegen::Layout{}, turned}) {
    const std::vector<std::int64_t> stored =
        layout.is_plain() ? std::vector<std::int64_t>{100, 200} : std::vector<std::int64_t>{200, 100};
    std::vector<double> output = codegen::packed(layout, stored, whole.tensors[1].numbers());
    const auto found = [&] {
      return difference(what.tensors[1], some, 1, 1, codegen::as_bytes(output, codegen::DType::f32), layout, stored);
    };
    EXPECT_FALSE(found());
    const std::size_t last = output.size() - 1, other = 77;  // a corner; no element of the sample
    output[other] += 1;
    EXPECT_FALSE(found());
    output[other] = std::numeric_limits<double>::quiet_NaN();
    ASSERT_TRUE(found());
    expect_contains(*found(), "element 77 is nan instead of a number");
    output[other] = 0;
    output[last] += 1;
    ASSERT_TRUE(found());
    expect_contains(*found(), "C: element 19999 is ");
  }
}

TEST(ExpectedResults, SaysThatItIsASampleAndStops) {
  class Notes final : public base::Monitor {
   public:
    void note(std::string_view line) override { said += line; }
    std::string said;
  } notes;
  const codegen::Workload large = codegen::parse_workload("matmul(m=1700,n=1700,k=1700)"), small = test::small_matmul();
  EXPECT_EQ(expected_results(small, small.computation(), 1, 2, notes).computed, 64);
  EXPECT_EQ(notes.said, "");
  EXPECT_LT(expected_results(large, large.computation(), 1, 2, notes).computed, 1700 * 1700);
  expect_contains(notes.said, "matmul(m=1700,n=1700,k=1700,dtype=f32): too large to check all");
  test::StopAfterSeconds at_once(-1);
  EXPECT_THROW((void)expected_results(large, large.computation(), 1, 2, at_once), base::Stopped);
}

}  // namespace
}  // namespace graft::tasks
