#include "search/scheduler.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace graft::search {
namespace {

bool is_dead(const SharedTask& task, const SchedulerSettings& settings) {
  return task.best_seconds.size() >= settings.dead_after && !std::isfinite(task.best_seconds.back());
}

// Seconds that the next round is expected to save, weighted.
double expected_gain(const SharedTask& task, const SchedulerSettings& settings) {
  const std::vector<double>& best = task.best_seconds;
  if (!std::isfinite(best.back())) return std::numeric_limits<double>::infinity();  // one more try, before it is dead
  const double rounds = double(best.size());
  const double hoped = settings.hope * best.back() / rounds;
  const std::size_t back = std::min(settings.window, best.size() - 1);
  const double before = best[best.size() - 1 - back];
  const double gained = back > 0 && std::isfinite(before) ? (before - best.back()) / double(back) : hoped;
  return task.weight * (settings.recent * gained + (1 - settings.recent) * hoped);
}

}  // namespace

std::optional<std::size_t> next_task(std::span<const SharedTask> tasks, const SchedulerSettings& settings) {
  std::size_t least_rounds = std::numeric_limits<std::size_t>::max();  // of those that live
  for (const SharedTask& task : tasks) {
    if (!task.ended && !is_dead(task, settings)) least_rounds = std::min(least_rounds, task.best_seconds.size());
  }
  std::optional<std::size_t> chosen;
  double most = -1;
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    const SharedTask& task = tasks[t];
    if (task.ended) continue;
    if (task.best_seconds.empty()) return t;
    const bool dead = is_dead(task, settings);
    if (dead && task.best_seconds.size() * settings.dead_share >= least_rounds &&
        least_rounds != std::numeric_limits<std::size_t>::max())
      continue;
    const double gain = dead ? std::numeric_limits<double>::infinity() : expected_gain(task, settings);
    if (gain > most) most = gain, chosen = t;
  }
  return chosen;
}

}  // namespace graft::search
