// The pre-defined prediction of the encoding `analytic`; learns nothing.
#pragma once

#include <memory>

#include "meta/cost_model.h"
#include "meta/learner.h"

namespace graft::meta {

// kind "column": minus the first column of an encoding that predicts times (features/analytic.h). It does not adapt.
std::unique_ptr<CostModel> make_column_model();
std::unique_ptr<CostModel> column_model_from(const base::Arrays& state);
std::unique_ptr<Learner> make_analytic_learner();

}  // namespace graft::meta
