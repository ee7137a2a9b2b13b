// A trained model that learns of platforms which were measured later, without the data that it was trained on: what it
// knows stays as it is, the new is added beside it or moves it by the share that one platform among all has.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "meta/gradient/training.h"
#include "meta/learners/learners.h"
#include "meta/learners/source_basis.h"
#include "meta/models/models.h"
#include "meta/state.h"

namespace graft::meta {
namespace {

constexpr std::int64_t most_rows = 256;  // of a workload that one of the new platforms is adapted to

// The model adapted to one new platform after the other: what it would be if it were for that platform alone.
std::vector<base::Arrays> adapted_states(const CostModel& model, const TaskSet& tasks) {
  std::vector<base::Arrays> out;
  for (const std::string& platform : platforms(tasks)) {
    std::vector<Examples> support;
    for (const Examples& group : only_platforms(tasks, {platform}).groups)
      support.push_back(chosen(group, base::Stream(1, "rows of a new platform").choose(group.size(), most_rows)));
    out.push_back(model.fitted(support)->state());
  }
  return out;
}

// to += share (from - to)
void move_towards(std::vector<float>& to, const std::vector<float>& from, double share) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += float(share * double(from[i] - to[i]));
}

// Reptile's step (Nichol et al. 2018).
base::Arrays moved_network(const CostModel& model, std::int64_t known, const TaskSet& tasks) {
  base::Arrays state = model.state();
  for (const base::Arrays& adapted : adapted_states(model, tasks)) {
    ++known;
    move_towards(state.arrays.at("theta").values, values_of(adapted, "theta"), 1.0 / double(known));
  }
  std::vector<float>& theta = state.arrays.at("theta").values;
  for (const ParameterBlock& block : layout_of(shape_from(state, normalisation_from(state).features()))) {
    if (block.context) std::fill_n(theta.begin() + block.offset, block.size, 0.0f);  // it begins at 0 for everyone
  }
  return state;
}

// Mean and covariance of the platforms' heads with some more of them; the embedding stays.
base::Arrays more_heads(const CostModel& model, std::int64_t known, const TaskSet& tasks) {
  base::Arrays state = model.state();
  if (head_kind_named(attribute_of(state, "head")) != HeadKind::ridge)
    throw base::UserError("--base", "this model's head keeps nothing of its platforms; train again on all datasets");
  for (const base::Arrays& adapted : adapted_states(model, tasks)) {
    ++known;
    std::vector<float>& mean = state.arrays.at("head/mean").values;
    std::vector<float>& covariance = state.arrays.at("head/covariance").values;
    const std::vector<float>& own = values_of(adapted, "head/mean", std::int64_t(mean.size()));
    const double share = 1.0 / double(known);
    for (std::size_t a = 0; a < mean.size(); ++a) {
      for (std::size_t b = 0; b < mean.size(); ++b) {
        float& value = covariance[a * mean.size() + b];
        value = float((1 - share) * (double(value) + share * double(own[a] - mean[a]) * double(own[b] - mean[b])));
      }
    }
    move_towards(mean, own, share);
  }
  return state;
}

// One more network for each new platform; one that is known already gives its place.
base::Arrays more_sources(const CostModel& model, const TaskSet& tasks, const LearnerSettings& settings,
                          base::Monitor& monitor) {
  base::Arrays state = model.state();
  SourceBasis basis = basis_from(state);
  LearnerSettings alike = settings;
  alike.trees = !basis.forests.empty();
  add_sources(basis, tasks, alike, monitor);
  if (model.kind() == "residual") {
    StackingPrior prior = stacking_prior_from(state, stacking_regressions(basis));
    return make_residual_model(std::move(basis), std::move(prior))->state();
  }
  if (model.kind() == "nearest") return make_nearest_model(std::move(basis))->state();
  if (model.kind() == "bayes-ridge") return make_bayes_ridge_model(std::move(basis), {})->state();
  return make_ridge_model(std::move(basis), {}, number_of(state, "lambda"))->state();
}

bool is_of_sources(std::string_view kind) {
  return kind == "ridge" || kind == "bayes-ridge" || kind == "nearest" || kind == "residual";
}

// Which kinds, alone or in one of kind "chosen", can go on.
bool learns_more(std::string_view kind) {
  return kind == "network" || kind == "embedding" || is_of_sources(kind);
}

}  // namespace

std::unique_ptr<CostModel> continued(const CostModel& model, std::int64_t known, const TaskSet& tasks,
                                     const LearnerSettings& settings, base::Monitor& monitor) {
  require_groups(tasks);
  const std::string kind(model.kind());
  if (kind == "network") return model_from(kind, moved_network(model, known, tasks));
  if (kind == "embedding") return model_from(kind, more_heads(model, known, tasks));
  if (is_of_sources(kind)) return model_from(kind, more_sources(model, tasks, settings, monitor));
  if (kind == "chosen") {
    Members members = members_from(model.state(), kind);
    bool any = false;
    for (std::unique_ptr<CostModel>& member : members) {  // the others stay what they are
      if (!learns_more(member->kind())) continue;
      any = true;
      member = continued(*member, known, tasks, settings, monitor);
    }
    if (any) return make_chosen_model(std::move(members));
  }
  throw base::UserError("--base",
                        fmt::format("a model of kind {} learns nothing more; train again on all datasets", kind));
}

}  // namespace graft::meta
