#include "bench/threads.h"

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace graft::bench {
namespace {

thread_local bool within_a_loop = false;

}  // namespace

class ThreadPool::State {
 public:
  explicit State(int threads) {
    for (int i = 1; i < threads; ++i) threads_.emplace_back([this] { work(); });
  }
  ~State() {
    stop_ = true;
    begin();
  }

  static void run(void* context, void (*body)(void*, std::int64_t), void* closure, std::int64_t n) {
    if (within_a_loop) return in_order().run(nullptr, body, closure, n);
    static_cast<State*>(context)->share({body, closure, n});
  }

 private:
  struct Loop {
    void (*body)(void* closure, std::int64_t index) = nullptr;
    void* closure = nullptr;
    std::int64_t n = 0;
  };

  void share(const Loop& loop) {
    loop_ = loop;
    next_ = 0;
    busy_ = int(threads_.size());
    begin();
    take_indices();
    for (int left = busy_; left != 0; left = busy_) busy_.wait(left);
  }

  void begin() {
    ++epoch_;
    epoch_.notify_all();
  }

  void take_indices() {
    within_a_loop = true;
    for (std::int64_t i = next_++; i < loop_.n; i = next_++) loop_.body(loop_.closure, i);
    within_a_loop = false;
  }

  // std::atomic::wait spins for a moment before it sleeps: short enough not to disturb a baseline that runs in between.
  void work() {
    for (std::uint64_t seen = 0;; ++seen) {
      epoch_.wait(seen);
      if (stop_) return;
      take_indices();
      if (--busy_ == 0) busy_.notify_one();
    }
  }

  Loop loop_;
  std::atomic<std::int64_t> next_ = 0;
  std::atomic<int> busy_ = 0;
  std::atomic<std::uint64_t> epoch_ = 0;
  std::atomic<bool> stop_ = false;
  std::vector<std::jthread> threads_;  // last: joined before the rest goes
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>(threads)) {}
ThreadPool::~ThreadPool() = default;

Parallel ThreadPool::parallel() {
  return {&State::run, state_.get()};
}

}  // namespace graft::bench
