// The same search against trials that were recorded: no hardware, deterministic, and as fast as explorer and model are.
// The space is what was measured of a workload, and nothing else: whatever an explorer samples, mutates or crosses is
// one of these programs, and a trial is looked up.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/monitor.h"
#include "codegen/schedule/space.h"
#include "datasets/dataset.h"
#include "datasets/trial.h"
#include "search/tuning.h"

namespace graft::search {

struct Recording {
  std::string platform;
  codegen::Space space;                 // of the recorded programs only
  std::vector<datasets::Trial> trials;  // each program once, as it was measured last
  std::int64_t left_out = 0;            // rows: programs again, and what is no program of the space

  // Of the ok ones, fastest first.
  std::vector<double> sorted_seconds() const;
};

// The workload's rows; sketches of the space by rule have its domains, another sketch has one domain of all that was
// recorded of it, so that mutations of it are draws. UserError where no row is a program: those of a table are not.
Recording recorded(const datasets::Dataset& dataset, const codegen::Workload& workload);

struct Replayed {
  std::vector<datasets::Trial> trials;                 // in the order in which they were asked for
  std::vector<std::pair<std::int64_t, double>> curve;  // (trials, best seconds), as Tuning's
  bool complete = false;                               // false: a stop was asked for
};

// A search as the settings say, its trials answered by the recording; `prior` and `encoding` as of Tuning and Task. It
// ends early when all programs were asked for.
Replayed replay(const Recording& recording, const meta::CostModel* prior, const features::Encoding* encoding,
                const TuningSettings& settings, base::Monitor& monitor);

}  // namespace graft::search
