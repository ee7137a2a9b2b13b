// The same search against recorded trials: no hardware, deterministic, and as fast as explorer and model are. The space
// is restricted to the measured points of a workload, schedules or rows of a table: everything that an explorer
// samples, mutates or crosses is one of them, and its trial is looked up.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/monitor.h"
#include "codegen/space/space.h"
#include "datasets/dataset.h"
#include "datasets/trial.h"
#include "search/tuning.h"

namespace graft::search {

struct Recording {
  std::string platform;
  codegen::Space space;                 // of the recorded points only
  std::vector<datasets::Trial> trials;  // each program, or row of a table, once, with its last measurement
  std::int64_t left_out = 0;            // rows: repeated ones, and those that are not in the space

  // The ok ones, fastest first.
  std::vector<double> sorted_seconds() const;
};

// The workload's rows; sketches of the space by rule have its domains, and a table's columns each have one of the
// values that were recorded. Another sketch has one domain of all its recorded points, so that mutations of it are
// draws. UserError if nothing can be made of any row. `programs` is of the dataset's target.
Recording recorded(const datasets::Dataset& dataset, const codegen::Workload& workload, Programs& programs);

struct Replayed {
  std::vector<datasets::Trial> trials;                 // in the order of requests
  std::vector<std::pair<std::int64_t, double>> curve;  // (trials, best seconds), as Tuning's
  bool complete = false;                               // false: a stop was asked for
};

// A search with these settings, its trials answered by the recording; `prior` and `programs` as in Tuning and Task.
// It ends early when all points were requested.
Replayed replay(const Recording& recording, Programs& programs, const meta::CostModel* prior,
                const TuningSettings& settings, base::Monitor& monitor);

}  // namespace graft::search
