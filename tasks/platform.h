// A platform: one hardware target with its description (YAML) and its way of being measured. Each platform is one task
// of the meta-learner.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/document.h"
#include "codegen/expression/target.h"

namespace graft::tasks {

struct Native {};  // compiled here, run in a worker process on this machine, on target.threads threads
struct Remote {    // an executable behind a command prefix: {"qemu-riscv64", "-cpu", "..."} or {"ssh", "board"}
  std::vector<std::string> prefix;
};
// How a modelled machine adds memory and clock to the core's timing. Simulation parameters: out of reach for features.
struct Profile {
  double gigahertz = 1;
  bool out_of_order = true;
  double mispredict_cycles = 8;
  double memory_parallelism = 1;  // misses in flight
  std::optional<double> l2_latency_cycles, l3_latency_cycles;
  double memory_nanoseconds = 100;
  std::vector<std::string> qemu;  // command that checks its code: {"qemu-riscv64", "-cpu", "..."}
};
struct Modelled {
  Profile profile;
};

struct Platform {
  std::string name;       // short id: "native:v3", "native,threads=2", "model:sifive-p450"
  std::string long_name;  // "model:sifive-p450@sifive-p450-like"; the short one where there is no other
  std::string description;
  codegen::Target target;
  std::variant<Native, Remote, Modelled> how;
  std::string yaml;  // verbatim, or generated for `native`
};

// "native", "remote" or "modelled": the source of its times.
std::string source_of(const Platform& platform);

// Strict; throws UserError with file:line:column and remedy; a cpu that LLVM does not know is refused here.
Platform parse_platform(const std::string& yaml, const std::string& file);

// Ids that are known: `native`, `native:v2|v3|v4` (those that this host can run), and the name of every *.yaml in
// ../share/graft/platforms as seen from the program.
std::vector<std::string> platform_ids();
// The same platforms with all that their YAML says. LLVM is not asked whether it knows their cpus (platform_named does
// that): asking takes longer than all the rest of a list.
std::vector<Platform> known_platforms();
// By id (short or long; `native` ones may end in ",threads=n", n at most this host's cores), or by the path of a YAML
// file. UserError with did-you-mean, or with why this host cannot run it.
Platform platform_named(const std::string& id);

}  // namespace graft::tasks
