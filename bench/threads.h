// The parallel-for that kernels of several threads are timed with. Nothing else of bench knows how it works.
#pragma once

#include <memory>

#include "bench/library.h"

namespace graft::bench {

// `threads` - 1 threads that wait for work, and the caller. A loop within a loop runs in order.
class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  Parallel parallel();  // valid while the pool lives; one caller at a time

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace graft::bench
