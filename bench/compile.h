// The speed of compiling candidates, on one core: random ones as in a search, and a tuned kernel.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/document.h"
#include "bench/settings.h"

namespace graft::bench {

// For one pipeline, in CPU seconds of the thread.
struct PhaseStatistics {
  std::string name;  // lower, emit, optimise, generate, inspect, link; and "all"
  double mean = 0, median = 0, best = 0;
};
struct CompileRow {
  std::string what, pipeline;  // "random candidates of WORKLOAD", "best kernel of RUN: WORKLOAD"
  bool tuned = false;
  std::int64_t compiled = 0, refused = 0;
  std::vector<PhaseStatistics> phases;
  std::vector<double> seconds;  // total of each candidate, in the order of the candidates; NaN for a refused one

  const PhaseStatistics& all() const { return phases.back(); }
};

// UserError for an unknown workload or platform, and for a run without a best kernel.
std::vector<CompileRow> bench_compile(const CompileSettings& settings, const std::function<void(std::string)>& note);

// Speed relative to `other` on the candidates that both compiled; NaN without any.
double times_as_fast(const CompileRow& row, const CompileRow& other);

base::Document to_document(const std::vector<CompileRow>& rows, const CompileSettings& settings);
std::string to_text(const std::vector<CompileRow>& rows, const CompileSettings& settings);

}  // namespace graft::bench
