#include "tasks/side_by_side.h"

#include <cassert>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

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
    std::vector<std::jthread> threads;
    round.working = members_.size();
    for (const std::unique_ptr<Measurer>& member : members_)
      threads.emplace_back([&round, &member] { work(*member, round); });
    // Whatever `on_trial` throws, the threads end first.
    try {
      pass_on(round, on_trial, monitor);
    } catch (...) {
      round.monitor.stop();
      throw;
    }
    threads.clear();
    if (round.fault) std::rethrow_exception(round.fault);
  }

 private:
  struct Round {
    std::span<const codegen::Candidate> candidates;
    base::RelayMonitor monitor = {};
    std::mutex mutex = {};  // of all below
    std::condition_variable changed = {};
    std::size_t next = 0, working = 0;
    std::deque<Measured> results = {};
    std::exception_ptr fault = {};
  };

  static void work(Measurer& member, Round& round) {
    try {
      for (;;) {
        std::size_t at = 0;
        {
          const std::lock_guard lock(round.mutex);
          if (round.next == round.candidates.size() || round.monitor.stop_requested()) break;
          at = round.next++;
        }
        member.measure(
            round.candidates.subspan(at, 1),
            [&](const Measured& measured) {
              const std::lock_guard lock(round.mutex);
              round.results.push_back(measured);
              round.results.back().position = std::int64_t(at);
              round.changed.notify_one();
            },
            round.monitor);
      }
    } catch (...) {
      const std::lock_guard lock(round.mutex);
      if (!round.fault) round.fault = std::current_exception();
      round.monitor.stop();
    }
    const std::lock_guard lock(round.mutex);
    --round.working;
    round.changed.notify_one();
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

  std::vector<std::unique_ptr<Measurer>> members_;
};

}  // namespace

std::unique_ptr<Measurer> side_by_side(std::vector<std::unique_ptr<Measurer>> members) {
  if (members.size() == 1) return std::move(members.front());
  return std::make_unique<SideBySide>(std::move(members));
}

}  // namespace graft::tasks
