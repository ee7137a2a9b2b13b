// The description of a modelled machine: what its YAML says under 'modelled'.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "codegen/expression/target.h"

namespace graft::tasks {

// Properties of a modelled machine that LLVM does not know: its memory hierarchy, and costs. Simulation parameters: out
// of reach for features. Sizes of the caches and of their lines are the target's. Numbers of a level that the target
// lacks are 0; all others are within the ranges that check_profile states.
struct Profile {
  double gigahertz = 1;
  bool out_of_order = true;
  double mispredict_cycles = 8;
  std::int64_t dispatch_width = 0;  // instructions a cycle into the core; 0: the issue width of LLVM's model
  std::string model_cpu;            // of LLVM, whose model times the target's code; "": the target's own
  std::string wide_model_cpu;     // the same for code with vectors of 512 bits, in the profile of a host; "": model_cpu
  double memory_parallelism = 1;  // misses in flight
  std::int64_t l1_ways = 8, l2_ways = 0, l3_ways = 0;
  bool l2_shared = false, l3_shared = false;            // by all cores
  double l2_latency_cycles = 0, l3_latency_cycles = 0;  // from load to use
  double memory_nanoseconds = 100;
  double memory_gigabytes_per_second = 10;  // of all cores together
  std::int64_t prefetch_streams = 16;       // 0: no prefetcher
  std::int64_t page_bytes = 4096;
  std::int64_t huge_page_bytes = 0;  // of buffers of at least that size; 0: none
  std::int64_t tlb_entries = 64;     // of the first TLB for data, fully associative
  std::int64_t l2_tlb_entries = 0, l2_tlb_ways = 0;
  double l2_tlb_cycles = 0;           // added by a miss of the first TLB that the second one holds
  double page_walk_cycles = 20;       // added by a miss of all TLBs
  double fork_join_microseconds = 0;  // of a parallel nest on more than one core
  double noise_percent = 0;           // of a repetition (modelled.h); 0: times are exact
  std::vector<std::string> qemu;      // command that checks its code: {"qemu-riscv64", "-cpu", "..."}
};

// UserError with the place of what is missing, wrong, or refused by check_profile. `whole` is the platform's YAML,
// `own` its part.
Profile profile_from(const base::Document& own, const base::Document& whole, const codegen::Target& target);

// Throws UserError, naming the place that `place` returns for a key, unless every number of the profile is within its
// range and the sizes fit each other: caches of at least one line per way, lines and pages powers of two, TLBs of whole
// sets.
void check_profile(const Profile& profile, const codegen::Target& target,
                   const std::function<std::string(std::string_view key)>& place);

}  // namespace graft::tasks
