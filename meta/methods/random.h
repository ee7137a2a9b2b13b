// Meaningless scores: the floor of every table.
#pragma once

#include <cstdint>
#include <memory>

#include "meta/cost_model.h"
#include "meta/learner.h"

namespace graft::meta {

// kind "random": scores are a hash of the features; the floor of every table.
std::unique_ptr<CostModel> make_random_model(std::uint64_t seed);
std::unique_ptr<CostModel> random_model_from(const base::Arrays& state);
std::unique_ptr<Learner> make_random_learner();

}  // namespace graft::meta
