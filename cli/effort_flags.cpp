#include "cli/effort_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/error.h"

namespace graft::cli {
namespace {

// The default length of a search.
struct Effort {
  const char* name;
  std::int64_t trials, stop_after;
};
constexpr Effort efforts[] = {{"quick", 64, 32}, {"normal", 256, 0}, {"thorough", 1024, 256}};

}  // namespace

void EffortFlags::declare(Options& options) {
  options.integer("trials", trials, 1, "candidates to measure in total; default: by --effort");
  options.text("effort", effort,
               "quick: 64 trials, ends after 32 without a gain; normal: 256 trials; thorough: 1024, ends after "
               "256 without a gain");
  options.integer("stop-after", stop_after, 0,
                  "ends after this number of trials in a row without a gain of 1 %; 0: as --effort says");
}

void EffortFlags::apply(study::TuneRequest& request) const {
  const Effort* const found =
      std::find_if(std::begin(efforts), std::end(efforts), [&](const Effort& each) { return each.name == effort; });
  if (found == std::end(efforts))
    throw base::UserError("--effort", fmt::format("'{}' is neither quick, normal nor thorough", effort));
  request.trials = trials > 0 ? trials : found->trials;
  request.stop_after = stop_after > 0 ? stop_after : found->stop_after;
}

}  // namespace graft::cli
