#include "base/clock.h"

#include <ctime>

namespace graft::base {
namespace {

double seconds_on(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

}  // namespace

double thread_seconds() {
  return seconds_on(CLOCK_THREAD_CPUTIME_ID);
}

double wall_seconds() {
  return seconds_on(CLOCK_MONOTONIC);
}

}  // namespace graft::base
