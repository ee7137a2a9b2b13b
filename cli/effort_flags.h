// How long a search runs: --effort, --trials and --stop-after.
#pragma once

#include <cstdint>
#include <string>

#include "cli/command.h"
#include "study/flows/network.h"
#include "study/flows/tune.h"

namespace graft::cli {

struct EffortFlags {
  std::string effort = "normal";
  std::int64_t trials = 0, stop_after = 0;
  void declare(Options& options);
  // UserError for an unknown effort.
  void apply(study::TuneRequest& request) const;
  void apply(study::NetworkRequest& request) const;  // `trials` in total, the effort's for each kernel
};

}  // namespace graft::cli
