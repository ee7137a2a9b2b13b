// One network for each source platform: the basis of ridge, nearest, residual.
#pragma once

#include <string>
#include <vector>

#include "meta/learners/training.h"

namespace graft::meta {

// The parameters of a network for each named platform, trained on its groups alone; side by side.
std::vector<std::vector<float>> train_sources(const NetworkShape& shape, std::span<const PreparedGroup> groups,
                                              const std::vector<std::string>& platforms,
                                              const LearnerSettings& settings, base::Monitor& monitor);

// Of all platforms of the tasks, in the shape that fits them (fitting_shape).
SourceBasis train_basis(const TaskSet& tasks, const LearnerSettings& settings, base::Monitor& monitor);

}  // namespace graft::meta
