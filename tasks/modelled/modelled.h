// Modelled machines: the machine code that LLVM makes for a real cpu, timed by LLVM's own model of that cpu's core,
// plus what a hierarchy of caches would add. Nothing runs on the modelled cpu, so a time from here is never called a
// measurement of a device: its clock is "modelled", its platform's name says so.
//
// What is not modelled: noise, conflict misses, address translation, stores that hold up later loads, instruction
// fetch, contention between cores and the cost of starting them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/error.h"
#include "codegen/program/program.h"
#include "tasks/measurer.h"
#include "tasks/platform.h"

namespace graft::tasks {

struct ModelledTime {
  double seconds = 0;
  double core_cycles = 0;                  // all accesses hitting the first cache
  double memory_cycles = 0;                // what missed lines cost in all
  double instructions = 0;                 // executed by the busiest core
  std::map<std::string, int> unsupported;  // opcodes without a model: when there are any, seconds mean nothing
};

// One `run` of many, deterministic. With C = core and M = memory cycles, f = the clock:
//   in order      (C + M) / f
//   out of order  (max(C, M) + 0.15 min(C, M)) / f
// M sums over the lines that one level of the hierarchy misses and the next one has: latency / memory_parallelism, and
// 2.5 times less for sequential lines, which a prefetcher asks for ahead of time (where memory_parallelism is above 1:
// a core with one miss in flight has nothing to prefetch with), but at least 1 cycle; a line written back costs 2
// cycles from the first cache, 3 from the others. Lines: see traffic.h. Parallel loops are timed as the
// busiest core's ceil(tasks / target.threads) iterations of a band.
//
// UserError for a cpu without a scheduling model and for a description that lacks what is needed (checked as
// make_modelled_measurer does); a Reason for a program that the back end cannot emit.
base::Result<ModelledTime> modelled_time(const codegen::LoopProgram& program, const Platform& platform);

// Every distinct program is compiled for this host, too, and its results checked there (check "host"); one of
// `qemu_every` programs, chosen by its hash, also runs under the profile's qemu as the code of the modelled cpu (check
// "qemu"). Where qemu is not installed, cannot run such code, or takes longer than the time limit, the check stays
// "host" and the monitor is told once. A program that fails a check has that check's status, and no seconds. Code with
// opcodes that the cpu's model lacks is `unsupported`.
//
// UserError unless the platform is modelled with a first cache, latencies for the caches that it has, positive numbers,
// and a cpu with a scheduling model; and for settings that HostRunner refuses.
std::unique_ptr<Measurer> make_modelled_measurer(const Platform& platform, const MeasureSettings& settings,
                                                 int qemu_every = 100);

}  // namespace graft::tasks
