// Platforms that do not exist, to train in more episodes than there are sources: programs of a real one, with times
// that are a mixture of what models of all sources say of them. Without them the episodes are those few platforms whose
// labels a network of this size already knows.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/arrays.h"
#include "base/random.h"
#include "meta/gradient/training.h"

namespace graft::meta {

class SyntheticPlatforms {
 public:
  SyntheticPlatforms() = default;  // none
  // predictions: by group, what the named platforms' models say of its programs: programs x platforms, higher is
  // faster, in the units of `groups` (in_equal_units). Of a group's own platform the measured speeds are taken instead.
  SyntheticPlatforms(std::span<const PreparedGroup> groups, std::vector<std::string> platforms,
                     std::vector<base::Matrix> predictions);
  // Those that mix and measure on platforms of `groups` alone; none of fewer than two.
  SyntheticPlatforms only(std::span<const PreparedGroup> groups) const;
  bool empty() const { return speeds_.empty(); }
  // The groups of one platform, drawn, with times of a mixture: weights of a Dirichlet distribution of concentration
  // 1/2, each moved by a normal number of deviation 0.35 / sqrt(platforms), so that also what no source says occurs.
  std::vector<PreparedGroup> draw(base::Stream& stream) const;

 private:
  std::vector<PreparedGroup> groups_;
  std::vector<std::string> platforms_;
  std::vector<base::Matrix> speeds_;  // centred by group
};

}  // namespace graft::meta
