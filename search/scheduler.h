// Several searches share a budget: decides which of them gets the next round. As in Ansor (Zheng et al., OSDI 2020,
// section 6): a round goes to the search that is expected to lower the weighted sum of times most.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace graft::search {

// One of the searches. What is minimised is the sum of weight * best time.
struct SharedTask {
  double weight = 1;                 // how often its kernel runs
  std::vector<double> best_seconds;  // after each of its rounds; infinity before the first ok program
  bool ended = false;                // its space is exhausted, or it gets no further round for another reason
};

struct SchedulerSettings {
  double recent = 0.5;         // weight of the gain of the last rounds; the rest is the possible gain
  std::size_t window = 3;      // rounds that count as the last ones
  double hope = 0.2;           // share of a task's time that doubling its rounds is hoped to save
  std::size_t dead_after = 2;  // rounds without an ok program, after which a task gets one round in `dead_share` of
  std::size_t dead_share = 8;  //   those that the least served of the others had
};

// The position of the task that gets the next round: each gets one first, in order. Depends on its arguments alone, so
// a continued schedule is the same. nullopt if all have ended.
std::optional<std::size_t> next_task(std::span<const SharedTask> tasks, const SchedulerSettings& settings = {});

}  // namespace graft::search
