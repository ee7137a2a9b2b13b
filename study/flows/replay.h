// Searches among the recorded programs of a dataset instead of measuring: which explorer and which model need how many
// trials.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/document.h"
#include "base/monitor.h"
#include "codegen/expression/workload.h"
#include "search/replay.h"
#include "search/selection.h"
#include "study/inputs/setting.h"

namespace graft::study {

struct ReplayRequest {
  std::filesystem::path data;                // a dataset; a model that was trained on it knows the answers
  std::vector<codegen::Workload> workloads;  // none: all of the dataset
#include "study/inputs/settings/replay.def"
};

struct ReplayedWorkload {
  std::string workload;
  std::int64_t programs = 0, left_out = 0;             // search/replay.h
  std::int64_t trials = 0;                             // that were asked for
  double best_recorded = 0;                            // seconds
  std::vector<std::pair<std::int64_t, double>> curve;  // (trials, best seconds); ends at `trials`
  // The best recorded time over the best after that many trials: 1 when it is found, 0 before any was ok.
  double share_after(std::int64_t count) const;
};

struct ReplayResult {
  std::string platform, source, explorer;
  std::string model;  // the model that guided, for people
  std::uint64_t seed = 1;
  std::vector<ReplayedWorkload> workloads;
  double share_after(std::int64_t count) const;  // mean_share_after
};

// Geometric mean over workloads; one without an ok trial by then counts as search::least_speed.
double mean_share_after(std::span<const ReplayedWorkload> workloads, std::int64_t count);

// One search among what was recorded of a workload (search::replay). UserError if no program of it was ok; Stopped when
// the monitor asks for it.
ReplayedWorkload replayed(const search::Recording& recording, search::Programs& programs, const meta::CostModel* prior,
                          const search::TuningSettings& settings, base::Monitor& monitor);

// Deterministic: bit-identical for a seed. UserError for a dataset without a program of a workload, or of emulated
// times; Stopped when the monitor asks for it.
ReplayResult replay(const ReplayRequest& request, base::Monitor& monitor);

// {"platform":...,"rows":[{"workload":...,"programs":...,"curve":[[trial,seconds],...],...}]}
base::Document to_document(const ReplayResult& result);

}  // namespace graft::study
