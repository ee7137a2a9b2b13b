#include "meta/learners/source_basis.h"

#include <fmt/format.h>

#include "base/team.h"
#include "meta/learners/boosted.h"

namespace graft::meta {
namespace {

constexpr std::int64_t default_steps = 400;

// The parameters of a network for each named platform, trained on its groups alone; side by side, and on the ranks of
// the team.
std::vector<std::vector<float>> train_sources(const NetworkShape& shape, std::span<const PreparedGroup> groups,
                                              const std::vector<std::string>& platforms,
                                              const LearnerSettings& settings, base::Monitor& monitor) {
  const auto network = make_network(shape, settings.backend);
  base::QuietMonitor quiet(monitor);
  auto thetas = base::divided(team_of(settings), std::int64_t(platforms.size()), settings.threads, [&](std::int64_t s) {
    const std::string& name = platforms[std::size_t(s)];
    std::vector<PreparedGroup> own;
    for (const PreparedGroup& group : groups) {
      if (group.platform == name) own.push_back(group);
    }
    PooledSettings pooled;
    pooled.loss = settings.loss.value_or(Loss::squared);
    pooled.steps = settings.steps > 0 ? settings.steps : default_steps;
    std::vector<float> theta = initial_parameters(shape, settings.seed);
    train_pooled(*network, theta, own, pooled, stage_of(settings, "training for " + name, quiet));
    return theta;
  });
  monitor.progress("source platforms", std::int64_t(platforms.size()), std::int64_t(platforms.size()));
  return thetas;
}

}  // namespace

SourceBasis train_basis(const TaskSet& tasks, const LearnerSettings& settings, base::Monitor& monitor) {
  require_groups(tasks);
  SourceBasis basis;
  basis.normalisation = fit_normalisation(tasks.groups);
  if (!settings.trees) {
    basis.shape =
        fitting_shape(network_shape(tasks, settings), prepared(basis.normalisation, tasks.groups), settings, monitor);
  }
  add_sources(basis, tasks, settings, monitor);
  return basis;
}

void add_sources(SourceBasis& basis, const TaskSet& tasks, const LearnerSettings& settings, base::Monitor& monitor) {
  const std::vector<std::string> names = platforms(tasks);
  if (settings.trees) {
    for (const std::string& name : names) {
      add(basis, name,
          trained_forest(only_platforms(tasks, {name}).groups, settings.loss.value_or(Loss::squared),
                         training_trees(settings), "training for " + name, monitor));
    }
    return;
  }
  std::vector<std::vector<float>> thetas =
      train_sources(basis.shape, prepared(basis.normalisation, tasks.groups), names, settings, monitor);
  for (std::size_t p = 0; p < names.size(); ++p) add(basis, names[p], std::move(thetas[p]));
}

}  // namespace graft::meta
