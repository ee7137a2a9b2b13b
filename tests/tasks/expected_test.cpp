#include "tasks/expected.h"

#include <gtest/gtest.h>

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
  const codegen::Computation matmul = codegen::computation(codegen::parse_workload("matmul(m=10,n=20,k=30)"));
  const std::int64_t inputs = 900 * 4, outputs = 200 * 4, file = inputs + 200 * 16, reference = 900 * 8 + 200 * 16;
  const MemoryNeed here = memory_need(matmul, Place::here);
  EXPECT_EQ(here.worker, file + inputs + outputs + inputs);
  EXPECT_EQ(here.here, reference + file + 600 * (8 + 4));
  const MemoryNeed elsewhere = memory_need(matmul, Place::elsewhere);
  EXPECT_EQ(elsewhere.worker, 0);
  EXPECT_EQ(elsewhere.here, reference + 200 + 5 * inputs + outputs);
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
                             std::numeric_limits<std::int64_t>::max() / 4096),
                  " PB of memory");
}

TEST(Memory, RefusesWhatTheWorkerMayNotHave) {
  const std::string large = "matmul(m=20000,n=20000,k=20000)";
  expect_contains(refusal_of(large, Place::here, std::numeric_limits<std::int64_t>::max()),
                  "the process that runs programs may have 4.29 GB");
  require_memory(codegen::parse_workload(large), Place::elsewhere, {}, std::numeric_limits<std::int64_t>::max());
}

TEST(ExpectedResults, SaysThatItIsASampleAndStops) {
  class Notes final : public base::Monitor {
   public:
    void note(std::string_view line) override { said += line; }
    std::string said;
  } notes;
  const codegen::Workload large = codegen::parse_workload("matmul(m=1700,n=1700,k=1700)"), small = test::small_matmul();
  EXPECT_EQ(expected_results(small, codegen::computation(small), 1, 2, notes).computed, 64);
  EXPECT_EQ(notes.said, "");
  EXPECT_LT(expected_results(large, codegen::computation(large), 1, 2, notes).computed, 1700 * 1700);
  expect_contains(notes.said, "matmul(m=1700,n=1700,k=1700,dtype=f32): too large to check all");
  test::StopAfterSeconds at_once(-1);
  EXPECT_THROW((void)expected_results(large, codegen::computation(large), 1, 2, at_once), base::Stopped);
}

}  // namespace
}  // namespace graft::tasks
