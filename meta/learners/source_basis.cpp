#include "meta/learners/source_basis.h"

#include <fmt/format.h>

#include "base/parallel.h"

namespace graft::meta {
namespace {

constexpr std::int64_t default_steps = 400;

// Says nothing of progress, passes the wish to stop on: training in parallel must not report from several threads.
class Quiet final : public base::Monitor {
 public:
  explicit Quiet(base::Monitor& to) : to_(to) {}
  bool stop_requested() override { return to_.stop_requested(); }

 private:
  base::Monitor& to_;
};

}  // namespace

std::vector<std::vector<float>> train_sources(const NetworkShape& shape, std::span<const PreparedGroup> groups,
                                              const std::vector<std::string>& platforms,
                                              const LearnerSettings& settings, base::Monitor& monitor) {
  std::vector<std::vector<float>> thetas(platforms.size(), initial_parameters(shape, settings.seed));
  const auto network = make_network(shape, settings.backend);
  Quiet quiet(monitor);
  base::parallel_for(std::int64_t(platforms.size()), settings.threads, [&](std::int64_t s) {
    const std::string& name = platforms[std::size_t(s)];
    std::vector<PreparedGroup> own;
    for (const PreparedGroup& group : groups) {
      if (group.platform == name) own.push_back(group);
    }
    PooledSettings pooled;
    pooled.loss = settings.loss.value_or(Loss::squared);
    pooled.steps = settings.steps > 0 ? settings.steps : default_steps;
    train_pooled(*network, thetas[std::size_t(s)], own, pooled, stage_of(settings, "training for " + name, quiet));
  });
  monitor.progress("source platforms", std::int64_t(platforms.size()), std::int64_t(platforms.size()));
  return thetas;
}

SourceBasis train_basis(const TaskSet& tasks, const LearnerSettings& settings, base::Monitor& monitor) {
  require_groups(tasks);
  SourceBasis basis;
  basis.platforms = platforms(tasks);
  basis.normalisation = fit_normalisation(tasks.groups);
  const std::vector<PreparedGroup> groups = prepared(basis.normalisation, tasks.groups);
  basis.shape = fitting_shape(network_shape(tasks, settings), groups, settings, monitor);
  basis.thetas = train_sources(basis.shape, groups, basis.platforms, settings, monitor);
  return basis;
}

}  // namespace graft::meta
