// A platform: one hardware target with its description (YAML) and its way of being measured. Each platform is one task
// of the meta-learner.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/document.h"
#include "codegen/expression/target.h"

namespace graft::tasks {

struct Native {};  // compiled here, run in a worker process on this machine, on target.threads threads
// An executable, run with a command prefix here or on boards that the OpenSSH client reaches (board.h).
struct Remote {
  std::vector<std::string>
      prefix;  // {"qemu-riscv64", "-cpu", "..."}: gets the executable's path (no word: run as it is); or:
  std::vector<std::string> ssh;     // destinations as ssh takes them: equal boards, all measured on at the same time
  std::string ssh_config;           // a file for ssh -F, in a YAML as seen from its folder; "": the user's own
  std::vector<std::string> runner;  // what runs the executable on a board; none: the board itself
  std::string folder = "/tmp";      // on a board, where executables are stored while they run
  std::int64_t core = -1;           // of a board, to which they are pinned if it has taskset; -1: any
  std::int64_t attempts = 6;        // consecutive attempts without a result at a board that does not answer
  double retry_seconds = 1;         // before the second one; then twice as long each time
  bool is_emulated() const;         // by qemu: no time is one of a device
};
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
struct Modelled {
  Profile profile;
};

struct Platform {
  std::string name;       // short id: "native:v3", "native,threads=2", "model:sifive-p450"
  std::string long_name;  // "model:sifive-p450@sifive-p450-like"; the short one if there is no other
  std::string description;
  codegen::Target target;
  std::variant<Native, Remote, Modelled> how;
  std::string yaml;  // verbatim, or generated for `native`
};

// Throws UserError, naming the place that `place` returns for a key, unless every number of the profile is within its
// range and the sizes fit each other: caches of at least one line per way, lines and pages powers of two, TLBs of whole
// sets.
void check_profile(const Profile& profile, const codegen::Target& target,
                   const std::function<std::string(std::string_view key)>& place);

// "native", "remote", "emulated" or "modelled": the source of its times.
std::string source_of(const Platform& platform);

// Strict; throws UserError with file:line:column and remedy; a cpu that LLVM does not know is refused here.
Platform parse_platform(const std::string& yaml, const std::string& file);

// Ids that are known: `native`, `native:v2|v3|v4` (those that this host can run), and the name of every *.yaml in
// ../share/graft/platforms as seen from the program.
std::vector<std::string> platform_ids();
// The same platforms with their full descriptions. LLVM is not asked whether it knows their cpus (platform_named does
// that): asking takes longer than the rest of the listing.
std::vector<Platform> known_platforms();
// By id (short or long; `native` ones may end in ",threads=n", n at most this host's cores; modelled ones in
// ",threads=n" and ",noise=percent"), or by the path of a YAML file; each with ",nan=ignore" at its end for a target that
// ignores NaN. UserError with did-you-mean, or with why this host cannot run it.
Platform platform_named(const std::string& id);

}  // namespace graft::tasks
