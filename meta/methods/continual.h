// Shared by models of one network or embedding that learn from platforms measured later, without the data that they
// were trained on: the parameters move by the share of one platform among all. (Models of sources get one more source.)
#pragma once

#include <vector>

#include "meta/cost_model.h"

namespace graft::meta {

// The model adapted to each new platform in turn: the parameters that it would have for that platform alone.
std::vector<base::Arrays> adapted_states(const CostModel& model, const TaskSet& tasks);

// to += share (from - to)
void move_towards(std::vector<float>& to, const std::vector<float>& from, double share);

}  // namespace graft::meta
