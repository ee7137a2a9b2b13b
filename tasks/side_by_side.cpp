#include "tasks/side_by_side.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/error.h"

namespace graft::tasks {
namespace {

constexpr std::chrono::milliseconds look_at_monitor{50};
constexpr int most_unshared = 3;          // failures, until a member is set aside
constexpr std::size_t most_in_doubt = 3;  // results, until others measure them

bool is_failure(const Measured& measured) {
  using datasets::Status;
  const Status status = measured.measurement.status;
  return status != Status::ok && status != Status::slower_than_limit && status != Status::does_not_lower;
}

class SideBySide final : public Measurer {
 public:
  explicit SideBySide(std::vector<std::unique_ptr<Measurer>> measurers) {
    assert(!measurers.empty());
    for (std::unique_ptr<Measurer>& measurer : measurers) members_.push_back({std::move(measurer)});
  }

  void measure(std::span<const codegen::Candidate> candidates, const std::function<void(const Measured&)>& on_trial,
               base::Monitor& monitor) override {
    Round round{candidates};
    for (std::size_t at = 0; at < candidates.size(); ++at) round.left.push_back({at});
    round.in_doubt.resize(members_.size());
    // More than once if a member fails, or its results are in doubt, when the others have ended.
    while (!round.left.empty() && !round.monitor.stop_requested()) measure_left(round, on_trial, monitor);
  }

 private:
  struct Member {
    std::unique_ptr<Measurer> measurer;
    bool is_healthy = false;  // its last result was not a failure
    int unshared = 0;         // failures where another succeeded, since it was healthy
  };
  struct Item {
    std::size_t at = 0;                       // in the batch
    std::vector<std::size_t> failed_on = {};  // members
    Measured result = {};                     // on the last of them
  };
  struct Round {
    std::span<const codegen::Candidate> candidates;
    base::RelayMonitor monitor = {};
    std::mutex mutex = {};  // of all below, and of what members are known to be
    std::condition_variable changed = {};
    std::deque<Item> left = {};                    // to measure
    std::vector<std::vector<Item>> in_doubt = {};  // by member: failures since its last success
    std::size_t working = 0;
    std::deque<Measured> results = {};
    std::vector<std::size_t> failed = {};  // members
    std::exception_ptr fault = {};

    void report(const Measured& measured) {
      results.push_back(measured);
      changed.notify_one();
    }
  };

  void measure_left(Round& round, const std::function<void(const Measured&)>& on_trial, base::Monitor& monitor) {
    std::vector<std::jthread> threads;
    round.working = members_.size();
    for (std::size_t m = 0; m < members_.size(); ++m) threads.emplace_back([this, &round, m] { work(m, round); });
    // Whatever `on_trial` throws, the threads end first.
    try {
      pass_on(round, on_trial, monitor);
    } catch (...) {
      round.monitor.stop();
      throw;
    }
    threads.clear();
    if (round.fault) std::rethrow_exception(round.fault);
    std::sort(round.failed.rbegin(), round.failed.rend());
    for (const std::size_t member : round.failed) {
      members_.erase(members_.begin() + std::ptrdiff_t(member));
      for (Item& item : round.left) forget(item, member);
    }
    round.in_doubt.assign(members_.size(), {});
    round.failed.clear();
  }

  // Removes a member; the members after it are renumbered.
  static void forget(Item& item, std::size_t member) {
    std::erase(item.failed_on, member);
    for (std::size_t& other : item.failed_on) other -= other > member;
  }

  void work(std::size_t member, Round& round) {
    try {
      while (measure_next(member, round)) continue;
    } catch (...) {
      const std::lock_guard lock(round.mutex);
      if (!round.fault) round.fault = std::current_exception();
      round.monitor.stop();
    }
    const std::lock_guard lock(round.mutex);
    ask_others(member, round);
    --round.working;
    round.changed.notify_one();
  }

  // Others measure what failed on this member alone.
  static void ask_others(std::size_t member, Round& round) {
    for (Item& item : round.in_doubt[member]) round.left.push_front(std::move(item));
    round.in_doubt[member].clear();
  }

  bool is_in(std::size_t member, const Round& round) const {
    return std::find(round.failed.begin(), round.failed.end(), member) == round.failed.end();
  }
  // Whether it failed on all members that are in.
  bool failed_everywhere(const Item& item, const Round& round) const {
    for (std::size_t m = 0; m < members_.size(); ++m) {
      const bool has_failed = std::find(item.failed_on.begin(), item.failed_on.end(), m) != item.failed_on.end();
      if (!has_failed && is_in(m, round)) return false;
    }
    return true;
  }

