#include "tasks/divided.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/hash.h"
#include "tests/base/team.h"
#include "tests/tasks/support.h"

namespace graft::tasks {
namespace {

// Tells of each candidate how its workload is written, and whose it was.
class Fake final : public Measurer {
 public:
  Fake(int rank, int forgotten) : rank_(rank), forgotten_(forgotten) {}
  void measure(std::span<const codegen::Candidate> candidates, const std::function<void(const Measured&)>& on_trial,
               base::Monitor&) override {
    for (std::size_t i = 0; i + std::size_t(forgotten_) < candidates.size(); ++i) {
      Measured measured{std::int64_t(i), base::hash_bytes(candidates[i].workload.text()), {}};
      measured.measurement.status = datasets::Status::crashed;
      measured.measurement.reason = std::to_string(rank_);
      on_trial(measured);
    }
  }

 private:
  int rank_, forgotten_;
};

std::vector<codegen::Candidate> batch(int count) {
  std::vector<codegen::Candidate> out;
  for (int i = 0; i < count; ++i) {
    codegen::Candidate candidate;
    candidate.workload = codegen::Workload("workload " + std::to_string(i));
    out.push_back(candidate);
  }
  return out;
}

TEST(Divided, EveryoneIsToldAllInOrder) {
  for (const int count : {0, 1, 5, 64, 67}) {
    base::test::as_team(3, [&](base::Team& team) {
      const auto candidates = batch(count);
      const auto measurer = make_divided_measurer(std::make_unique<Fake>(team.rank(), 0), team);
      base::Monitor monitor;
      int next = 0;
      measurer->measure(
          candidates,
          [&](const Measured& measured) {
            EXPECT_EQ(measured.position, next);
            EXPECT_EQ(measured.program_hash, base::hash_bytes(candidates[std::size_t(next)].workload.text()));
            EXPECT_EQ(measured.measurement.reason, std::to_string(next % 24 % 3));  // 24 in a slice
            ++next;
          },
          monitor);
      EXPECT_EQ(next, count);
    });
  }
}

TEST(Divided, AWishToStopEndsABatch) {
  class Stops : public base::Monitor {
   public:
    bool stop_requested() override { return ++asked_ > 1; }

   private:
    int asked_ = 0;
  };
  base::test::as_team(2, [&](base::Team& team) {
    const auto measurer = make_divided_measurer(std::make_unique<Fake>(team.rank(), 0), team);
    Stops monitor;
    int told = 0;
    measurer->measure(
        batch(64), [&](const Measured&) { ++told; }, monitor);
    EXPECT_EQ(told, 16);
  });
}

TEST(Divided, ARankThatMeasuresLessIsAFailure) {
  base::test::as_team(2, [&](base::Team& team) {
    const auto measurer = make_divided_measurer(std::make_unique<Fake>(team.rank(), team.rank()), team);
    base::Monitor monitor;
    EXPECT_THROW(measurer->measure(
                     batch(8), [](const Measured&) {}, monitor),
                 base::Failure);
  });
}

}  // namespace
}  // namespace graft::tasks
