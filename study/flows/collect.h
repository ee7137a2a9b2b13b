// Measures sampled schedules of workloads, or existing programs, on a platform into a dataset.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/document.h"
#include "base/monitor.h"
#include "base/team.h"
#include "codegen/expression/workload.h"
#include "datasets/quality.h"
#include "datasets/trial.h"
#include "study/inputs/pool.h"
#include "study/inputs/request.h"
#include "study/inputs/setting.h"
#include "study/inputs/space.h"
#include "tasks/measurer.h"
#include "tasks/modelled/modelled.h"
#include "tasks/platform.h"

namespace graft::study {

struct CollectRequest {
  static constexpr std::int64_t usual_samples = 300;
  std::vector<codegen::Workload> workloads;
  tasks::Platform platform;
  std::filesystem::path out;  // the dataset; its journal is kept in <out>.run
#include "study/inputs/settings/collect.def"
  std::string command_line;  // for provenance
};

struct CollectResult {
  struct Row {
    codegen::Workload workload;
    std::vector<datasets::Trial> trials;
    std::vector<double> seconds;               // of the ok ones
    std::optional<datasets::Quality> quality;  // if the dataset was written
  };
  std::string platform, source;
  std::vector<Row> rows;    // those that were reached
  std::int64_t trials = 0;  // of the run in total
  bool complete = false;    // false: stopped; the same request continues it
};

// FieldError for settings that are beyond their ranges, or do not go together.
void check(const CollectRequest& request);

// Runs or continues it, by all ranks of the team, which need the same request; rank 0 keeps the run and writes the
// dataset. `pool`: the programs of request.programs. `shared`: for measurers of several platforms. A dataset without
// its journal is continued, too. Notes a workload without an ok program; Failure if no earlier workload had one either,
// and it is the last or hopeless. UserError for a file or a run of another request.
CollectResult collect(const CollectRequest& request, const Pool& pool, tasks::Shared& shared, base::Team& team,
                      base::Monitor& monitor);

// UserError if ranks of the team would disturb each other's times; a note if they might.
void check_ranks(const tasks::Platform& platform, base::Team& team, base::Monitor& monitor);

// The programs of datasets that were found right on a host: modelled platforms need not run them here again.
std::shared_ptr<tasks::HostChecks> host_checks_of(const std::vector<datasets::Dataset>& checked,
                                                  const tasks::MeasureSettings& settings);

// {"platform":...,"workloads":[{"workload":...,"trials":...,"ok":...,"best_seconds":...},...],"complete":...}
base::Document to_document(const CollectRequest& request, const CollectResult& result);

}  // namespace graft::study
