// One network on all source platforms equally: zero-shot unchanged, fine-tuned by Adam on a support.
#pragma once

#include <memory>

#include "meta/learner.h"

namespace graft::meta {

std::unique_ptr<Learner> make_pooled_learner();
std::unique_ptr<Learner> make_pooled_head_learner();

}  // namespace graft::meta
