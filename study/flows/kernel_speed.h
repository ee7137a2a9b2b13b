// How fast kernels run on a platform, from those that were measured there: what a kernel has to do at least, the time
// that takes at the highest speeds known of the platform (a roofline: Williams, Waterman and Patterson, CACM 2009), and
// the part of that speed that other kernels reach.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "codegen/expression/workload.h"
#include "meta/gaussian_process.h"
#include "tasks/platform.h"

namespace graft::study {

// A kernel tuned and measured on a platform.
struct MeasuredKernel {
  codegen::Workload workload;
  double seconds = 0;
  int source = 0;          // the folder that it is from, by position
  bool does_less = false;  // does_less_arithmetic of its program
};

// All kernels that are known there, each (Workload::key) once, with its least time: from folders of networks, of runs
// and of several runs, and from a library its answers for exactly this platform. UserError for a folder that is none of
// these, or was measured on another platform.
std::vector<MeasuredKernel> measured_kernels(const std::optional<std::filesystem::path>& library,
                                             const std::vector<std::filesystem::path>& folders,
                                             const tasks::Platform& platform);

// What a workload's definition asks for.
struct KernelWork {
  double operations = 0;
  std::vector<double> operand_bytes;  // that are read, each once, by number of the operand
  double bytes = 0;                   // these and the result's
};
KernelWork kernel_work_of(const codegen::Workload& workload);

struct Roofline {
  double operations_per_second = 0;
  double bytes_per_second = 0;      // in caches
  double near_bytes = 0;            // that these hold: of a core alone, or of a modelled platform all
  double far_bytes_per_second = 0;  // of more than that
  double least_seconds(const KernelWork& work) const;
};

// The highest speeds that any of the kernels reached, and what the profile of a modelled platform says. nullopt if
// nothing is known.
std::optional<Roofline> roofline_of(const tasks::Platform& platform, const std::vector<MeasuredKernel>& kernels);

// Where the parts of the roofline's speed that kernels reach are similar, their places are near each other; those whose
// main stages differ only in extents and strides are of one kind.
meta::Place speed_place(const codegen::Workload& workload);

// A model of log(least_seconds / seconds), of the kernels that are most similar to the workloads.
meta::GaussianProcess speed_model(const Roofline& roofline, const std::vector<MeasuredKernel>& kernels,
                                  const std::vector<codegen::Workload>& workloads);

}  // namespace graft::study
