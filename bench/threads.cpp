#include "bench/threads.h"

#include <cstdint>

#include "base/error.h"
#include "tasks/worker/pool.h"

namespace graft::bench {
namespace {

thread_local bool within_a_loop = false;

struct Loop {
  tasks::Pool::Body body = nullptr;
  void* closure = nullptr;
  static void one(void* loop, std::int64_t index) {
    const Loop& self = *static_cast<const Loop*>(loop);
    within_a_loop = true;
    self.body(self.closure, index);
    within_a_loop = false;
  }
};

}  // namespace

class ThreadPool::State {
 public:
  explicit State(int threads) {
    if (!pool_.start(threads)) throw base::Failure("this system starts no more threads");
  }

  static void run(void* context, void (*body)(void*, std::int64_t), void* closure, std::int64_t n) {
    if (within_a_loop) return in_order().run(nullptr, body, closure, n);
    Loop loop{body, closure};
    static_cast<State*>(context)->pool_.run(Loop::one, &loop, n);
  }

 private:
  tasks::Pool pool_;
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>(threads)) {}
ThreadPool::~ThreadPool() = default;

Parallel ThreadPool::parallel() {
  return {&State::run, state_.get()};
}

}  // namespace graft::bench
