#include "cli/platform_flags.h"

#include <fmt/format.h>

#include "base/error.h"

namespace graft::cli {

void PlatformFlags::declare(Options& options) {
  options.text("platform", id, "id or YAML file (graft platform list); native,threads=2 runs on two cores");
  options.text("nan", nan,
               "keep: a maximum or minimum of NaN and a number is NaN; ignore: it may be either (the platform's id then "
               "ends in ,nan=ignore)");
}

tasks::Platform PlatformFlags::platform() const {
  if (nan != "keep" && nan != "ignore")
    throw base::UserError("--nan", fmt::format("'{}' is neither keep nor ignore", nan));
  return tasks::platform_named(nan == "ignore" ? id + ",nan=ignore" : id);
}

}  // namespace graft::cli
