// How long a search runs: --effort, --trials and --stop-after.
#pragma once

#include <cstdint>
#include <string>

#include "cli/command.h"
#include "study/flows/network.h"

namespace graft::cli {

struct EffortFlags {
  std::string effort = "normal";
  std::int64_t trials = 0, stop_after = 0;
  void declare(Options& options);
  void apply(study::TuneRequest& request) const;  // FieldError for an unknown effort
  void apply(study::NetworkRequest& request) const;
};

}  // namespace graft::cli
