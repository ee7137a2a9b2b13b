// What memory moves at most, measured, for rooflines.
#pragma once

#include "bench/library.h"
#include "bench/timing.h"

namespace graft::bench {

// In GB/s, as STREAM's triad counts it (a = b + s * c: 24 bytes an element of f64, whatever the machine reads before it
// writes): the best of settings.repetitions on that many threads, each with arrays that no cache holds.
double stream_gigabytes_per_second(int threads, const Parallel& parallel, const TimingSettings& settings);

}  // namespace graft::bench
