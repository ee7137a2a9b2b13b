#include "cli/effort_flags.h"

#include "study/flows/effort.h"

namespace graft::cli {

void EffortFlags::declare(Options& options) {
  options.integer("trials", trials, 1, "candidates to measure in total; default: by --effort");
  options.text("effort", effort,
               "quick: 64 trials, ends after 32 without a gain; normal: 256 trials; thorough: 1024, ends after "
               "256 without a gain; of a network 12, 64 and 256 for each kernel on average");
  options.integer("stop-after", stop_after, 0,
                  "ends after this number of trials in a row without a gain of 1 %; 0: as --effort says");
}

void EffortFlags::apply(study::TuneRequest& request) const {
  study::set_effort(study::effort_named(effort), trials, stop_after, request);
}

void EffortFlags::apply(study::NetworkRequest& request) const {
  request.effort = effort;
  request.trials = trials;
  request.each.stop_after = stop_after;
}

}  // namespace graft::cli
