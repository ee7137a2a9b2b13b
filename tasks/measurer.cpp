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

std::unique_ptr<Measurer> make_measurer(const Platform& platform, const MeasureSettings& settings, Shared* shared) {
  if (std::holds_alternative<Native>(platform.how)) return make_native_measurer(platform, settings);
  if (std::holds_alternative<Remote>(platform.how)) return make_remote_measurer(platform, settings);
  ModelledSettings modelled;
  if (shared != nullptr) {
    if (shared->host_checks == nullptr) shared->host_checks = std::make_shared<HostChecks>(settings);
    if (shared->memo == nullptr) shared->memo = std::make_shared<TrafficMemo>();
    modelled.host_checks = shared->host_checks;
    modelled.memo = shared->memo;
  }
  return make_modelled_measurer(platform, settings, std::move(modelled));
}

}  // namespace graft::tasks
