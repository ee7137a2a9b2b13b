#include "cli/effort_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/error.h"

namespace graft::cli {
namespace {

// The default length of a search, and of those of a network's kernels: trials of each on average, and how many of the
// best are built again in the end, at most.
struct Effort {
  const char* name;
  std::int64_t trials, stop_after;
  std::int64_t kernel_trials, most_rebuild;
};
constexpr Effort efforts[] = {{"quick", 64, 32, 12, 0}, {"normal", 256, 0, 64, 1}, {"thorough", 1024, 256, 256, 4}};

// Candidates a round of a kernel, at most: it shares its budget with others. The same for every effort, so that one may
// continue another.
constexpr std::int64_t most_batch = 8;

const Effort& effort_named(const std::string& name) {
  const Effort* const found =
      std::find_if(std::begin(efforts), std::end(efforts), [&](const Effort& each) { return each.name == name; });
  if (found == std::end(efforts))
    throw base::UserError("--effort", fmt::format("'{}' is neither quick, normal nor thorough", name));
  return *found;
}

}  // namespace

void EffortFlags::declare(Options& options) {
  options.integer("trials", trials, 1, "candidates to measure in total; default: by --effort");
  options.text("effort", effort,
               "quick: 64 trials, ends after 32 without a gain; normal: 256 trials; thorough: 1024, ends after "
               "256 without a gain; of a network 12, 64 and 256 for each kernel on average");
  options.integer("stop-after", stop_after, 0,
                  "ends after this number of trials in a row without a gain of 1 %; 0: as --effort says");
}

void EffortFlags::apply(study::TuneRequest& request) const {
  const Effort& found = effort_named(effort);
  request.trials = trials > 0 ? trials : found.trials;
  request.stop_after = stop_after > 0 ? stop_after : found.stop_after;
}

void EffortFlags::apply(study::NetworkRequest& request) const {
  const Effort& found = effort_named(effort);
  request.trials = trials;
  request.trials_by_kernel = found.kernel_trials;
  request.each.trials = std::max(trials, efforts[std::size(efforts) - 1].trials);
  request.each.stop_after = stop_after;
  request.each.batch = std::min(request.each.batch, most_batch);
  request.each.rebuild = std::min(request.each.rebuild, found.most_rebuild);
}

}  // namespace graft::cli
