// An ordered parallel-for: results depend on the index only, never on the number of threads.
#pragma once

#include <cstdint>
#include <functional>

#include "base/monitor.h"

namespace graft::base {

int hardware_threads();

// Calls body(i) for i in 0 .. count-1 on up to `threads` threads (the caller's among them). The first exception thrown,
// by index, is rethrown after all have ended. Threads are kept between calls, with their thread-local variables.
void parallel_for(std::int64_t count, int threads, const std::function<void(std::int64_t)>& body);
// As above, but begins no index once the monitor asks to stop: those that have begun end, and Stopped is thrown. The
// monitor is asked by one thread at a time.
void parallel_for(std::int64_t count, int threads, Monitor& monitor, const std::function<void(std::int64_t)>& body);

}  // namespace graft::base
