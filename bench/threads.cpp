#include "bench/threads.h"

#include "base/error.h"
#include "codegen/deployed/graft_pool.h"

namespace graft::bench {

ThreadPool::ThreadPool(int threads) : pool_(graft_pool_start(threads), graft_pool_stop) {
  if (pool_ == nullptr) throw base::Failure("this system starts no more threads");
}

Parallel ThreadPool::parallel() {
  return {graft_pool_for, pool_.get()};
}

}  // namespace graft::bench
