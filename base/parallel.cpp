#include "base/parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

namespace graft::base {
namespace {

// One call of parallel_for.
class Loop {
 public:
  Loop(std::int64_t count, const std::function<void(std::int64_t)>& body) : count_(count), body_(body) {}

  // Until no index is left. Indices are handed out in order. So when one throws, every smaller one has begun and will
  // end: not handing out any more leaves the smallest index that throws the same for any number of threads.
  void work() {
    for (std::int64_t i; (i = next_.fetch_add(1)) < count_;) {
      try {
        body_(i);
      } catch (...) {
        const std::lock_guard lock(guard_);
        if (i < thrown_at_) {
          thrown_at_ = i;
          thrown_ = std::current_exception();
        }
        next_ = count_;
      }
    }
  }
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

  int helpers = 0;  // at work on it; the guard of Helpers is held

 private:
  std::int64_t count_;
  const std::function<void(std::int64_t)>& body_;
  std::atomic<std::int64_t> next_ = 0;
  std::mutex guard_;
  std::exception_ptr thrown_;
  std::int64_t thrown_at_ = count_;
};

// The threads that help callers. They stay: new ones touch new memory, which took a quarter of MAML's step.
class Helpers {
 public:
  static Helpers& all() {
    static Helpers& helpers = *new Helpers;  // they wait until the process ends
    return helpers;
  }

  // `wanted` more threads work on the loop, if they are available.
  void ask(Loop& loop, std::int64_t wanted) {
    const std::lock_guard lock(guard_);
    for (std::int64_t i = 0; i < wanted; ++i) {
      if (idle_ <= std::int64_t(asked_.size())) {
        try {
          std::thread([this] { live(); }).detach();
        } catch (const std::system_error&) {
          break;  // no more threads to be had: those there are do the work
        }
        ++idle_;
      }
      asked_.push_back(&loop);
      work_.notify_one();
    }
  }

  // Nobody begins to work on the loop any more, and who did has ended.
  void dismiss(Loop& loop) {
    std::unique_lock lock(guard_);
    std::erase(asked_, &loop);
    left_.wait(lock, [&] { return loop.helpers == 0; });
  }

 private:
  void live() {
    std::unique_lock lock(guard_);
    for (;;) {
      work_.wait(lock, [&] { return !asked_.empty(); });
      Loop& loop = *asked_.front();
      asked_.pop_front();
      --idle_;
      ++loop.helpers;
      lock.unlock();
      loop.work();
      lock.lock();
      ++idle_;
      if (--loop.helpers == 0) left_.notify_all();
    }
  }

  std::mutex guard_;
  std::condition_variable work_, left_;
  std::deque<Loop*> asked_;  // once for each helper that is wanted and has not come yet
  std::int64_t idle_ = 0;    // threads that wait, or begin to
};

}  // namespace

int hardware_threads() {
  cpu_set_t allowed;  // `taskset` and containers count
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return std::max(1, CPU_COUNT(&allowed));
  return std::max(1, int(std::thread::hardware_concurrency()));
}

void parallel_for(std::int64_t count, int threads, const std::function<void(std::int64_t)>& body) {
  Loop loop(count, body);
  const std::int64_t helpers = std::min<std::int64_t>(count, threads) - 1;
  if (helpers > 0) Helpers::all().ask(loop, helpers);
  loop.work();
  if (helpers > 0) Helpers::all().dismiss(loop);
  loop.rethrow();
}

void parallel_for(std::int64_t count, int threads, Monitor& monitor, const std::function<void(std::int64_t)>& body) {
  SharedMonitor shared(monitor);
  parallel_for(count, threads, [&](std::int64_t i) {
    check_stop(shared);
    body(i);
  });
}

}  // namespace graft::base
