#include "datasets/formats/times.h"

#include <fmt/format.h>

#include <cmath>

namespace graft::datasets::formats {
namespace {

constexpr double beyond_measuring = 1e9;  // seconds: thirty years

}  // namespace

std::string mark_in(double value, double unit_seconds) {
  if (std::isnan(value)) return "NaN in place of a time";
  if (std::isinf(value)) return "infinity in place of a time";
  return value * unit_seconds < beyond_measuring ? "" : fmt::format("{:g} in place of a time", value);
}

Times times_in(std::span<const double> values, double unit_seconds) {
  Times times;
  for (const double value : values) {
    std::string mark = mark_in(value, unit_seconds);
    if (mark.empty()) {
      times.seconds.push_back(value * unit_seconds);
    } else if (times.mark.empty()) {
      times.mark = std::move(mark);
    }
  }
  if (values.empty()) times.mark = "no time";
  if (!times.seconds.empty()) times.mark.clear();
  return times;
}

}  // namespace graft::datasets::formats
