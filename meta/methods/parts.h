// Models that consist of other models: their parts among the arrays of one state.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "meta/cost_model.h"

namespace graft::meta {

// A model that is a part of another: its state under the prefix NAME/, and back. No model holds one of its own kind.
void put_part(const CostModel& model, const std::string& name, base::Arrays& arrays);
std::unique_ptr<CostModel> part_from(const base::Arrays& state, const std::string& name, std::string_view of_kind);
// Several of them.
using Members = std::vector<std::unique_ptr<CostModel>>;
void put_members(const Members& members, base::Arrays& arrays);
Members members_from(const base::Arrays& state, std::string_view of_kind);
Members copies(const Members& members);
bool all_take(const Members& members, const features::Encoding& encoding);

}  // namespace graft::meta
