#include "study/flows/effort.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/error.h"

namespace graft::study {
namespace {

constexpr Effort efforts[] = {{"quick", 64, 32, 12, 0}, {"normal", 256, 0, 64, 1}, {"thorough", 1024, 256, 256, 4}};

}  // namespace

const Effort& effort_named(std::string_view name, const std::string& place) {
  const Effort* const found =
      std::find_if(std::begin(efforts), std::end(efforts), [&](const Effort& each) { return each.name == name; });
  if (found == std::end(efforts))
    throw base::UserError(place, fmt::format("'{}' is neither quick, normal nor thorough", name));
  return *found;
}

void set_effort(const Effort& effort, std::int64_t trials, std::int64_t stop_after, TuneRequest& request) {
  request.trials = trials > 0 ? trials : effort.trials;
  request.stop_after = stop_after > 0 ? stop_after : effort.stop_after;
}

void set_effort(const Effort& effort, std::int64_t trials, std::int64_t stop_after, NetworkRequest& request) {
  request.trials = trials;
  request.trials_by_kernel = effort.kernel_trials;
  request.each.trials = std::max(trials, efforts[std::size(efforts) - 1].trials);
  request.each.stop_after = stop_after;
  request.each.rebuild = std::min(request.each.rebuild, effort.most_rebuild);
}

}  // namespace graft::study
