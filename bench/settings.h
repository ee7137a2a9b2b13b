// What the benchmarks are asked for. `graft bench` hands these over to graft-bench, which links the libraries that
// graft is compared with, as a document (base/named_fields.h): each setting, its name and its default are here alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace graft::bench {

struct TimingSettings {
  std::int64_t repetitions = 20;
  double minimum_seconds = 0.01;  // of one repetition (calls are repeated within)
  double slow_seconds = 0.5;      // contenders that take longer are repeated only three times
  bool wall = false;              // the wall clock, for contenders on several threads; else thread CPU time

  template <class Visit, class Self>
  static void named_fields(Visit& visit, Self& self) {
    visit("repetitions", self.repetitions), visit("minimum_seconds", self.minimum_seconds);
    visit("slow_seconds", self.slow_seconds), visit("wall", self.wall);
  }
};

struct KernelSettings {
  std::vector<std::string> runs;       // folders
  std::vector<std::string> baselines;  // of baseline_names; empty: default_baselines
  std::int64_t threads = 1;            // of ours and of the libraries; from 2 on the wall clock counts
  std::int64_t trials = 0;             // > 0: the best of this many first trials of a run
  bool rebuild = false;                // ours is compiled with every known pipeline, the fastest counts
  TimingSettings timing;
  std::string openblas_chose = {};  // the core that OpenBLAS chose itself, if a better one was set; not asked for

  template <class Visit, class Self>
  static void named_fields(Visit& visit, Self& self) {
    visit("runs", self.runs), visit("baselines", self.baselines), visit("threads", self.threads);
    visit("trials", self.trials), visit("rebuild", self.rebuild);
    TimingSettings::named_fields(visit, self.timing);
  }
};

struct CompileSettings {
  std::string workload = "matmul(m=512,n=512,k=512)";
  std::string platform = "native";
  std::int64_t candidates = 200;
  // The number of them for the last known pipeline (O3), the slow one that the others are compared with.
  std::int64_t slow_candidates = 40;
  std::vector<std::string> runs;  // whose best kernels are compiled, too
  std::int64_t repetitions = 20;  // of a tuned kernel
  std::uint64_t seed = 1;

  template <class Visit, class Self>
  static void named_fields(Visit& visit, Self& self) {
    visit("workload", self.workload), visit("platform", self.platform), visit("candidates", self.candidates);
    visit("slow_candidates", self.slow_candidates), visit("runs", self.runs);
    visit("repetitions", self.repetitions), visit("seed", self.seed);
  }
};

struct MeasurerSettings {
  std::string workload = "matmul(m=512,n=512,k=512)";
  std::string platform = "native";
  std::int64_t trials = 300;
  std::int64_t batch = 32;        // the size of batches, as in `graft tune`
  std::vector<std::string> runs;  // whose best kernels are repeated; without any, the best of the trials is
  std::int64_t repeats = 20;      // of a kernel's whole measurement
  std::int64_t repetitions = 3;   // of each candidate
  double minimum_seconds = 1e-3;  // of one repetition
  std::uint64_t seed = 1;

  template <class Visit, class Self>
  static void named_fields(Visit& visit, Self& self) {
    visit("workload", self.workload), visit("platform", self.platform), visit("trials", self.trials);
    visit("batch", self.batch), visit("runs", self.runs), visit("repeats", self.repeats);
    visit("repetitions", self.repetitions), visit("minimum_seconds", self.minimum_seconds), visit("seed", self.seed);
  }
};

struct FeatureSettings {
  std::vector<std::string> workloads;  // none: a matmul, a convolution, a depthwise one and a softmax
  std::string platform = "native";
  std::int64_t candidates = 300;       // random ones of each workload
  std::vector<std::string> encodings;  // none: all but those that add the target's facts
  std::int64_t repetitions = 10;       // of all
  std::uint64_t seed = 1;

  template <class Visit, class Self>
  static void named_fields(Visit& visit, Self& self) {
    visit("workloads", self.workloads), visit("platform", self.platform), visit("candidates", self.candidates);
    visit("encodings", self.encodings), visit("repetitions", self.repetitions), visit("seed", self.seed);
  }
};

struct NetworkSettings {
  std::vector<std::string> workloads;  // whose random candidates are scored as trees; none: a matmul and a convolution
  std::string platform = "native";     // that they are lowered for
  std::int64_t batch = 1024;           // programs at once
  std::int64_t threads = 1;            // from 2 on MAML's step a second time, its tasks on this many threads
  TimingSettings timing;
  std::uint64_t seed = 1;

  template <class Visit, class Self>
  static void named_fields(Visit& visit, Self& self) {
    visit("workloads", self.workloads), visit("platform", self.platform), visit("batch", self.batch);
    visit("threads", self.threads), visit("seed", self.seed);
    TimingSettings::named_fields(visit, self.timing);
  }
};

struct StoreSettings {
  std::string file;  // a dataset, whose rows are repeated
  std::int64_t rows = 1'000'000;
  std::int64_t support = 64, query = 256;  // rows of an episode
  std::int64_t episodes = 200;             // drawn over all groups that are large enough
  std::int64_t repetitions = 3;            // of writing and reading
  std::uint64_t seed = 1;

  template <class Visit, class Self>
  static void named_fields(Visit& visit, Self& self) {
    visit("file", self.file), visit("rows", self.rows), visit("support", self.support), visit("query", self.query);
    visit("episodes", self.episodes), visit("repetitions", self.repetitions), visit("seed", self.seed);
  }
};

}  // namespace graft::bench
