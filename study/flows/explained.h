// What there is to know of one answer of a run besides its time, for pages about it: the loop program before and after
// scheduling, its machine code, and what bounds its speed.
#pragma once

#include <optional>
#include <string>

#include "search/run_directory.h"
#include "study/knowledge/answer.h"

namespace graft::study {

// The two bounds of a roofline (Williams, Waterman and Patterson, CACM 2009).
struct Roof {
  double gflops = 0;                // of multiply-adds, on all threads of the target
  double gigabytes_per_second = 0;  // of memory
};

// What one run of a workload does by its definition: whatever a schedule adds to that or saves is not counted.
struct Work {
  double operations = 0;  // arithmetic
  double bytes = 0;       // inputs, constants and outputs, each moved once

  double intensity() const { return operations / bytes; }
  double gflops_below(const Roof& roof) const;   // the bound at this intensity
  double seconds_below(const Roof& roof) const;  // no run takes less, unless what it moves stays in caches
};
Work work_of(const codegen::Workload& workload);
// The arithmetic that a program really does if that is less than the definition's, as Winograd's transform does.
std::optional<double> fewer_operations(const codegen::Candidate& candidate, const codegen::Target& target);

// For a modelled platform and a workload in f32; others have to be measured (graft bench).
std::optional<Roof> roof_of(const tasks::Platform& platform, const codegen::Workload& workload);

struct Explained {
  std::string naive, scheduled;  // loop programs as text: of the empty schedule, and of the answer's
  std::string assembly;          // all of it, as the answer's pipeline makes it
  std::string cpu;               // that it is for
  std::string unknown;           // why scheduled or assembly is empty today; "" where neither is
  Work work;
  std::optional<double> fewer_operations;  // of the answer's program
  std::optional<Roof> roof;                // roof_of
};

// Takes as long as compiling the program once. What the run's platform or this graft cannot do any more is said in
// `unknown`, not thrown.
Explained explained(const search::RunContent& run, const Answer& answer);

}  // namespace graft::study
