#include "meta/gradient/synthetic_platforms.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

namespace graft::meta {

SyntheticPlatforms::SyntheticPlatforms(std::span<const PreparedGroup> groups, std::vector<std::string> platforms,
                                       std::vector<base::Matrix> predictions)
    : groups_(groups.begin(), groups.end()), platforms_(std::move(platforms)), speeds_(std::move(predictions)) {
  assert(speeds_.size() == groups_.size());
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    base::Matrix& speeds = speeds_[g];
    for (std::int64_t s = 0; s < speeds.columns; ++s) {
      const bool measured = platforms_[std::size_t(s)] == groups_[g].platform;
      double mean = 0;
      for (std::int64_t p = 0; p < speeds.rows; ++p) {
        if (measured) speeds.at(p, s) = float(-groups_[g].log_seconds[std::size_t(p)]);
        mean += double(speeds.at(p, s)) / double(speeds.rows);
      }
      for (std::int64_t p = 0; p < speeds.rows; ++p) speeds.at(p, s) -= float(mean);
    }
  }
}

SyntheticPlatforms SyntheticPlatforms::only(std::span<const PreparedGroup> groups) const {
  const auto has = [&](const std::string& platform) {
    return std::any_of(groups.begin(), groups.end(), [&](const auto& group) { return group.platform == platform; });
  };
  SyntheticPlatforms out;
  std::vector<std::int64_t> columns;
  for (std::size_t s = 0; s < platforms_.size(); ++s) {
    if (!has(platforms_[s])) continue;
    out.platforms_.push_back(platforms_[s]);
    columns.push_back(std::int64_t(s));
  }
  if (columns.size() < 2) return {};
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (!has(groups_[g].platform)) continue;
    out.groups_.push_back(groups_[g]);
    base::Matrix& speeds = out.speeds_.emplace_back(speeds_[g].rows, std::int64_t(columns.size()));
    for (std::int64_t p = 0; p < speeds.rows; ++p) {
      for (std::size_t c = 0; c < columns.size(); ++c) speeds.at(p, std::int64_t(c)) = speeds_[g].at(p, columns[c]);
    }
  }
  return out;
}

std::vector<PreparedGroup> SyntheticPlatforms::draw(base::Stream& stream) const {
  assert(!empty());
  std::vector<double> weights;
  double sum = 0;
  for (std::size_t s = 0; s < platforms_.size(); ++s) {
    const double normal = stream.normal();  // its square has the gamma distribution of shape 1/2
    weights.push_back(normal * normal);
    sum += weights.back();
  }
  for (double& weight : weights) weight = weight / sum + 0.35 / std::sqrt(double(weights.size())) * stream.normal();
  const std::string& platform = platforms_[std::size_t(stream.below(std::int64_t(platforms_.size())))];
  std::vector<PreparedGroup> out;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (groups_[g].platform != platform) continue;
    out.push_back(groups_[g]);
    for (std::int64_t p = 0; p < speeds_[g].rows; ++p) {
      double speed = 0;
      for (std::size_t s = 0; s < weights.size(); ++s) speed += weights[s] * double(speeds_[g].at(p, std::int64_t(s)));
      out.back().log_seconds[std::size_t(p)] = -speed;
    }
  }
  return out;
}

}  // namespace graft::meta
