// Ensembles by resampling: members trained on different draws of the rows.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "meta/cost_model.h"
#include "meta/methods/parts.h"

namespace graft::meta {

// kind "ensemble": the mean of at least two members' scores; spread: their standard deviation (n - 1). Each is fitted
// to its own draw of the support. Scores of losses that compare only within groups have an offset per workload, which
// is part of the spread.
std::unique_ptr<CostModel> make_ensemble_model(Members members, std::uint64_t seed);
// A member's share: 80 % of each group's rows, without replacement.
std::vector<Examples> bootstrap_share(std::span<const Examples> groups, std::uint64_t seed, int member);
inline constexpr std::string_view ensemble_kind = "ensemble";
std::unique_ptr<CostModel> ensemble_model_from(const base::Arrays& state);

}  // namespace graft::meta
