// The same search against recorded trials: no hardware, deterministic, and as fast as explorer and model are. The space
// is restricted to the measured programs of a workload: everything that an explorer samples, mutates or crosses
// is one of these programs, and its trial is looked up.
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
  std::vector<datasets::Trial> trials;  // each program once, with its last measurement
  std::int64_t left_out = 0;            // rows: repeated programs, and those that are not in the space

  // The ok ones, fastest first.
  std::vector<double> sorted_seconds() const;
};

// The workload's rows; sketches of the space by rule have its domains, another sketch has one domain of all its
// recorded points, so that mutations of it are draws. UserError if no row is a program: those of a table are not.
Recording recorded(const datasets::Dataset& dataset, const codegen::Workload& workload);

struct Replayed {
  std::vector<datasets::Trial> trials;                 // in the order of requests
  std::vector<std::pair<std::int64_t, double>> curve;  // (trials, best seconds), as Tuning's
  bool complete = false;                               // false: a stop was asked for
};

// A search with these settings, its trials answered by the recording; `prior` and `encoding` as in Tuning and Task.
// It ends early when all programs were requested.
Replayed replay(const Recording& recording, const meta::CostModel* prior, const features::Encoding* encoding,
                const TuningSettings& settings, base::Monitor& monitor);

}  // namespace graft::search
