// One network, or forest, for each source platform: the basis of ridge, nearest, residual.
#pragma once

#include <string>
#include <vector>

#include "base/monitor.h"
#include "meta/learner.h"
#include "meta/sources/source_basis.h"

namespace graft::meta {

// The basis with the tasks' platforms besides, as networks of its shape or, where settings.trees says so, as forests.
// They are believed.
void add_sources(SourceBasis& basis, const TaskSet& tasks, const LearnerSettings& settings, base::Monitor& monitor);

// The same for a model that is trained already: further networks or forests, whichever it has.
SourceBasis with_more_sources(SourceBasis basis, const TaskSet& tasks, const LearnerSettings& settings,
                              base::Monitor& monitor);

// Of all platforms of the tasks, in the shape that fits them (fitting_shape); some may be doubted.
SourceBasis train_basis(const TaskSet& tasks, const LearnerSettings& settings, base::Monitor& monitor);

}  // namespace graft::meta
