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
#include <thread>
#include <utility>

#include "base/error.h"

namespace graft::tasks {
namespace {

constexpr std::chrono::milliseconds look_at_monitor{50};

class SideBySide final : public Measurer {
 public:
  explicit SideBySide(std::vector<std::unique_ptr<Measurer>> members) : members_(std::move(members)) {
    assert(!members_.empty());
  }

  void measure(std::span<const codegen::Candidate> candidates, const std::function<void(const Measured&)>& on_trial,
               base::Monitor& monitor) override {
    Round round{candidates};
    for (std::size_t at = 0; at < candidates.size(); ++at) round.left.push_back(at);
    // More than once if a member fails when the others have ended.
    while (!round.left.empty() && !round.monitor.stop_requested()) measure_left(round, on_trial, monitor);
  }

 private:
  struct Round {
    std::span<const codegen::Candidate> candidates;
    base::RelayMonitor monitor = {};
    std::mutex mutex = {};  // of all below
    std::condition_variable changed = {};
    std::deque<std::size_t> left = {};  // to measure
    std::size_t working = 0;
    std::deque<Measured> results = {};
    std::vector<std::size_t> failed = {};  // members
    std::exception_ptr fault = {};
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
    for (const std::size_t member : round.failed) members_.erase(members_.begin() + std::ptrdiff_t(member));
    round.failed.clear();
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
    --round.working;
    round.changed.notify_one();
  }

  // False: there is nothing left, or the member has failed and others go on.
  bool measure_next(std::size_t member, Round& round) {
    std::size_t at = 0;
    {
      const std::lock_guard lock(round.mutex);
      if (round.left.empty() || round.monitor.stop_requested()) return false;
      at = round.left.front();
      round.left.pop_front();
    }
    bool is_measured = false;
    try {
      members_[member]->measure(
          round.candidates.subspan(at, 1),
          [&](const Measured& measured) {
            const std::lock_guard lock(round.mutex);
            is_measured = true;
            round.results.push_back(measured);
            round.results.back().position = std::int64_t(at);
            round.changed.notify_one();
          },
          round.monitor);
      return true;
    } catch (const base::Stopped&) {
      throw;
    } catch (const base::Failure& failure) {
      const std::lock_guard lock(round.mutex);
      round.failed.push_back(member);
      if (round.failed.size() == members_.size()) throw;
      if (!is_measured) round.left.push_back(at);
      round.monitor.note(fmt::format("one of {} equal devices is left out: {}", members_.size(), failure.what()));
      return false;
    }
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

  std::vector<std::unique_ptr<Measurer>> members_;  // that have not failed
};

}  // namespace

std::unique_ptr<Measurer> side_by_side(std::vector<std::unique_ptr<Measurer>> members) {
  if (members.size() == 1) return std::move(members.front());
  return std::make_unique<SideBySide>(std::move(members));
}

}  // namespace graft::tasks
