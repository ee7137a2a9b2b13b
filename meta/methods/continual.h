// What models of one network or embedding share when they learn of platforms measured later, without the data that they
// were trained on: what is known moves by the share that one platform among all has. (Models of sources get one more.)
#pragma once

#include <vector>

#include "meta/cost_model.h"

namespace graft::meta {

// The model adapted to one new platform after the other: what it would be if it were for that platform alone.
std::vector<base::Arrays> adapted_states(const CostModel& model, const TaskSet& tasks);

// to += share (from - to)
void move_towards(std::vector<float>& to, const std::vector<float>& from, double share);

}  // namespace graft::meta
