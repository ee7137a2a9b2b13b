// The platform of a search: --platform and --nan.
#pragma once

#include <string>

#include "cli/command.h"
#include "tasks/platform.h"

namespace graft::cli {

struct PlatformFlags {
  std::string id = "native", nan = "keep";
  void declare(Options& options);
  tasks::Platform platform() const;  // UserError as platform_named, and for another word than keep and ignore
};

}  // namespace graft::cli
