// Private to this folder: what a model expects of programs that nobody measured, for a model that learns from a search.
//
// A search measures what it takes for fast, so its programs are not a sample of the space: a source that learns from
// them alone knows little about slow programs, yet has the same say about them as the other sources. And a source that
// learnt from datasets would forget workloads that the search did not have. So it also learns what is known already, of
// programs drawn uniformly ("pseudo-rehearsal": Robins 1995, Connection Science 7).
#pragma once

#include <cstdint>

#include "base/monitor.h"
#include "meta/model_file.h"
#include "meta/task_set.h"

namespace graft::study {

struct RehearsalSettings {
  std::int64_t programs = 0;  // of each workload; 0: none
  std::uint64_t seed = 1;
  int threads = 1;
};

// The tasks, measurements of the platforms of `given`, and for each of these platforms drawn programs of the measured
// workloads, and of up to 32 others that the model remembers, with the times that the model expects: of a platform that
// it was trained on what it learnt there, of another one what it expects once adapted to the measurements.
// None for an encoding of tables, or if the model knows nothing.
meta::TaskSet with_rehearsal(meta::TaskSet tasks, const meta::ModelFile& model,
                             const std::vector<datasets::Dataset>& given, const RehearsalSettings& settings,
                             base::Monitor& monitor);

}  // namespace graft::study
