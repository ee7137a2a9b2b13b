#include "tasks/measurer.h"

#include <fmt/format.h>

#include <utility>

#include "codegen/machine/compile.h"

namespace graft::tasks {

datasets::Measurement without_times(datasets::Status status, std::string reason, std::string clock) {
  datasets::Measurement measurement;
  measurement.status = status;
  measurement.reason = std::move(reason);
  measurement.clock = std::move(clock);
  measurement.check = "none";
  return measurement;
}

namespace {

// Says of which platform LLVM gave up on the code.
class Named : public Measurer {
 public:
  Named(std::string name, std::unique_ptr<Measurer> measurer)
      : name_(std::move(name)), measurer_(std::move(measurer)) {}

  void measure(std::span<const codegen::Candidate> candidates, const std::function<void(const Measured&)>& on_trial,
               base::Monitor& monitor) override {
    try {
      measurer_->measure(candidates, on_trial, monitor);
    } catch (const codegen::GaveUp& failure) {
      throw codegen::GaveUp(fmt::format("{}: {}", name_, failure.what()), failure.said());
    }
  }

 private:
  std::string name_;
  std::unique_ptr<Measurer> measurer_;
};

}  // namespace

std::unique_ptr<Measurer> make_measurer(const Platform& platform, const MeasureSettings& settings, Shared* shared) {
  return std::make_unique<Named>(platform.name, platform.device->measurer(platform, settings, shared));
}

}  // namespace graft::tasks
