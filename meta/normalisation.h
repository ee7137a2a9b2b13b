// Features for networks: centred and scaled by the training rows' statistics, and clipped. Kept with every model. A
// feature that never varied in training is dropped (scale 0): its effect is unknown, however far it moves elsewhere.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/arrays.h"
#include "meta/task_set.h"

namespace graft::meta {

struct Normalisation {
  std::vector<float> mean, scale;  // one per feature; scale = 1 / standard deviation, or 0

  static constexpr float clip = 4;  // standard deviations
  std::int64_t features() const { return std::int64_t(mean.size()); }
  // (x - mean) * scale within +-clip. Also replaces values that are not finite by the mean.
  features::Encoded apply(features::Encoded programs) const;
  bool operator==(const Normalisation&) const = default;
};

// Over all rows of all groups (at least one row).
Normalisation fit_normalisation(std::span<const Examples> groups);

// "mean" and "scale" among a model's arrays, and back (UserError if they are missing or unequal in length).
void put(const Normalisation& normalisation, base::Arrays& arrays);
Normalisation normalisation_from(const base::Arrays& arrays);

}  // namespace graft::meta
