// A parallel-for on threads that wait for it: it serves as a kernel's parallel_for (codegen/machine/compile.h). Nothing
// is allocated after the start, and a call costs about a microsecond while the threads are awake: they look for work
// for a while before they sleep. Includes nothing of ours and needs libc alone, because graft-worker is linked that
// way.
#pragma once

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

namespace graft::tasks {

class Pool {
 public:
  using Body = void (*)(void* closure, std::int64_t index);
  static constexpr int most_threads = 256;

  Pool() = default;
  ~Pool() { stop(); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // `threads` in all: the one that calls run() is one of them. What ran before is stopped. False, and no threads, where
  // the system refuses more.
  bool start(int threads) {
    stop();
    if (threads < 1 || threads > most_threads) return false;
    stopping_.store(false, std::memory_order_relaxed);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    constexpr std::size_t stack_bytes = 256 << 10;
    pthread_attr_setstacksize(&attributes, stack_bytes);
    bool all = true;
    while (all && helpers_ + 1 < threads) {
      Helper& helper = helper_[helpers_];
      helper = {this, helpers_ + 1, round_.load(std::memory_order_relaxed), {}};
      all = pthread_create(&helper.thread, &attributes, work, &helper) == 0;
      if (all) ++helpers_;
    }
    pthread_attr_destroy(&attributes);
    first_round_ = round_.load(std::memory_order_relaxed);
    finished_before_ = finished_.load(std::memory_order_relaxed);
    if (!all) stop();
    return all;
  }

  void stop() {
    if (helpers_ == 0) return;
    stopping_.store(true, std::memory_order_relaxed);
    begin_round();
    for (int i = 0; i < helpers_; ++i) pthread_join(helper_[i].thread, nullptr);
    helpers_ = 0;
  }

  int threads() const { return helpers_ + 1; }

  // Calls body(closure, i) for each i of [0, n) and returns when all have returned; index i < threads() always on the
  // same thread, the caller's for 0. From one thread at a time, and not from a body.
  void run(Body body, void* closure, std::int64_t n) {
    if (helpers_ == 0 || n <= 1) {
      for (std::int64_t i = 0; i < n; ++i) body(closure, i);
      return;
    }
    body_ = body;
    closure_ = closure;
    n_ = n;
    next_.store(threads(), std::memory_order_relaxed);
    caller_sleeps_.store(0, std::memory_order_relaxed);  // an abandoned run() may have counted itself
    begin_round();
    share(0);
    wait([&] { return idle(); }, finished_, caller_sleeps_);
  }
  // In the form that kernels take; `pool` is their context.
  static void parallel_for(void* pool, Body body, void* closure, std::int64_t n) {
    static_cast<Pool*>(pool)->run(body, closure, n);
  }

  // For a signal handler that wants to leave a run(): whether no helper is in a body or on the way to one, and the
  // helpers' threads. An abandoned run() that is idle again is over.
  bool idle() const {
    const std::uint32_t rounds = round_.load(std::memory_order_relaxed) - first_round_;
    return finished_.load(std::memory_order_acquire) - finished_before_ == rounds * std::uint32_t(helpers_);
  }
  template <class Visit>
  void each_helper(const Visit& visit) const {
    for (int i = 0; i < helpers_; ++i) visit(helper_[i].thread);
  }

 private:
  struct Helper {
    Pool* pool = nullptr;
    int number = 0;
    std::uint32_t seen = 0;  // the latest round that it has seen
    pthread_t thread{};
  };

  static void* work(void* argument) {
    Helper& helper = *static_cast<Helper*>(argument);
    Pool& pool = *helper.pool;
    for (;;) {
      pool.wait([&] { return pool.round_.load(std::memory_order_acquire) != helper.seen; }, pool.round_,
                pool.sleepers_);
      ++helper.seen;
      if (pool.stopping_.load(std::memory_order_relaxed)) return nullptr;
      pool.share(helper.number);
      pool.finished_.fetch_add(1, std::memory_order_seq_cst);
      if (pool.caller_sleeps_.load(std::memory_order_seq_cst) != 0) wake(pool.finished_);
    }
  }

  void begin_round() {
    round_.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) != 0) wake(round_);
  }

  void share(std::int64_t first) {
    const std::int64_t n = n_;
    for (std::int64_t i = first; i < n; i = next_.fetch_add(1, std::memory_order_relaxed)) body_(closure_, i);
  }

  // Waits until `ready`, which a change of `word` brings about. A thread that changes it checks `sleepers` afterwards,
  // and a sleeper is counted there before it checks the word for the last time: no change is missed.
  template <class Ready>
  static void wait(const Ready& ready, std::atomic<std::uint32_t>& word, std::atomic<std::uint32_t>& sleepers) {
    constexpr std::int64_t awake_nanoseconds = 100000;  // a wake-up costs some tens of thousands
    const std::int64_t begin = nanoseconds();
    do {
      for (int i = 0; i < 64; ++i) {
        if (ready()) return;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
      }
    } while (nanoseconds() - begin < awake_nanoseconds);
    sleepers.fetch_add(1, std::memory_order_seq_cst);
    for (;;) {
      const std::uint32_t value = word.load(std::memory_order_seq_cst);
      if (ready()) break;
      syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
    }
    sleepers.fetch_sub(1, std::memory_order_relaxed);
  }
  static void wake(std::atomic<std::uint32_t>& word) {
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  }
  static std::int64_t nanoseconds() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return std::int64_t(now.tv_sec) * 1000000000 + now.tv_nsec;
  }

  // Read by all; counted up by helpers; used to distribute bodies: each on its own cache line.
  alignas(64) std::atomic<std::uint32_t> round_{0};
  std::atomic<std::uint32_t> sleepers_{0};
  std::atomic<bool> stopping_{false};
  Body body_ = nullptr;
  void* closure_ = nullptr;
  std::int64_t n_ = 0;
  alignas(64) std::atomic<std::uint32_t> finished_{0};
  std::atomic<std::uint32_t> caller_sleeps_{0};
  alignas(64) std::atomic<std::int64_t> next_{0};
  alignas(64) std::uint32_t first_round_ = 0, finished_before_ = 0;  // when the helpers started
  int helpers_ = 0;
  Helper helper_[most_threads];
};

}  // namespace graft::tasks
