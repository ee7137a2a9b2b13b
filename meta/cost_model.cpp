#include "meta/cost_model.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"

namespace graft::meta {

Scores certain(std::vector<float> scores) {
  std::vector<float> spread(scores.size(), 0.0f);
  return {std::move(scores), std::move(spread)};
}

std::unique_ptr<CostModel> CostModel::continued(std::int64_t, const TaskSet&, const LearnerSettings&,
                                                base::Monitor&) const {
  check_continues(*this);
  return clone();
}

void check_continues(const CostModel& model) {
  if (model.can_continue()) return;
  if (!model.support().empty())
    throw base::UserError("an adapted model is not trained further; give the model that it was adapted from");
  throw base::UserError(
      fmt::format("a model of kind {} learns nothing more; train again on all datasets", model.kind()));
}

}  // namespace graft::meta
