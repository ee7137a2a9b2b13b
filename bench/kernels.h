// Tuned kernels beside what people would otherwise call, measured in one process, in turn, with every result checked.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/document.h"

namespace graft::bench {

struct Timing {
  double best = 0, median = 0, worst = 0;  // seconds of one call, over all repetitions; NaN when it could not be had
  bool right = false;                      // outputs within the tolerance of the reference
};

struct KernelRow {
  std::string workload;
  double flops = 0;
  Timing ours;
  std::map<std::string, Timing> baselines;  // openblas, clang_naive, clang_interchanged
};

struct KernelSettings {
  int repetitions = 20;           // of each, taken in turn
  double minimum_seconds = 0.01;  // of one repetition (calls are repeated within)
  double slow_seconds = 0.5;      // a baseline slower than this is repeated three times only
};

// The best trial of every workload in the run. Baselines: OpenBLAS sgemm on one thread (matmul only), clang-19 -O3
// -march=native on the plain nest in axis order and with the last reduction loop interchanged with the last spatial
// one. UserError for a run of another platform than `native...`.
std::vector<KernelRow> bench_kernels(const std::filesystem::path& run, const KernelSettings& settings);

// {"name","value","unit","baselines"} rows of `graft bench --json`, in GFLOP/s of the best repetition.
base::Document to_document(const std::vector<KernelRow>& rows);

// What the numbers depend on: OpenBLAS core name and threads, clang version, clock.
base::Document bench_context();

}  // namespace graft::bench