  // The next item that has not failed on the member; nullopt: there is none.
  std::optional<Item> next_item(std::size_t member, Round& round) const {
    if (round.monitor.stop_requested() || !is_in(member, round)) return std::nullopt;
    for (std::size_t i = 0; i < round.left.size();) {
      const Item& item = round.left[i];
      const auto here = round.left.begin() + std::ptrdiff_t(i);
      if (!item.failed_on.empty() && failed_everywhere(item, round)) {
        round.report(item.result);
        round.left.erase(here);
      } else if (std::find(item.failed_on.begin(), item.failed_on.end(), member) != item.failed_on.end()) {
        ++i;
      } else {
        Item taken = std::move(*here);
        round.left.erase(here);
        return taken;
      }
    }
    return std::nullopt;
  }

  // A failure counts once the member has succeeded with another candidate, or a second member has failed as well.
  void settle(std::size_t member, Item item, const Measured& measured, Round& round) {
    Member& own = members_[member];
    const bool was_healthy = std::exchange(own.is_healthy, !is_failure(measured));
    if (own.is_healthy) {
      own.unshared = 0;
      for (const std::size_t other : item.failed_on) count_unshared(other, item, round);
      for (const Item& true_failure : std::exchange(round.in_doubt[member], {})) round.report(true_failure.result);
      return round.report(measured);
    }
    item.result = measured;
    item.failed_on.push_back(member);
    if (failed_everywhere(item, round) || (was_healthy && item.failed_on.size() > 1)) {
      for (const std::size_t other : item.failed_on) members_[other].unshared = 0;
      round.report(measured);
    } else if (item.failed_on.size() > 1) {
      round.left.push_front(std::move(item));
    } else {
      round.in_doubt[member].push_back(std::move(item));
      if (round.in_doubt[member].size() >= most_in_doubt) ask_others(member, round);
    }
  }

  void count_unshared(std::size_t member, const Item& item, Round& round) {
    if (++members_[member].unshared < most_unshared || !is_in(member, round)) return;
    round.failed.push_back(member);
    ask_others(member, round);
    round.monitor.note(fmt::format("one of {} equal devices is set aside: {} configurations failed on it alone: {}",
                                   members_.size(), most_unshared, item.result.measurement.reason));
  }

  // False: there is nothing left for the member, or it has failed and others go on.
  bool measure_next(std::size_t member, Round& round) {
    std::optional<Item> item;
    {
      const std::lock_guard lock(round.mutex);
      item = next_item(member, round);
      if (!item) return false;
    }
    std::optional<Measured> result;
    try {
      members_[member].measurer->measure(
          round.candidates.subspan(item->at, 1),
          [&](const Measured& measured) {
            result = measured;
            result->position = std::int64_t(item->at);
          },
          round.monitor);
    } catch (const base::Stopped&) {
      throw;
    } catch (const base::Failure& failure) {
      const std::lock_guard lock(round.mutex);
      if (is_in(member, round)) round.failed.push_back(member);
      if (round.failed.size() == members_.size()) throw;
      if (result)
        round.report(*result);
      else
        round.left.push_back(std::move(*item));
      round.monitor.note(fmt::format("one of {} equal devices is left out: {}", members_.size(), failure.what()));
      return false;
    }
    const std::lock_guard lock(round.mutex);
    if (!result) return false;  // stopped
    settle(member, std::move(*item), *result, round);
    return true;
  }

  static void pass_on(Round& round, const std::function<void(const Measured&)>& on_trial, base::Monitor& monitor) {
    for (bool over = false; !over;) {
      std::deque<Measured> results;
      {
        std::unique_lock lock(round.mutex);
        round.changed.wait_for(lock, look_at_monitor, [&] { return !round.results.empty() || round.working == 0; });
        results.swap(round.results);
        over = round.working == 0;
      }
      for (const Measured& measured : results) on_trial(measured);
      round.monitor.pass_on(monitor);
    }
  }

  std::vector<Member> members_;  // that have not failed
};

}  // namespace

std::unique_ptr<Measurer> side_by_side(std::vector<std::unique_ptr<Measurer>> members) {
  if (members.size() == 1) return std::move(members.front());
  return std::make_unique<SideBySide>(std::move(members));
}

}  // namespace graft::tasks
