// One network, or forest, per source platform; adapts by kernel regressions on features, or leaves, and their scores,
// each with its trust in the sources (docs/explanation/method.md).
#pragma once

#include <memory>

#include "meta/learner.h"

namespace graft::meta {

std::unique_ptr<Learner> make_residual_learner();

}  // namespace graft::meta
