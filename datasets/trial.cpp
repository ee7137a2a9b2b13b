#include "datasets/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace graft::datasets {
namespace {

constexpr std::array status_names = {
#define X(name) std::string_view(#name),
    GRAFT_STATUSES(X)
#undef X
};

bool positive(double value) {
  return std::isfinite(value) && value > 0;
}

}  // namespace

std::string_view name_of(Status status) {
  return status_names[std::size_t(status)];
}

std::optional<Status> status_of(std::string_view name) {
  const auto found = std::find(status_names.begin(), status_names.end(), name);
  if (found == status_names.end()) return std::nullopt;
  return Status(found - status_names.begin());
}

double seconds_of(const Measurement& measurement) {
  if (measurement.status != Status::ok || measurement.seconds.empty()) return std::numeric_limits<double>::quiet_NaN();
  if (measurement.estimator.empty()) return *std::min_element(measurement.seconds.begin(), measurement.seconds.end());
  std::vector<double> seconds = measurement.seconds;
  const auto middle = seconds.begin() + std::ptrdiff_t(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

Measurement with_minimum(Measurement measurement) {
  if (!measurement.estimator.empty() && measurement.status == Status::ok)
    std::erase_if(measurement.seconds, [least = seconds_of(measurement)](double each) { return each < least; });
  measurement.estimator.clear();
  return measurement;
}

std::string contradiction(const Measurement& measurement) {
  const bool has_time = !measurement.seconds.empty();
  if (measurement.status == Status::ok && !has_time) return "status ok without a time";
  if (measurement.status == Status::ok && !measurement.reason.empty()) return "status ok with a reason";
  if (measurement.status == Status::slower_than_limit && !has_time) return "status slower_than_limit without its bound";
  for (const double seconds : measurement.seconds) {
    if (!positive(seconds)) return fmt::format("a time of {} seconds", seconds);
  }
  if (!measurement.estimator.empty() && measurement.estimator != median)
    return fmt::format("unknown estimator '{}'", measurement.estimator);
  for (const auto& [name, value] : measurement.also) {
    if (!std::isfinite(value)) return fmt::format("'{}' is {}", name, value);
  }
  if (!positive(measurement.reference_ratio)) return fmt::format("reference_ratio {}", measurement.reference_ratio);
  return "";
}

base::Document to_document(const Measurement& measurement) {
  base::Document document = base::Document::map();
  document.set("status", std::string(name_of(measurement.status)));
  if (!measurement.reason.empty()) document.set("reason", measurement.reason);
  if (!measurement.seconds.empty()) {
    base::Document::List seconds(measurement.seconds.begin(), measurement.seconds.end());
    document.set("seconds", std::move(seconds));
  }
  if (!measurement.clock.empty()) document.set("clock", measurement.clock);
  if (measurement.reference_ratio != 1) document.set("reference_ratio", measurement.reference_ratio);
  if (!measurement.check.empty()) document.set("check", measurement.check);
  if (!measurement.estimator.empty()) document.set("estimator", measurement.estimator);
  if (!measurement.also.empty()) {
    base::Document also = base::Document::map();
    for (const auto& [name, value] : measurement.also) also.set(name, value);
    document.set("also", std::move(also));
  }
  return document;
}

Measurement measurement_from(const base::Document& document) {
  document.only_keys({"status", "reason", "seconds", "clock", "reference_ratio", "check", "estimator", "also"});
  Measurement measurement;
  const base::Document& status = document.at("status");
  if (const auto known = status_of(status.as_string())) {
    measurement.status = *known;
  } else {
    const std::vector<std::string> names(status_names.begin(), status_names.end());
    throw base::UserError(status.place(), fmt::format("unknown status '{}'{}", status.as_string(),
                                                      base::did_you_mean(status.as_string(), names)));
  }
  const auto read_text = [&](std::string_view key, std::string& into) {
    if (const base::Document* found = document.find(key)) into = found->as_string();
  };
  read_text("reason", measurement.reason);
  read_text("clock", measurement.clock);
  read_text("check", measurement.check);
  read_text("estimator", measurement.estimator);
  if (const base::Document* also = document.find("also")) {
    for (const auto& [name, value] : also->as_map()) measurement.also.emplace_back(name, value.as_number());
  }
  if (const base::Document* seconds = document.find("seconds")) {
    for (const base::Document& each : seconds->as_list()) measurement.seconds.push_back(each.as_number());
  }
  if (const base::Document* ratio = document.find("reference_ratio")) measurement.reference_ratio = ratio->as_number();
  if (const std::string problem = contradiction(measurement); !problem.empty()) {
    throw base::UserError(document.place(), problem);
  }
  return measurement;
}

}  // namespace graft::datasets
