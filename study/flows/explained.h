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

struct Explained {
  std::string naive, scheduled;  // loop programs as text: of the empty schedule, and of the answer's
  std::string assembly;          // all of it, as the answer's pipeline makes it
  std::string cpu;               // that it is for
  std::string unknown;           // why scheduled or assembly is empty today; "" where neither is
  double operations = 0;         // arithmetic of the workload's definition
  double bytes = 0;              // inputs, constants and outputs, each moved once
  std::optional<Roof> roof;      // of modelled platforms and workloads in f32; others have to be measured (graft bench)

  double intensity() const { return operations / bytes; }
};

// Takes as long as compiling the program once. What the run's platform or this graft cannot do any more is said in
// `unknown`, not thrown.
Explained explained(const search::RunContent& run, const Answer& answer);

}  // namespace graft::study
