// Several models, chosen among by the support: the learner for users who do not want to choose, and the guard against
// negative transfer.
#pragma once

#include <memory>

#include "meta/cost_model.h"
#include "meta/learner.h"
#include "meta/methods/parts.h"

namespace graft::meta {

// kind "chosen": several models, chosen among by the support. Without support it is the first, the most trusted;
// fitted, it is the fitted member that, fitted to four fifths of the support, ranks the left-out fifth best within the
// whole support (five folds). A later member must be better than those before it by more than chance explains with so
// few rows. It is the guard against negative transfer if the last member is `scratch`.
std::unique_ptr<CostModel> make_chosen_model(Members members);
std::unique_ptr<CostModel> chosen_model_from(const base::Arrays& state);
std::unique_ptr<Learner> make_adaptive_learner();

}  // namespace graft::meta
