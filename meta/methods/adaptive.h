// Several models of which the support chooses: the learner for those who do not want to choose, and the guard against
// negative transfer.
#pragma once

#include <memory>

#include "meta/cost_model.h"
#include "meta/learner.h"
#include "meta/methods/parts.h"

namespace graft::meta {

// kind "chosen": several models of which the support chooses. Without one it is the first, the most trusted; fitted, it
// is the fitted member that, fitted to four fifths of the support, puts the left fifth in the best order among all of
// it (five folds). A later member must be better than those before it by more than chance would make it with so few
// rows. It is the guard against negative transfer where the last member is `scratch`.
std::unique_ptr<CostModel> make_chosen_model(Members members);
std::unique_ptr<CostModel> chosen_model_from(const base::Arrays& state);
std::unique_ptr<Learner> make_adaptive_learner();

}  // namespace graft::meta
