// The parallel-for with which kernels of several threads are timed. The rest of bench does not depend on its
// implementation.
#pragma once

#include <memory>

#include "bench/library.h"

struct graft_pool;  // codegen/deployed/graft_pool.h

namespace graft::bench {

// `threads` - 1 threads that wait for work, and the caller. Nested loops run in order.
class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  Parallel parallel();  // valid while the pool lives

 private:
  std::unique_ptr<graft_pool, void (*)(graft_pool*)> pool_;
};

}  // namespace graft::bench
