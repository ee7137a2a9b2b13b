// One network, or forest, per source platform; adapts by choosing the one that ranks the support best.
#pragma once

#include <memory>

#include "meta/cost_model.h"
#include "meta/learner.h"
#include "meta/sources/source_basis.h"

namespace graft::meta {

// kind "nearest": the mean of the trusted sources until it has support, then the one source whose scores rank the
// support best (mean rank correlation over the workloads; the first of equals).
std::unique_ptr<CostModel> make_nearest_model(SourceBasis basis);
std::unique_ptr<CostModel> nearest_model_from(const base::Arrays& state);
std::unique_ptr<Learner> make_nearest_learner();

}  // namespace graft::meta
