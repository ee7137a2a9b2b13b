#include "meta/gradient/synthetic_platforms.h"

#include <cassert>
#include <cmath>
#include <utility>

namespace graft::meta {

SyntheticPlatforms::SyntheticPlatforms(std::span<const PreparedGroup> groups, std::vector<base::Matrix> predictions,
                                       std::span<const std::size_t> own)
    : groups_(groups.begin(), groups.end()), speeds_(std::move(predictions)) {
  assert(speeds_.size() == groups_.size() && own.size() == groups_.size());
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    base::Matrix& speeds = speeds_[g];
    for (std::int64_t s = 0; s < speeds.columns; ++s) {
      double mean = 0;
      for (std::int64_t p = 0; p < speeds.rows; ++p) {
        if (std::size_t(s) == own[g]) speeds.at(p, s) = float(-groups_[g].log_seconds[std::size_t(p)]);
        mean += double(speeds.at(p, s)) / double(speeds.rows);
      }
      for (std::int64_t p = 0; p < speeds.rows; ++p) speeds.at(p, s) -= float(mean);
    }
  }
}

std::vector<PreparedGroup> SyntheticPlatforms::draw(base::Stream& stream) const {
  assert(!empty());
  const std::int64_t sources = speeds_.front().columns;
  std::vector<double> weights;
  double sum = 0;
  for (std::int64_t s = 0; s < sources; ++s) {
    const double normal = stream.normal();  // its square has the gamma distribution of shape 1/2
    weights.push_back(normal * normal);
    sum += weights.back();
  }
  for (double& weight : weights) weight = weight / sum + 0.35 / std::sqrt(double(sources)) * stream.normal();
  const std::string platform = groups_[std::size_t(stream.below(std::int64_t(groups_.size())))].platform;
  std::vector<PreparedGroup> out;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (groups_[g].platform != platform) continue;
    out.push_back(groups_[g]);
    for (std::int64_t p = 0; p < speeds_[g].rows; ++p) {
      double speed = 0;
      for (std::int64_t s = 0; s < sources; ++s) speed += weights[std::size_t(s)] * double(speeds_[g].at(p, s));
      out.back().log_seconds[std::size_t(p)] = -speed;
    }
  }
  return out;
}

}  // namespace graft::meta
