#include "meta/gradient/adaptation.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"
#include "meta/gradient/adam.h"
#include "meta/state.h"

namespace graft::meta {

const Adaptation::Descent* Adaptation::descent_for(double shots_per_workload) const {
  const Descent* best = nullptr;
  double nearest = 0;
  for (const Descent& descent : descents) {
    const double distance = std::abs(std::log(shots_per_workload / double(descent.shots)));
    if (best == nullptr || distance < nearest) {
      best = &descent;
      nearest = distance;
    }
  }
  return best;
}

Inputs<float> inputs_of(const features::Encoded& programs) {
  return {programs.rows.values, programs.begins, programs.parents};
}

JoinedExamples joined_examples(Loss loss, std::span<const Examples> groups) {
  features::Encoded programs;
  std::vector<double> log_seconds;
  std::vector<std::int64_t> sizes;
  for (const Examples& group : groups) {
    features::append(programs, group.features);
    log_seconds.insert(log_seconds.end(), group.log_seconds.begin(), group.log_seconds.end());
    sizes.push_back(group.size());
  }
  return {std::move(programs), Objective(loss, log_seconds, sizes)};
}

Batch<float> batch_of(const Normalisation& normalisation, Loss loss, std::span<const Examples> groups) {
  auto [programs, objective] = joined_examples(loss, groups);
  if (programs.programs() > 0) programs = normalisation.apply(std::move(programs));
  return {std::move(programs.rows.values), std::move(programs.begins), std::move(programs.parents),
          std::move(objective)};
}

void descend(const Network& network, std::vector<float>& theta, const Batch<float>& support,
             const Adaptation::Descent& descent, bool head_only, const std::function<void(std::int64_t)>& on_step) {
  Adam adam(theta.size());
  std::vector<float> gradient(theta.size());
  for (std::int64_t k = 1; k <= descent.steps; ++k) {
    loss_gradient<float>(network, theta, support, gradient);
    for (const ParameterBlock& block : network.layout()) {
      if (head_only && !block.head) std::fill_n(gradient.begin() + block.offset, block.size, 0.0f);
    }
    if (descent.adam) {
      adam.step(theta, gradient, double(descent.rate));
    } else {
      for (std::size_t i = 0; i < theta.size(); ++i) theta[i] -= descent.rate * gradient[i];
    }
    if (on_step) on_step(k);
  }
}

std::vector<float> adapted_parameters(const Network& network, const Adaptation& adaptation,
                                      std::span<const float> theta, const Batch<float>& support,
                                      double shots_per_workload) {
  const auto finite = [](const std::vector<float>& values) {
    return std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
  };
  std::vector<float> current = adapt<float>(network, adaptation.rates, theta, support);
  if (!finite(current)) current.assign(theta.begin(), theta.end());
  const Adaptation::Descent* const descent = adaptation.descent_for(shots_per_workload);
  if (support.objective.empty() || descent == nullptr) return current;
  const std::vector<float> before = current;
  descend(network, current, support, *descent, adaptation.head_only);
  return finite(current) ? current : before;
}

void put(const Adaptation& adaptation, base::Arrays& arrays) {
  arrays.attributes["loss"] = name_of(adaptation.loss);
  put_values(arrays, "inner_rates", adaptation.rates.values);
  put_integers(arrays, "inner_steps", {adaptation.rates.steps});
  put_integers(arrays, "inner_rates_per_parameter", {adaptation.rates.per_parameter ? 1 : 0});
  if (adaptation.head_only) put_integers(arrays, "descent_head_only", {1});
  std::vector<std::int64_t> shots, steps, adam;
  std::vector<float> rates;
  for (const Adaptation::Descent& descent : adaptation.descents) {
    shots.push_back(descent.shots);
    steps.push_back(descent.steps);
    adam.push_back(descent.adam ? 1 : 0);
    rates.push_back(descent.rate);
  }
  put_integers(arrays, "descent_shots", shots);
  put_integers(arrays, "descent_steps", steps);
  put_integers(arrays, "descent_adam", adam);
  put_values(arrays, "descent_rates", rates);
}

Adaptation adaptation_from(const base::Arrays& arrays, const std::vector<ParameterBlock>& layout) {
  Adaptation out;
  out.loss = loss_named(attribute_of(arrays, "loss"));
  out.rates.values = values_of(arrays, "inner_rates");
  const std::size_t blocks = layout.size(), count = out.rates.values.size();
  std::size_t set = blocks;
  if (arrays.attributes.contains("inner_steps")) {
    out.rates.steps = integer_of(arrays, "inner_steps", 0);
    out.rates.per_parameter = integer_of(arrays, "inner_rates_per_parameter", 0) != 0;
    if (out.rates.per_parameter && !layout.empty()) set = std::size_t(layout.back().offset + layout.back().size);
  } else if (blocks > 0) {
    out.rates.steps = std::int64_t(count / blocks);  // once there was one set for each step
  }
  if (set == 0 ? count > 0 || out.rates.steps > 0 : count % set != 0 || (out.rates.steps > 0 && count == 0))
    throw base::UserError("array 'inner_rates': not a whole number of sets");
  out.head_only = arrays.attributes.contains("descent_head_only");
  const std::vector<std::int64_t> shots = integers_of(arrays, "descent_shots", 1);
  const std::vector<std::int64_t> steps = integers_of(arrays, "descent_steps", 0);
  const std::vector<float>& rates = values_of(arrays, "descent_rates", std::int64_t(shots.size()));
  if (steps.size() != shots.size())
    throw base::UserError("attribute 'descent_steps': as many as descent_shots expected");
  // All were Adam's once.
  std::vector<std::int64_t> adam(shots.size(), 1);
  if (arrays.attributes.contains("descent_adam")) adam = integers_of(arrays, "descent_adam", 0);
  if (adam.size() != shots.size()) throw base::UserError("attribute 'descent_adam': as many as descent_shots expected");
  for (std::size_t i = 0; i < shots.size(); ++i) out.descents.push_back({shots[i], steps[i], rates[i], adam[i] != 0});
  return out;
}

}  // namespace graft::meta
