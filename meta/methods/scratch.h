// Learns nothing before it sees the target: the model is in kernel_model.h.
#pragma once

#include <memory>

#include "meta/learner.h"

namespace graft::meta {

std::unique_ptr<Learner> make_scratch_learner();

}  // namespace graft::meta
