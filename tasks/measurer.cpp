#include "tasks/measurer.h"

#include <utility>

#include "tasks/modelled/modelled.h"
#include "tasks/native.h"
#include "tasks/remote.h"

namespace graft::tasks {

datasets::Measurement without_times(datasets::Status status, std::string reason, std::string clock) {
  datasets::Measurement measurement;
  measurement.status = status;
  measurement.reason = std::move(reason);
  measurement.clock = std::move(clock);
  measurement.check = "none";
  return measurement;
}

std::unique_ptr<Measurer> make_measurer(const Platform& platform, const MeasureSettings& settings) {
  if (std::holds_alternative<Native>(platform.how)) return make_native_measurer(platform, settings);
  if (std::holds_alternative<Remote>(platform.how)) return make_remote_measurer(platform, settings);
  return make_modelled_measurer(platform, settings);
}

}  // namespace graft::tasks
