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

}  // namespace graft::bench
