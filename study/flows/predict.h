// Predicted speed of schedules, without running any.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/monitor.h"
#include "codegen/space/candidate.h"
#include "tasks/platform.h"

namespace graft::study {

struct PredictRequest {
  std::string model;  // a file or an untrained model's name; "": graft's own (study/knowledge/prior.h)
  tasks::Platform platform;
  std::uint64_t seed = 1;
  int threads = 1;  // no result depends on it
};

// The model's score for each candidate, higher is faster; comparable within one workload. -infinity for a candidate
// that does not lower.
std::vector<float> predict(const PredictRequest& request, std::span<const codegen::Candidate> candidates,
                           base::Monitor& monitor);

}  // namespace graft::study
