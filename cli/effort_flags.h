// How long a search runs: --effort, --trials and --stop-after.
#pragma once

#include <cstdint>
#include <string>

#include "cli/command.h"
#include "study/flows/effort.h"

namespace graft::cli {

struct EffortFlags {
  std::string effort = "normal";
  std::int64_t trials = 0, stop_after = 0;
  void declare(Options& options);
  // To a study::TuneRequest or study::NetworkRequest. UserError for an unknown effort.
  template <class Request>
  void apply(Request& request) const {
    study::set_effort(study::effort_named(effort, "--effort"), trials, stop_after, request);
  }
};

}  // namespace graft::cli
