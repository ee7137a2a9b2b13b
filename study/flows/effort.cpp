#include "study/flows/effort.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "study/flows/network.h"
#include "study/inputs/field_error.h"

namespace graft::study {
namespace {

constexpr Effort efforts[] = {{"quick", 64, 32, 12, 0}, {"normal", 256, 0, 64, 1}, {"thorough", 1024, 256, 256, 4}};

}  // namespace

const Effort& effort_named(std::string_view name) {
  const Effort* const found =
      std::find_if(std::begin(efforts), std::end(efforts), [&](const Effort& each) { return each.name == name; });
  if (found == std::end(efforts))
    throw FieldError("effort", fmt::format("'{}' is neither quick, normal nor thorough", name));
  return *found;
}

void set_effort(const Effort& effort, std::int64_t trials, std::int64_t stop_after, TuneRequest& request) {
  request.trials = trials > 0 ? trials : effort.trials;
  request.stop_after = stop_after > 0 ? stop_after : effort.stop_after;
}

NetworkRequest with_effort(NetworkRequest request) {
  const Effort& effort = effort_named(request.effort);
  if (request.trials_by_kernel == 0) request.trials_by_kernel = effort.kernel_trials;
  request.each.trials = std::max(request.trials, efforts[std::size(efforts) - 1].trials);
  request.each.budget_seconds = 0;
  request.each.rebuild = std::min(request.each.rebuild, effort.most_rebuild);
  return request;
}

}  // namespace graft::study
