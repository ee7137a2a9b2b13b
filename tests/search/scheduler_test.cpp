#include "search/scheduler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace graft::search {
namespace {

constexpr double nothing = std::numeric_limits<double>::infinity();

// Rounds given to tasks whose best time after n rounds is known.
std::vector<std::size_t> served(std::vector<SharedTask> tasks,
                                const std::vector<std::function<double(std::size_t)>>& best, int rounds) {
  for (int r = 0; r < rounds; ++r) {
    const auto next = next_task(tasks);
    if (!next) break;
    SharedTask& task = tasks[*next];
    task.best_seconds.push_back(best[*next](task.best_seconds.size() + 1));
  }
  std::vector<std::size_t> counts;
  for (const SharedTask& task : tasks) counts.push_back(task.best_seconds.size());
  return counts;
}

TEST(Scheduler, EachHasARoundFirstThenWhatGainsMost) {
  std::vector<SharedTask> tasks(3);
  EXPECT_EQ(next_task(tasks), 0u);
  tasks[0].best_seconds = {1};
  EXPECT_EQ(next_task(tasks), 1u);
  tasks[1].best_seconds = {10};
  EXPECT_EQ(next_task(tasks), 2u);
  tasks[2].best_seconds = {2};
  EXPECT_EQ(next_task(tasks), 1u);
  tasks[1].ended = true;
  EXPECT_EQ(next_task(tasks), 2u);
  tasks[0].weight = 100;
  EXPECT_EQ(next_task(tasks), 0u);
  tasks[0].ended = tasks[2].ended = true;
  EXPECT_EQ(next_task(tasks), std::nullopt);
  EXPECT_EQ(next_task({}), std::nullopt);
}

TEST(Scheduler, HeavyTasksThatStillGainHaveMore) {
  const auto counts = served(std::vector<SharedTask>(3),
                             {[](std::size_t n) { return 10.0 / double(n); },  // gains for long
                              [](std::size_t) { return 10.0; },                // as long, gains nothing
                              [](std::size_t n) { return 0.1 / double(n); }},  // short
                             60);
  EXPECT_GT(counts[0], counts[2]);
  EXPECT_GT(counts[1], counts[2]);  // hope
  EXPECT_GE(counts[2], 1u);
}

TEST(Scheduler, ADeadTaskStarvesNobody) {
  const auto counts = served(std::vector<SharedTask>(3),
                             {[](std::size_t) { return nothing; }, [](std::size_t n) { return 1 + 1.0 / double(n); },
                              [](std::size_t n) { return 1 + 1.0 / double(n); }},
                             100);
  EXPECT_GE(counts[0], 2u);  // it is asked again now and then
  EXPECT_LE(counts[0], 10u);
  // All dead: they go on in turn.
  const auto all = served(std::vector<SharedTask>(2),
                          {[](std::size_t) { return nothing; }, [](std::size_t) { return nothing; }}, 20);
  EXPECT_EQ(all[0] + all[1], 20u);
}

// Against giving all the same number of rounds: a lower sum of weight * time, for tasks whose times fall by power laws.
TEST(Scheduler, LowersTheSumMoreThanEqualShares) {
  const std::vector<std::function<double(std::size_t)>> best = {
      [](std::size_t n) { return 8 * std::pow(double(n), -0.5) + 2; },
      [](std::size_t n) { return 1 * std::pow(double(n), -0.3) + 1; },
      [](std::size_t n) { return 0.2 * std::pow(double(n), -0.8) + 0.1; },
      [](std::size_t n) { return 4 * std::pow(double(n), -0.2) + 3; }};
  std::vector<SharedTask> tasks(4);
  tasks[1].weight = 6;
  const auto counts = served(tasks, best, 64);
  double shared = 0, equal = 0;
  for (std::size_t t = 0; t < 4; ++t) {
    shared += tasks[t].weight * best[t](counts[t]);
    equal += tasks[t].weight * best[t](16);
  }
  EXPECT_LT(shared, equal);
}

}  // namespace
}  // namespace graft::search
