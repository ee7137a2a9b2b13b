// Published ways to use a trained model in a search, for comparison; graft's own is to adapt it.
#pragma once

#include <memory>

#include "base/arrays.h"
#include "meta/cost_model.h"

namespace graft::meta {

// kind "frozen": scores as the model does, regardless of measurements.
std::unique_ptr<CostModel> make_frozen_model(std::unique_ptr<CostModel> model);
std::unique_ptr<CostModel> frozen_model_from(const base::Arrays& state);

// kind "global-local": f = w(n) f_global + f_local ("Learning to Optimize Tensor Programs", section 4, as in its
// released code): trees grown on the support from w times the model's scores; w = 2^(-n / 64) of n measured programs,
// and 0 once it is below 0.05. Without support, the model alone.
std::unique_ptr<CostModel> make_global_local_model(std::unique_ptr<CostModel> model, std::int64_t features);
std::unique_ptr<CostModel> global_local_model_from(const base::Arrays& state);

}  // namespace graft::meta
