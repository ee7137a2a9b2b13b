// Adapted models (CostModel::adapted makes them).
#pragma once

#include <memory>
#include <string_view>

#include "meta/cost_model.h"

namespace graft::meta {

// kind "adapted": a prior of another kind and the support that it was adapted to (CostModel::adapted makes it). Its
// state is only that: reading it fits the prior again.
inline constexpr std::string_view adapted_kind = "adapted";
std::unique_ptr<CostModel> adapted_model_from(const base::Arrays& state);

}  // namespace graft::meta
