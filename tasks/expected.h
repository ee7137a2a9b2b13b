// What the results of a workload are held against, and whether this machine has room for that and for running it.
#pragma once

#include <cstdint>

#include "base/memory.h"
#include "base/monitor.h"
#include "codegen/expression/reference.h"
#include "codegen/expression/workload.h"
#include "tasks/measurer.h"

namespace graft::tasks {

// Where programs run: in the worker process of this host, on a board or under qemu, or (modelled ones) both.
enum class Place { here, elsewhere, both };
Place place_of(const Platform& platform);

// The most memory that measuring a workload's programs takes at a time, in bytes: inputs and outputs, as the worker has
// them and in double; temporaries; a repacked copy of the inputs; the executables that are under way to a board. More
// than 64 bits hold is the largest number.
struct MemoryNeed {
  std::int64_t here = 0;    // of this machine
  std::int64_t worker = 0;  // of that in the address space of the worker
};
MemoryNeed memory_need(const codegen::Computation& computation, Place place);

// UserError, with what it takes and what there is, unless a workload can be measured here: before anything is allocated
// for it.
void require_memory(const codegen::Workload& workload, Place place, const MeasureSettings& settings,
                    std::int64_t available = base::available_memory());

// The inputs of settings.input_seed and what is to come out, on `threads` threads; of a large computation a sample
// (codegen::ReferenceSettings), which the monitor is told once. Throws base::Stopped when the monitor asks for it.
codegen::Reference expected_results(const codegen::Workload& workload, const codegen::Computation& computation,
                                    std::uint64_t seed, int threads, base::Monitor& monitor);

}  // namespace graft::tasks
