// What only searches of kernels have: when a search is over, its best programs are built by every pipeline, the best of
// all is checked, and its speed is seen against the platform's peak.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/monitor.h"
#include "codegen/expression/workload.h"
#include "search/run_directory.h"
#include "study/knowledge/answer.h"
#include "tasks/measurer.h"
#include "tasks/platform.h"

namespace graft::study {

// Building a program by every pipeline and timing it takes as long as this many trials.
constexpr double trials_per_rebuilt = 8;

struct KernelSearch {
  const codegen::Workload& workload;
  const tasks::Platform& platform;
  std::int64_t rebuild = 0;   // programs to build by every pipeline, of a search on this machine; 0: none
  bool is_complete = true;    // false: it was stopped, and goes on later
  bool measured_more = true;  // than when it was built before: builds of a shorter run say nothing of it
};

struct KernelAnswer {
  std::optional<Answer> answer;       // of all trials that the run recorded, checked
  std::vector<search::Build> builds;  // by every pipeline
  std::optional<double> peak_gflops;  // of the platform, if there is an answer
};

// All of it is in the run's folder then, and not done again. Stopped when the monitor asks for it while the answer of a
// complete search may lack its check.
KernelAnswer kernel_answer(const KernelSearch& search, search::RunDirectory& run,
                           const tasks::MeasureSettings& settings, base::Monitor& monitor);

}  // namespace graft::study
