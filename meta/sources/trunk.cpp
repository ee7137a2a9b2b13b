#include "meta/sources/trunk.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "base/error.h"
#include "meta/gradient/platform_heads.h"
#include "meta/state.h"

namespace graft::meta {
namespace {

const std::string prefix = "trunk/";  // of the names of its arrays

}  // namespace

std::int64_t Trunk::width() const {
  return std::accumulate(shape.hidden.begin(), shape.hidden.end(), std::int64_t(0));
}

base::Matrix Trunk::of(const features::Encoded& programs) const {
  base::Matrix out(programs.programs(), width());
  if (out.rows == 0) return out;
  const features::Encoded x = normalisation.apply(programs);
  hidden_outputs(shape, theta, inputs_of(x), out.values);
  return out;
}

std::vector<float> Trunk::head() const {
  std::vector<float> out(std::size_t(width()), 0.0f);
  const ParameterBlock weight = layout_of(shape)[shape.hidden.size() * 2];
  std::copy_n(theta.begin() + weight.offset, weight.size, out.end() - weight.size);
  return out;
}

Trunk train_trunk(const TaskSet& tasks, const LearnerSettings& settings, const std::string& name, std::int64_t share,
                  base::Monitor& monitor) {
  Trunk out;
  out.normalisation = fit_normalisation(tasks.groups);
  out.shape.hidden = {256, 128};
  out.shape.inputs = out.normalisation.features();
  const std::vector<PreparedGroup> groups = prepared(out.normalisation, tasks.groups);
  HeadsSettings heads;
  heads.batches.steps = ((settings.steps > 0 ? settings.steps : heads_steps(groups)) + share - 1) / share;
  out.theta = train_platform_heads(out.shape, settings.seed, groups, heads,
                                   shared_stage_of(settings, name, monitor));
  return out;
}

void put(const Trunk& trunk, base::Arrays& arrays) {
  base::Arrays own;
  put(trunk.normalisation, own);
  put(trunk.shape, own);
  put_values(own, "theta", trunk.theta);
  put_under(prefix, prefix, own, arrays);
}

Trunk trunk_from(const base::Arrays& arrays) {
  const base::Arrays own = arrays_under(prefix, prefix, arrays);
  Trunk out;
  out.normalisation = normalisation_from(own);
  out.shape = scoring_shape_from(own, out.normalisation.features());
  if (out.shape.kind != NetworkKind::mlp || out.shape.hidden.empty() || out.shape.context.size > 0)
    throw base::UserError("array 'trunk/theta': expected of a perceptron with hidden layers");
  out.theta = values_of(own, "theta", parameter_count(out.shape));
  return out;
}

}  // namespace graft::meta
