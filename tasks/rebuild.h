// Times programs again, in alternation; and at the end of a search on this machine, times the fastest of them built by
// every one of LLVM's pipelines. The fastest trial of hundreds is in part the luckiest one; and the pipeline
// to search with was chosen for its compile time: the best few kernels justify the others, and more repetitions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/monitor.h"
#include "codegen/space/candidate.h"
#include "datasets/trial.h"
#include "tasks/measurer.h"
#include "tasks/platform.h"

namespace graft::tasks {

struct Build {
  std::int64_t candidate = 0;  // position among those given
  std::string pipeline;        // name in codegen::pipelines() (machine/compile.h)
  datasets::Measurement measurement;
};

// If there are more candidates than `finalists`, all are built by the search pipeline, and the fastest become
// finalists. Every finalist by every pipeline comes after the builds of those that did not, by position of the
// candidate, then in order of pipelines; pipelines that produce the same machine code are timed once. All of one stage
// are timed in turn, `rounds` times, so that a drifting clock affects all equally: `seconds` are settings.repetitions
// of each round, unless one failed, which is then the measurement; those of both stages for a finalist's search build,
// so none that is eliminated is the fastest of all. Nothing is aborted as slow. base::Stopped when the monitor asks for
// it. The platform must be this host.
std::vector<Build> rebuild(const Platform& platform, std::span<const codegen::Candidate> candidates,
                           std::size_t finalists, int rounds, const MeasureSettings& settings, base::Monitor& monitor);

// Each candidate, built by the search pipeline, timed in every one of `rounds`, all in turn within a round: for
// each settings.repetitions a round, unless one failed, which is then the measurement. Equal programs are timed once
// for all. Works on any platform that measures (for a remote one the programs are sent again in each round).
// base::Stopped when the monitor asks for it.
std::vector<datasets::Measurement> timed_in_turn(const Platform& platform,
                                                 std::span<const codegen::Candidate> candidates, int rounds,
                                                 const MeasureSettings& settings, base::Monitor& monitor);

}  // namespace graft::tasks
