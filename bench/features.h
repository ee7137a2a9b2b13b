// The speed of encoding programs, on one core: random candidates as in a search, each encoded right after it was
// lowered; and the speed of lowering alone. Thread CPU time of each call, minus the cost of reading the clock.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/document.h"
#include "bench/settings.h"

namespace graft::bench {

struct FeatureRow {
  std::string workload, what;  // an encoding's name, or "lower"
  std::int64_t programs = 0;
  double stores = 0, loops = 0;  // of run, means over the programs
  double rows = 0;               // per program, mean; 0 for lowering
  std::int64_t columns = 0;
  bool finite = true;
  double best = 0, median = 0;  // programs a second, over the repetitions
  double spread = 0;            // spread_of (timing.h) the repetitions
};

// UserError for an unknown workload, platform or encoding.
std::vector<FeatureRow> bench_features(const FeatureSettings& settings, const std::function<void(std::string)>& note);

bool all_finite(const std::vector<FeatureRow>& rows);
base::Document to_document(const std::vector<FeatureRow>& rows, const FeatureSettings& settings);
std::string to_text(const std::vector<FeatureRow>& rows, const FeatureSettings& settings);

}  // namespace graft::bench
