// The expected results of a workload, and whether this machine has the memory for them and for running it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/memory.h"
#include "base/monitor.h"
#include "codegen/expression/inputs.h"
#include "codegen/expression/reference.h"
#include "codegen/expression/workload.h"
#include "tasks/device.h"
#include "tasks/measurer.h"

namespace graft::tasks {

// The most memory that measuring a workload's programs takes at a time, in bytes: inputs in their types, in the worker
// and for workers to come; outputs; expected values of all outputs or of a sample; temporaries; a repacked copy of the
// inputs; the executables in transfer to a board. Sizes that exceed 64 bits give the largest number.
struct MemoryNeed {
  std::int64_t here = 0;    // of this machine
  std::int64_t worker = 0;  // the part of `here` in the worker's address space
};
MemoryNeed memory_need(const codegen::Computation& computation, Place place);

// UserError, with the memory needed and available, unless a workload can be measured here: before anything is allocated
// for it.
void require_memory(const codegen::Workload& workload, Place place, const MeasureSettings& settings,
                    std::int64_t available = base::available_memory());

// The inputs of this source and the expected outputs, computed on `threads` threads; for a large computation a
// sample (codegen::ReferenceSettings), which is reported to the monitor once. Throws base::Stopped when the monitor
// asks for it.
codegen::Reference expected_results(const codegen::Workload& workload, const codegen::Computation& computation,
                                    const codegen::InputSource& inputs, int threads, base::Monitor& monitor);

// The results of a workload, for inputs of a seed.
struct Expected {
  codegen::Computation computation;
  codegen::Reference reference;
};
// Candidates of one workload are consecutive: its results are computed once.
class LatestExpected {
 public:
  explicit LatestExpected(codegen::InputSource inputs, int threads = 1)
      : inputs_(std::move(inputs)), threads_(threads) {}
  // Valid until the next call. UserError if there is no memory for it; base::Stopped when the monitor asks for it.
  const Expected& of(const codegen::Workload& workload, base::Monitor& monitor);

 private:
  codegen::InputSource inputs_;
  int threads_;
  std::string text_;  // of the workload that expected_ is of
  Expected expected_;
};

// The first element of output `t` (of the reference's computation) that is not within `factor` times its tolerance, or
// is NaN though it is not in the sample that is compared; nullopt if there is none. `bytes`: the output as a program
// stores it, in `layout` with the shape `stored`.
std::optional<std::string> difference(const codegen::Tensor& tensor, const codegen::Reference& reference, int t,
                                      double factor, std::string_view bytes, const codegen::Layout& layout = {},
                                      std::span<const std::int64_t> stored = {});

}  // namespace graft::tasks
