// The parallel-for with which kernels of several threads are timed. The rest of bench does not depend on its
// implementation.
#pragma once

#include <memory>

#include "bench/library.h"

namespace graft::bench {

// `threads` - 1 threads that wait for work, and the caller. Nested loops run in order.
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
