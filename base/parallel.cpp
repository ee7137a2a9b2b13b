#include "base/parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace graft::base {

int hardware_threads() {
  cpu_set_t allowed;  // `taskset` and containers count
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return std::max(1, CPU_COUNT(&allowed));
  return std::max(1, int(std::thread::hardware_concurrency()));
}

void parallel_for(std::int64_t count, int threads, const std::function<void(std::int64_t)>& body) {
  std::atomic<std::int64_t> next = 0;
  std::mutex guard;
  std::exception_ptr thrown;
  std::int64_t thrown_at = count;
  // Indices are handed out in order. So when one throws, every smaller one has begun and will end: not handing out any
  // more leaves the smallest index that throws the same for any number of threads.
  const auto work = [&] {
    for (std::int64_t i; (i = next.fetch_add(1)) < count;) {
      try {
        body(i);
      } catch (...) {
        const std::lock_guard lock(guard);
        if (i < thrown_at) {
          thrown_at = i;
          thrown = std::current_exception();
        }
        next = count;
      }
    }
  };
  std::vector<std::thread> others;
  const std::int64_t wanted = std::min<std::int64_t>(count, threads) - 1;
  for (std::int64_t i = 0; i < wanted; ++i) {
    try {
      others.emplace_back(work);
    } catch (const std::system_error&) {
      break;  // no more threads to be had: those there are do the work
    }
  }
  work();
  for (std::thread& other : others) other.join();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace graft::base
