// Boosted trees on all source platforms equally (`gbt`), or on nothing before there is a support (`gbt-scratch`); both
// adapt by further trees.
#pragma once

#include <memory>
#include <vector>

#include "meta/cost_model.h"
#include "meta/forests/boosting.h"
#include "meta/gradient/adaptation.h"
#include "meta/learner.h"
#include "meta/methods/setting.h"

namespace graft::meta {

// kind "gbt": the sum of a forest's trees. adapted grows further ones on the support, from the forest's own scores:
// by adaptation.loss, with the number of trees and the rate of its descent for the support. A forest without trees has
// no information until it has support.
struct ForestState {
  DecisionForest forest;
  Adaptation adaptation;
};
std::unique_ptr<CostModel> make_forest_model(ForestState state);
// How the trees of an adaptation are grown; `trees` and `rate` are the descent's. Fewer decisions than in training,
// because there are few rows.
BoostingSettings adapting_trees(const Adaptation::Descent& descent);
// The number of trees and the rate, by rows of support, for trees that start from nothing.
const std::vector<Adaptation::Descent>& growth_from_nothing();
std::unique_ptr<CostModel> forest_model_from(const base::Arrays& state);
std::vector<MethodSetting> tree_settings();  // of make_gbt_learner
std::unique_ptr<Learner> make_gbt_learner(const MethodValues& values);
std::unique_ptr<Learner> make_gbt_scratch_learner();

}  // namespace graft::meta
