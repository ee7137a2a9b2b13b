// The end of a search on this machine: the best programs, built by every one of LLVM's pipelines and timed beside each
// other. The pipeline to search with was chosen for its compile time; the best few kernels are worth the others, and
// more repetitions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/monitor.h"
#include "codegen/schedule/candidate.h"
#include "datasets/trial.h"
#include "tasks/measurer.h"
#include "tasks/platform.h"

namespace graft::tasks {

struct Build {
  std::int64_t candidate = 0;  // position among those given
  std::string pipeline;        // name in codegen::pipelines()
  datasets::Measurement measurement;
};

// Every candidate by every pipeline, in this order; pipelines that come to the same machine code are timed once. All
// are timed in turn, `rounds` times, so that a clock that drifts meets all alike: `seconds` are settings.repetitions of
// each round, unless one failed, which is then the measurement. Nothing is aborted as slow. Empty when a stop was asked
// for. The platform must be native.
std::vector<Build> rebuild(const Platform& platform, std::span<const codegen::Candidate> candidates, int rounds,
                           const MeasureSettings& settings, base::Monitor& monitor);

}  // namespace graft::tasks
