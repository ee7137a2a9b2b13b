#include "meta/gradient/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numbers>
#include <utility>

#include "base/error.h"
#include "base/team.h"
#include "meta/metrics.h"

namespace graft::meta {

std::vector<PreparedGroup> prepared(const Normalisation& normalisation, std::span<const Examples> groups) {
  std::vector<PreparedGroup> out;
  for (const Examples& group : groups) {
    auto programs = std::make_shared<const features::Encoded>(normalisation.apply(group.features));
    out.push_back({group.platform, std::move(programs), group.log_seconds});
  }
  return out;
}

Batch<float> batch_of(Loss loss, std::span<const Selection> selections) {
  features::Encoded all;
  std::vector<double> log_seconds;
  std::vector<std::int64_t> sizes;
  for (const Selection& selection : selections) {
    features::append(all, features::chosen(*selection.group->programs, selection.programs));
    for (const std::int64_t p : selection.programs) log_seconds.push_back(selection.group->log_seconds[std::size_t(p)]);
    sizes.push_back(std::int64_t(selection.programs.size()));
  }
  return {std::move(all.rows.values), std::move(all.begins), std::move(all.parents),
          Objective(loss, log_seconds, sizes)};
}

double rate_at(const PooledSettings& settings, std::int64_t step) {
  return settings.rate * 0.5 * (1 + std::cos(std::numbers::pi * double(step) / double(settings.steps)));
}

void train_in_batches(std::vector<float>& theta, std::span<const PreparedGroup> groups, const PooledSettings& settings,
                      Stage stage, const GradientOf& gradient_of, RunningMean* mean) {
  constexpr std::int64_t most_batches = 4;
  stage.steps = settings.steps;
  base::Team alone;
  base::Team& team = stage.team == nullptr ? alone : *stage.team;
  Adam adam(theta.size());
  std::vector<TrainedVector> changing = {{&theta, &adam}};
  if (mean != nullptr) changing.push_back({&mean->values, nullptr});
  run(stage, changing, [&](std::int64_t step) {
    base::Stream stream(stage.seed, stage.name, std::uint64_t(step));
    const std::vector<std::int64_t> drawn = stream.choose(std::int64_t(groups.size()), settings.groups_per_step);
    const std::int64_t batches = std::min<std::int64_t>(most_batches, std::int64_t(drawn.size()));
    std::vector<std::vector<Selection>> selections(static_cast<std::size_t>(batches));
    for (std::size_t i = 0; i < drawn.size(); ++i) {
      const PreparedGroup& group = groups[std::size_t(drawn[i])];
      selections[i % selections.size()].push_back(
          {&group, stream.choose(group.programs->programs(), settings.rows_per_step / std::int64_t(drawn.size()))});
    }
    // Over all groups that count: the sum of the loss by theta and of the loss, and how many they are.
    std::vector<float> total = base::summed(team, batches, stage.threads, [&](std::int64_t b) {
      const std::vector<Selection>& rows = selections[std::size_t(b)];
      Batch<float> batch = batch_of(settings.loss, rows);
      const auto counted = float(batch.objective.counted());
      std::vector<float> sum(theta.size());
      const float loss = gradient_of(rows, std::move(batch), step * most_batches + b, sum);
      for (float& value : sum) value *= counted;
      sum.push_back(loss * counted);
      sum.push_back(counted);
      return sum;
    });
    const float share = total.back() > 0 ? 1 / total.back() : 0;
    for (float& value : total) value *= share;
    const double rate = rate_at(settings, step);
    for (float& value : theta) value *= float(1 - rate * settings.decay);
    const std::span gradient(total.data(), theta.size());
    clip(gradient);
    adam.step(theta, gradient, rate);
    if (mean != nullptr) {
      // The plain mean over the first steps, so that the start does not linger.
      const double kept = std::min(mean->kept, double(step) / double(step + 1));
      for (std::size_t i = 0; i < theta.size(); ++i)
        mean->values[i] = float(kept * mean->values[i] + (1 - kept) * theta[i]);
    }
    return total[theta.size()];
  });
}

void train_pooled(const Network& network, std::vector<float>& theta, std::span<const PreparedGroup> groups,
                  const PooledSettings& settings, Stage stage) {
  const bool wants_loss = stage.record != nullptr;
  train_in_batches(theta, groups, settings, std::move(stage),
                   [&](std::span<const Selection>, const Batch<float>& batch, std::int64_t, std::span<float> gradient) {
                     float loss = 0;
                     loss_gradient<float>(network, theta, batch, gradient, wants_loss ? &loss : nullptr);
                     return loss;
                   });
}

base::Team& team_of(const LearnerSettings& settings) {
  static base::Team alone;
  return settings.team == nullptr ? alone : *settings.team;
}

Stage stage_of(const LearnerSettings& settings, std::string name, base::Monitor& monitor) {
  return {std::move(name), settings.seed, 0, settings.record, &monitor};
}

Stage shared_stage_of(const LearnerSettings& settings, std::string name, base::Monitor& monitor) {
  Stage stage = stage_of(settings, std::move(name), monitor);
  stage.team = settings.team;
  stage.threads = settings.threads;
  return stage;
}

NetworkShape fitting_shape(const NetworkShape& shape, std::span<const PreparedGroup> groups,
                           const LearnerSettings& settings, base::Monitor& monitor) {
  if (shape.kind != NetworkKind::mlp || shape.hidden.empty()) return shape;
  NetworkShape linear = shape;
  linear.hidden = {};
  std::vector<PlatformGroups> platforms = by_platform(groups);
  base::Stream(settings.seed, "platforms to fit").shuffle(platforms);
  platforms.resize(std::min<std::size_t>(platforms.size(), 3));
  double gain = 0;  // of the linear model, in rank correlation
  for (const PlatformGroups& platform : platforms) {
    std::vector<PreparedGroup> known;
    std::vector<Selection> left_out;
    for (std::size_t g = 0; g < platform.groups.size(); ++g) {
      const PreparedGroup& group = *platform.groups[g];
      const std::vector<std::int64_t> order =
          base::Stream(settings.seed, "rows to fit", g).choose(group.programs->programs(), group.programs->programs());
      const auto cut = std::ptrdiff_t(order.size() * 4 / 5);
      auto programs = features::chosen(*group.programs, {order.begin(), order.begin() + cut});
      known.push_back({group.platform, std::make_shared<const features::Encoded>(std::move(programs)), {}});
      for (std::ptrdiff_t i = 0; i < cut; ++i)
        known.back().log_seconds.push_back(group.log_seconds[order[std::size_t(i)]]);
      left_out.push_back({&group, {order.begin() + cut, order.end()}});
    }
    for (const NetworkShape* const tried : std::initializer_list<const NetworkShape*>{&linear, &shape}) {
      const auto network = make_network(*tried);
      std::vector<float> theta = initial_parameters(*tried, settings.seed);
      PooledSettings pooled;
      pooled.loss = Loss::squared;
      pooled.steps = settings.steps > 0 ? std::min<std::int64_t>(settings.steps, 200) : 200;
      train_pooled(
          *network, theta, known, pooled,
          stage_of(settings, fmt::format("choosing a shape on {}: {} layers", platform.platform, tried->hidden.size()),
                   monitor));
      for (const Selection& rows : left_out) {
        if (rows.programs.size() < 2) continue;
        const double quality = rank_correlation_of(*network, theta, rows);
        gain += tried == &linear ? quality : -quality;
      }
    }
  }
  return gain > 0 ? linear : shape;
}

double rank_correlation_of(const Network& network, std::span<const float> theta, const Selection& rows) {
  const features::Encoded programs = features::chosen(*rows.group->programs, rows.programs);
  std::vector<double> log_seconds;
  for (const std::int64_t p : rows.programs) log_seconds.push_back(rows.group->log_seconds[std::size_t(p)]);
  std::vector<float> scores(rows.programs.size());
  network.score(theta, inputs_of(programs), scores);
  return rank_correlation(scores, log_seconds);
}

std::vector<PlatformGroups> by_platform(std::span<const PreparedGroup> groups) {
  std::vector<PlatformGroups> out;
  for (const PreparedGroup& group : groups) {
    auto own =
        std::find_if(out.begin(), out.end(), [&](const auto& known) { return known.platform == group.platform; });
    if (own == out.end()) own = out.insert(out.end(), {group.platform, {}});
    own->groups.push_back(&group);
  }
  return out;
}

std::vector<std::size_t> platform_positions(std::span<const PreparedGroup> groups) {
  const std::vector<PlatformGroups> platforms = by_platform(groups);
  std::vector<std::size_t> out;
  for (const PreparedGroup& group : groups) {
    const auto own = std::find_if(platforms.begin(), platforms.end(),
                                  [&](const PlatformGroups& known) { return known.platform == group.platform; });
    out.push_back(std::size_t(own - platforms.begin()));
  }
  return out;
}

void require_groups(const TaskSet& tasks) {
  if (tasks.groups.empty())
    throw base::UserError("nothing to train on: no platform is left; give at least one dataset more");
  const bool comparable =
      std::any_of(tasks.groups.begin(), tasks.groups.end(), [](const Examples& group) { return group.size() >= 2; });
  if (!comparable)
    throw base::UserError(
        "nothing to train on: no workload has two programs on one platform, and only such are compared; measure more");
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
