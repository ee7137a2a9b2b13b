// Modelled machines: the machine code that LLVM makes for a real cpu, timed by LLVM's own model of that cpu's core,
// plus the cost of a hierarchy of caches. Nothing runs on the modelled cpu, so a time from here is never called a
// measurement of a device: its clock is "modelled", its platform's name says so.
//
// What is not modelled: stores that delay loads from others (addresses equal modulo 4096), instruction fetch, rows
// and banks of memory, cores that write to each other's lines.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "codegen/program/program.h"
#include "tasks/host_runner.h"
#include "tasks/measurer.h"
#include "tasks/modelled/caches.h"
#include "tasks/modelled/profile.h"
#include "tasks/platform.h"

namespace graft::tasks {

std::shared_ptr<const Device> modelled_device(Profile profile);
std::shared_ptr<const Device> read_modelled(const base::Document& own, const base::Document& whole,
                                            const std::string& file, codegen::Target& target);
// What a platform with such a device has; null for all others.
const Profile* profile_of(const Platform& platform);

struct ModelledTime {
  double seconds = 0;
  double core_cycles = 0;                  // all accesses hitting the first cache
  double memory_cycles = 0;                // total cost of missed lines and pages
  double fork_join_seconds = 0;            // of parallel nests
  double instructions = 0;                 // executed by the busiest core
  std::map<std::string, int> unsupported;  // opcodes without a model: if there are any, seconds have no meaning
  Traffic traffic;                         // of the busiest core
};

// UserError unless the platform is modelled, and as check_profile does.
Geometry geometry_of(const Platform& platform);

// Cycles that the misses cost, with `cores` cores busy at a time. The sum over the lines that one level misses and
// the next one has: latency / memory_parallelism each, and 2.5 times less if a prefetcher has predicted the line,
// but at least that for 32 bytes per cycle, the width between caches (AMD 56665 and 57647, "L2 cache": fills
// of 256 bits; Arm CHI and Intel's mesh: 32 bytes; Intel's path from the second cache is 64 wide, of which 248966 gives
// 48 as sustained), times the busy cores if the next level is shared, and the time that memory needs for the lines
// of all busy cores; a line written back costs 2 cycles from the first cache, 3 from the others; a miss of the first
// TLB l2_tlb_cycles, one of the last TLB page_walk_cycles more.
double memory_cycles(const Misses& misses, const Geometry& geometry, const Profile& profile, std::int64_t cores = 1);

// One `run` of many, deterministic. With C = core and M = memory cycles, f = the clock:
//   in order      (C + M) / f
//   out of order  sum over phases of (max(C, M) + 0.15 min(C, M)) / f
// A phase is timed as one by the core's model: an innermost loop with the few around it that are expanded
// together, or the code next to such loops in one around them. Phases do not overlap: a core sees only some hundred
// instructions ahead, so memory does not fetch for a copy while the arithmetic after it runs.
// Bands (adjacent parallel loops) are dealt out to target.threads cores in static chunks; C and M are of the busiest
// core, which runs ceil(tasks / threads) iterations of each band and has its part of the shared levels; each band that
// more than one core works on costs fork_join_microseconds.
//
// Results of the cache simulator are taken from and added to `memo`, if there is one.
// UserError for a cpu without a scheduling model and for a description that lacks what is needed (checked as
// make_modelled_measurer does); a Reason for a program that the back end cannot emit.
base::Result<ModelledTime> modelled_time(const codegen::LoopProgram& program, const Platform& platform,
                                         const CacheSettings& caches = {}, TrafficMemo* memo = nullptr);

// Times that a harness would measure for a run that takes `seconds`: each repetition times a log-normal factor, sigma
// `percent` / 100, one in fifty also times 1.2 to 2. Depends on its arguments only; a longer list begins with the
// shorter one.
std::vector<double> noisy(double seconds, double percent, std::uint64_t seed, int repetitions);

// Checks of programs on this host, each distinct one once: the same program on several platforms is
// compiled and run for the first of them only. Thread-safe; one check at a time.
class HostChecks {
 public:
  // Only the settings that concern checks matter. UserError for settings that HostRunner refuses.
  explicit HostChecks(const MeasureSettings& settings);
  ~HostChecks();
  // Records a program that was found right elsewhere, on any host: its results are those of its loops.
  void add(const codegen::Workload& workload, std::uint64_t program_hash);
  // Whether the check is known already. Programs are identified by their workload and hash.
  bool knows(const codegen::Workload& workload, std::uint64_t program_hash) const;
  // Status, reason and check of a run of `binary`, which is used only if the check is not known. base::Stopped
  // when the monitor asks for it.
  datasets::Measurement check(const codegen::Workload& workload, std::uint64_t program_hash,
                              const base::Result<HostBinary>& binary, base::Monitor* monitor = nullptr);
  std::int64_t runs() const;  // how many were not known before

 private:
  class State;
  std::unique_ptr<State> state_;
};

struct ModelledSettings {
  int qemu_every = 100;
  std::shared_ptr<HostChecks> host_checks = {};  // may be shared by several measurers; null: a separate one
  CacheSettings caches;
  std::shared_ptr<TrafficMemo> memo;  // may be shared by several measurers; null: a separate one
};

// Every distinct program is compiled for this host, too, and its results checked there (check "host"), without being
// timed; about one of `qemu_every` programs, chosen by its hash, also runs under the profile's qemu as the code of the
// modelled cpu (check "qemu"), for workloads of n times 30 MFLOP, which take qemu up to a second, one of n times
// as many. If qemu is not installed, cannot run such code, or takes longer than the time limit, the check stays "host"
// and the monitor is told once. A program that fails a check has that check's status, and no seconds. Code with opcodes
// that the cpu's model lacks is `unsupported`.
//
// A measurement has the one modelled time; with the profile's noise_percent above 0 it has settings.repetitions noisy
// ones (noisy(), seeded by program and platform).
//
// UserError unless the platform is modelled with a good profile (check_profile) and a cpu with a scheduling model; and
// for settings that HostRunner refuses.
std::unique_ptr<Measurer> make_modelled_measurer(const Platform& platform, const MeasureSettings& settings,
                                                 ModelledSettings modelled = {});

}  // namespace graft::tasks
