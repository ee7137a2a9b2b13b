// Tuned kernels compared with the usual alternatives, measured in one process, in turn, with every result checked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "bench/settings.h"
#include "bench/timing.h"

namespace graft::bench {

// openblas, onednn..., clang_naive, ... and graft_1_thread (our kernel without threads).
const std::vector<std::string>& baseline_names();
// On one thread all but graft_1_thread, on several those that have threads and graft_1_thread. Compilers that are not
// installed are left out.
std::vector<std::string> default_baselines(int threads);

struct KernelRow {
  std::string run, workload, pipeline;  // the pipeline that our code was made with
  std::string layouts;                  // of our parameters; "": as in the workload
  std::int64_t trial = 0, trials = 0;   // the best trial's number; the number of trials
  std::string program;                  // hash
  double flops = 0, peak_flops = 0;     // of one call
  double memory_gigabytes_per_second = 0;
  Contender ours, peak;
  std::vector<Contender> baselines;

  double gflops(const Timing& timing) const { return flops / timing.best * 1e-9; }
  double peak_gflops() const { return peak_flops / peak.timing.best * 1e-9; }
};

// Measures the best trial of every workload in the runs. `note` is called with the present step. UserError for a run of
// another platform than `native...`, for unknown baselines, and for a recorded schedule that does not lower today.
std::vector<KernelRow> bench_kernels(const KernelSettings& settings, const std::function<void(std::string)>& note);

// Over the rows where both are right, by baseline.
struct Summary {
  std::string baseline;
  int workloads = 0;
  double speedup = 0;         // geometric mean of baseline seconds / our seconds
  double time_reduction = 0;  // 1 - 1 / speedup
};
std::vector<Summary> summaries(const std::vector<KernelRow>& rows);

// Runs of one workload (with different seeds, for example): their shares of the peak.
struct Nearness {
  std::string workload;
  int runs = 0;
  double median = 0, least = 0, most = 0;  // of the peak
};
std::vector<Nearness> nearness(const std::vector<KernelRow>& rows);

// False if one of ours is wrong.
bool all_right(const std::vector<KernelRow>& rows);

// {"context", "rows": [{"name","value","unit","baselines"...}], "summary", "nearness"}, in GFLOP/s of the best
// repetition; null for wrong results.
base::Document to_document(const std::vector<KernelRow>& rows, const KernelSettings& settings);
std::string to_text(const std::vector<KernelRow>& rows, const KernelSettings& settings);

}  // namespace graft::bench
