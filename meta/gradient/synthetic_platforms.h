// Platforms that do not exist, to train in more episodes than there are sources: programs of a real one, with times
// that are a mixture of what models of all sources say of them. Without them the episodes are those few platforms whose
// labels a network of this size already knows.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/arrays.h"
#include "base/random.h"
#include "meta/gradient/training.h"

namespace graft::meta {

class SyntheticPlatforms {
 public:
  SyntheticPlatforms() = default;  // none
  // predictions: by group, programs x sources, higher is faster, all in the units of `groups` (in_equal_units); of the
  // group's own platform `own` (a column, by group) the measured speeds are taken instead. Both must outlive this.
  SyntheticPlatforms(std::span<const PreparedGroup> groups, std::vector<base::Matrix> predictions,
                     std::span<const std::size_t> own);
  bool empty() const { return speeds_.empty(); }
  // The groups of one platform, drawn, with times of a mixture: weights of a Dirichlet distribution of concentration
  // 1/2, each moved by a normal number of deviation 0.35 / sqrt(sources), so that also what no source says occurs.
  std::vector<PreparedGroup> draw(base::Stream& stream) const;

 private:
  std::vector<PreparedGroup> groups_;
  std::vector<base::Matrix> speeds_;
};

}  // namespace graft::meta
