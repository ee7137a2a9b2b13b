// One network that adapts by gradient steps: the model of the pooled and of the meta-gradient learners.
#pragma once

#include <memory>

#include "meta/cost_model.h"
#include "meta/gradient/adaptation.h"

namespace graft::meta {

// kind "network": one network. adapted = adapted_parameters of adaptation.h; the adapted model can be adapted again.
std::unique_ptr<CostModel> make_network_model(NetworkState state);
std::unique_ptr<CostModel> network_model_from(const base::Arrays& state);

}  // namespace graft::meta
