// Trains boosted trees on groups of measurements, for the learners that consist of them.
#pragma once

#include <span>
#include <string_view>

#include "base/monitor.h"
#include "meta/forests/boosting.h"
#include "meta/forests/forest.h"
#include "meta/learner.h"

namespace graft::meta {

// How a forest is grown from data sets: settings.steps trees, or `usual_trees` if that is 0.
BoostingSettings training_trees(const LearnerSettings& settings, std::int64_t usual_trees);

// The trees that follow those of `before`, which the forest begins with; none: it starts from nothing. Stopped when the
// monitor asks to stop.
DecisionForest trained_forest(std::span<const Examples> groups, Loss loss, const BoostingSettings& settings,
                              std::string_view name, base::Monitor& monitor, const DecisionForest& before = {});

}  // namespace graft::meta
