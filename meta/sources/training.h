// One network, or forest, for each source platform: the basis of ridge, nearest, residual.
#pragma once

#include <string>
#include <vector>

#include "base/monitor.h"
#include "meta/learner.h"
#include "meta/sources/source_basis.h"

namespace graft::meta {

// The basis extended by the tasks' platforms, as networks of its shape or, with settings.trees, as forests.
// They are trusted.
void add_sources(SourceBasis& basis, const TaskSet& tasks, const LearnerSettings& settings, base::Monitor& monitor);

// The same for a trained model: further networks or forests, whichever it has.
SourceBasis with_more_sources(SourceBasis basis, const TaskSet& tasks, const LearnerSettings& settings,
                              base::Monitor& monitor);

// The basis of all platforms of the tasks, in the shape that fits them (fitting_shape); some sources may be marked as
// contradictory.
SourceBasis train_basis(const TaskSet& tasks, const LearnerSettings& settings, base::Monitor& monitor);

}  // namespace graft::meta
