// The speed of the native measurer - compile, check, time - without a model, and the repeatability of times.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/document.h"
#include "bench/settings.h"

namespace graft::bench {

struct Throughput {
  std::int64_t trials = 0;
  double draw_seconds = 0,
         measure_seconds = 0;                    // wall clock: drawing random candidates, and all work of the measurer
  std::map<std::string, std::int64_t> statuses;  // by name
};
// The variation of a kernel's time, taken as in a search (the least of a few repetitions), between measurements.
struct Repeatability {
  std::string what;             // workload, and the origin of the kernel
  std::vector<double> seconds;  // one per measurement
  double variation = 0;         // standard deviation / mean
};
struct MeasureResult {
  Throughput throughput;
  std::vector<Repeatability> kernels;
};

// UserError for an unknown workload, for a platform that is not `native...`, and if no trial was ok and no run was
// given.
MeasureResult bench_measure(const MeasurerSettings& settings, const std::function<void(std::string)>& note);

base::Document to_document(const MeasureResult& result, const MeasurerSettings& settings);
std::string to_text(const MeasureResult& result, const MeasurerSettings& settings);

}  // namespace graft::bench
