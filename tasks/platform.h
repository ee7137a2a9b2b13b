// A platform: one hardware target with its description (YAML) and its way of being measured. Each platform is one task
// of the meta-learner.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/expression/target.h"
#include "tasks/device.h"

namespace graft::tasks {

struct Platform {
  std::string name;       // short id: "native:v3", "native,threads=2", "model:sifive-p450"
  std::string long_name;  // "model:sifive-p450@sifive-p450-like"; the short one if there is no other
  std::string description;
  codegen::Target target;
  std::shared_ptr<const Device> device = this_host();
  std::string yaml;  // verbatim, or generated for `native`
};

// Strict; throws UserError with file:line:column and remedy; a cpu that LLVM does not know is refused here.
Platform parse_platform(const std::string& yaml, const std::string& file);

// Ids that are known: `native`, `native:v2|v3|v4` (those that this host can run), and the name of every *.yaml in
// ../share/graft/platforms as seen from the program.
std::vector<std::string> platform_ids();
// The same platforms with their full descriptions. LLVM is not asked whether it knows their cpus (platform_named does
// that): asking takes longer than the rest of the listing.
std::vector<Platform> known_platforms();
// By id (short or long; `native` ones may end in ",threads=n", n at most this host's cores; modelled ones in
// ",threads=n" and ",noise=percent"), or by the path of a YAML file; each with ",nan=ignore" at its end for a target
// that ignores NaN. UserError with did-you-mean, or with why this host cannot run it.
Platform platform_named(const std::string& id);

}  // namespace graft::tasks
