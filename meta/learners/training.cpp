#include "meta/learners/training.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "meta/learners/adam.h"

namespace graft::meta {

std::vector<PreparedGroup> prepared(const Normalisation& normalisation, std::span<const Examples> groups) {
  std::vector<PreparedGroup> out;
  for (const Examples& group : groups) {
    out.push_back({group.platform, normalisation.apply(group.features), group.log_seconds});
  }
  return out;
}

Batch<float> batch_of(Loss loss, std::span<const Selection> selections) {
  features::Encoded all;
  std::vector<double> log_seconds;
  std::vector<std::int64_t> sizes;
  for (const Selection& selection : selections) {
    features::append(all, features::chosen(selection.group->programs, selection.programs));
    for (const std::int64_t p : selection.programs) log_seconds.push_back(selection.group->log_seconds[std::size_t(p)]);
    sizes.push_back(std::int64_t(selection.programs.size()));
  }
  return {std::move(all.rows.values), std::move(all.begins), std::move(all.parents),
          Objective(loss, log_seconds, sizes)};
}

void train_pooled(const Network& network, std::vector<float>& theta, std::span<const PreparedGroup> groups,
                  const PooledSettings& settings, std::uint64_t seed, std::string_view name, base::Monitor& monitor) {
  base::Stream stream(seed, name);
  Adam adam(theta.size());
  std::vector<float> gradient(theta.size());
  for (std::int64_t step = 0; step < settings.steps; ++step) {
    check_stop(monitor);
    std::vector<Selection> selections;
    const std::vector<std::int64_t> drawn = stream.choose(std::int64_t(groups.size()), settings.groups_per_step);
    for (const std::int64_t g : drawn) {
      const PreparedGroup& group = groups[std::size_t(g)];
      selections.push_back(
          {&group, stream.choose(group.programs.programs(), settings.rows_per_step / std::int64_t(drawn.size()))});
    }
    loss_gradient<float>(network, theta, batch_of(settings.loss, selections), gradient);
    const double rate = settings.rate * 0.5 * (1 + std::cos(std::numbers::pi * double(step) / double(settings.steps)));
    for (float& value : theta) value *= float(1 - rate * settings.decay);
    adam.step(theta, gradient, rate);
    monitor.progress(name, step + 1, settings.steps);
  }
}

void check_stop(base::Monitor& monitor) {
  if (monitor.stop_requested()) throw base::Failure("stopped by request");
}

void require_groups(const TaskSet& tasks) {
  if (tasks.groups.empty())
    throw base::UserError("nothing to train on: no platform is left; give at least one dataset more");
}

NetworkShape network_shape(const TaskSet& tasks, const LearnerSettings& settings) {
  check_fits(settings.network.kind, *tasks.encoding);
  NetworkShape shape = settings.network;
  shape.inputs = std::int64_t(tasks.encoding->features.size());
  return shape;
}

NetworkState untrained_state(const TaskSet& tasks, const LearnerSettings& settings) {
  require_groups(tasks);
  NetworkState state;
  state.normalisation = fit_normalisation(tasks.groups);
  state.shape = network_shape(tasks, settings);
  state.theta = initial_parameters(state.shape, settings.seed);
  return state;
}

}  // namespace graft::meta
