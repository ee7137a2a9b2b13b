// Boosted trees on all source platforms alike (`gbt`), or on nothing before there is a support (`gbt-scratch`); both
// adapt by further trees.
#pragma once

#include <memory>
#include <vector>

#include "meta/cost_model.h"
#include "meta/forests/boosting.h"
#include "meta/gradient/adaptation.h"
#include "meta/learner.h"

namespace graft::meta {

// kind "gbt": the sum of a forest's trees. adapted grows further ones on the support, from the forest's own scores:
// adaptation.loss, and as many trees at such a rate as its descent for the support says. A forest of no trees knows
// nothing until it has support.
struct ForestState {
  DecisionForest forest;
  Adaptation adaptation;
};
std::unique_ptr<CostModel> make_forest_model(ForestState state);
// How the trees of an adaptation are grown; `trees` and `rate` are the descent's. Fewer decisions than in training:
// there are few rows.
BoostingSettings adapting_trees(const Adaptation::Descent& descent);
// How many trees at which rate, by rows of support, where trees start from nothing.
const std::vector<Adaptation::Descent>& growth_from_nothing();
std::unique_ptr<CostModel> forest_model_from(const base::Arrays& state);
std::unique_ptr<Learner> make_gbt_learner();
std::unique_ptr<Learner> make_gbt_scratch_learner();

}  // namespace graft::meta
