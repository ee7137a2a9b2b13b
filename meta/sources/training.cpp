#include "meta/sources/training.h"

#include <algorithm>
#include <mutex>
#include <span>

#include "base/statistics.h"
#include "base/team.h"
#include "meta/forests/training.h"
#include "meta/gradient/training.h"

namespace graft::meta {
namespace {

constexpr std::int64_t default_steps = 400;
// Twice as many as one forest for all platforms has: of each source, and of the leaves that regression looks at, more
// trees make a finer picture (docs/notebook, "Which learner").
constexpr std::int64_t default_trees = 800;
// After the trees of datasets, to learn what was given back.
constexpr std::int64_t trees_of_more = 200;

// Where a new source that was given as many measurements as this has half the weight of one of datasets.
constexpr float half_weight = 512;

bool extends(const LearnerSettings& settings, const std::string& platform) {
  return settings.extended.contains(platform);
}

BoostingSettings trees_after(const DecisionForest& settled, const LearnerSettings& settings) {
  return training_trees(settings, settled.trees() > 0 ? trees_of_more : default_trees);
}

// The parameters of a network for each named platform, trained on its groups alone; side by side, and on the ranks of
// the team.
std::vector<std::vector<float>> train_sources(const NetworkShape& shape, std::span<const PreparedGroup> groups,
                                              const std::vector<std::string>& platforms,
                                              const LearnerSettings& settings, base::Monitor& monitor) {
  const auto network = make_network(shape);
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

// The trees that grow side by side, as one count.
class TreeCount final : public base::Monitor {
 public:
  TreeCount(base::Monitor& to, std::int64_t total) : to_(to), total_(total) {}
  void progress(std::string_view, std::int64_t, std::int64_t) override {
    const std::lock_guard lock(guard_);
    to_.progress("trees of the source platforms", ++done_, total_);
  }
  bool stop_requested() override { return to_.stop_requested(); }

 private:
  base::Monitor& to_;
  std::mutex guard_;
  std::int64_t done_ = 0, total_ = 0;
};

// What the forest of a platform begins with: what its source learnt from datasets, if the tasks only extend it.
DecisionForest settled_forest(const SourceBasis& basis, const std::string& platform, const LearnerSettings& settings) {
  const auto known = source_of(basis, platform);
  if (!known || !extends(settings, platform)) return {};
  const std::int64_t settled = basis.sources[*known].settled_trees;
  const DecisionForest& forest = basis.forests[*known];
  return settled < 0 ? forest : part(forest, 0, settled);
}

// A forest for each named platform, in the same way.
std::vector<DecisionForest> train_forests(const SourceBasis& basis, const TaskSet& tasks,
                                          const std::vector<std::string>& platforms, const LearnerSettings& settings,
                                          base::Monitor& monitor) {
  base::Team& team = team_of(settings);
  const std::int64_t count = std::int64_t(platforms.size()), own = (count + team.size() - 1) / team.size();
  std::vector<DecisionForest> settled;
  std::int64_t all_trees = 0;
  for (const std::string& name : platforms) {
    settled.push_back(settled_forest(basis, name, settings));
    all_trees += trees_after(settled.back(), settings).trees;
  }
  TreeCount counting(monitor, (all_trees + team.size() - 1) / team.size());
  return base::divided(team, count, settings.threads, [&](std::int64_t s) {
    const std::string& name = platforms[std::size_t(s)];
    BoostingSettings trees = trees_after(settled[std::size_t(s)], settings);
    trees.threads = std::max(1, settings.threads / int(own));  // more than one if there are fewer platforms
    return trained_forest(only_platforms(tasks, {name}).groups, settings.loss.value_or(Loss::squared), trees, name,
                          counting, settled[std::size_t(s)]);
  });
}

SourceBasis::Source described(const TaskSet& tasks, const std::string& platform,
                              const std::vector<std::int64_t>& target_columns) {
  SourceBasis::Source out{platform, 0, {}, false, -1, 1};
  std::vector<std::span<const double>> labels;
  for (const Examples& group : tasks.groups) {
    if (group.platform != platform || group.size() == 0) continue;
    labels.push_back(group.log_seconds);
    if (!out.target.empty()) continue;
    for (const std::int64_t column : target_columns) out.target.push_back(group.features.rows.at(0, column));
  }
  out.spread = float(base::deviation_within(labels));
  return out;
}

// By how much was measured, if all that it knows was given back.
SourceBasis::Source weighted(SourceBasis::Source source, const SourceBasis& basis, const LearnerSettings& settings) {
  if (!extends(settings, source.platform) || source.settled_trees > 0) return source;
  const auto known = source_of(basis, source.platform);
  const bool of_data = known && basis.sources[*known].weight == 1;
  const auto measured = float(settings.extended.at(source.platform));
  if (!of_data) source.weight = measured / (measured + half_weight);
  return source;
}

}  // namespace

SourceBasis train_basis(const TaskSet& tasks, const LearnerSettings& settings, base::Monitor& monitor) {
  require_groups(tasks);
  SourceBasis basis;
  basis.normalisation = fit_normalisation(tasks.groups);
  const std::vector<features::Feature>& features = tasks.encoding->features;
  for (std::size_t f = 0; f < features.size(); ++f) {
    if (features[f].of_target) basis.target_columns.push_back(std::int64_t(f));
  }
  if (!settings.trees) {
    basis.shape =
        fitting_shape(network_shape(tasks, settings), prepared(basis.normalisation, tasks.groups), settings, monitor);
  }
  add_sources(basis, tasks, settings, monitor);
  doubt_contrary_sources(basis, tasks.groups);
  return basis;
}

void add_sources(SourceBasis& basis, const TaskSet& tasks, const LearnerSettings& settings, base::Monitor& monitor) {
  const std::vector<std::string> names = platforms(tasks);
  if (settings.trees) {
    std::vector<DecisionForest> forests = train_forests(basis, tasks, names, settings, monitor);
    for (std::size_t p = 0; p < names.size(); ++p) {
      SourceBasis::Source source = described(tasks, names[p], basis.target_columns);
      if (extends(settings, names[p])) {
        source.settled_trees = settled_forest(basis, names[p], settings).trees();
        // Most of what it knows is still from datasets: so is the spread of its times.
        if (source.settled_trees > 0) source.spread = basis.sources[*source_of(basis, names[p])].spread;
      }
      add(basis, weighted(std::move(source), basis, settings), std::move(forests[p]));
    }
    return;
  }
  std::vector<std::vector<float>> thetas =
      train_sources(basis.shape, prepared(basis.normalisation, tasks.groups), names, settings, monitor);
  for (std::size_t p = 0; p < names.size(); ++p)
    add(basis, weighted(described(tasks, names[p], basis.target_columns), basis, settings), std::move(thetas[p]));
}

SourceBasis with_more_sources(SourceBasis basis, const TaskSet& tasks, const LearnerSettings& settings,
                              base::Monitor& monitor) {
  LearnerSettings alike = settings;
  alike.trees = !basis.forests.empty();
  add_sources(basis, tasks, alike, monitor);
  return basis;
}

}  // namespace graft::meta
