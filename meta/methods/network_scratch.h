// A network that is trained on the target's support alone, from new parameters each time: the MLP and the TreeGRU of
// "Learning to Optimize Tensor Programs" without transfer.
#pragma once

#include <memory>

#include "base/arrays.h"
#include "meta/cost_model.h"
#include "meta/learner.h"

namespace graft::meta {

// kind "network-scratch". All scores are equal until there is support; then the model is a network (network_model.h)
// trained on all of it with the settings' loss (rank).
std::unique_ptr<CostModel> network_scratch_model_from(const base::Arrays& state);
std::unique_ptr<Learner> make_network_scratch_learner();

}  // namespace graft::meta
