#include "meta/gradient/platform_heads.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>
#include <numeric>

#include "base/team.h"

namespace graft::meta {
namespace {

// Root mean square of a platform's labels, centred by group; 1 if they do not vary.
double spread_of(const PlatformGroups& platform) {
  double squares = 0;
  std::int64_t rows = 0;
  for (const PreparedGroup* const group : platform.groups) {
    const std::vector<double>& labels = group->log_seconds;
    const double mean = std::accumulate(labels.begin(), labels.end(), 0.0) / double(labels.size());
    for (const double label : labels) squares += (label - mean) * (label - mean);
    rows += std::int64_t(labels.size());
  }
  return squares > 0 ? std::sqrt(squares / double(rows)) : 1;
}

std::size_t place_of(const std::vector<PlatformGroups>& platforms, const PreparedGroup& group) {
  const auto own = std::find_if(platforms.begin(), platforms.end(),
                                [&](const PlatformGroups& known) { return known.platform == group.platform; });
  return std::size_t(own - platforms.begin());
}

// Replaces inputs by 0, their mean, and stretches the others so that sums keep their mean.
void hide_inputs(std::vector<float>& x, double share, base::Stream& stream) {
  if (share <= 0) return;
  const auto threshold = std::uint64_t(share * 65536);
  const auto stretch = float(1 / (1 - share));
  for (std::size_t i = 0; i < x.size(); i += 4) {
    std::uint64_t bits = stream.bits();
    for (std::size_t j = i; j < std::min(i + 4, x.size()); ++j, bits >>= 16)
      x[j] = (bits & 65535) < threshold ? 0 : x[j] * stretch;
  }
}

}  // namespace

std::vector<PreparedGroup> in_equal_units(std::span<const PreparedGroup> groups) {
  const std::vector<PlatformGroups> platforms = by_platform(groups);
  std::vector<double> spreads;
  for (const PlatformGroups& platform : platforms) spreads.push_back(spread_of(platform));
  const double usual = std::accumulate(spreads.begin(), spreads.end(), 0.0) / double(spreads.size());
  std::vector<PreparedGroup> out(groups.begin(), groups.end());
  for (PreparedGroup& group : out) {
    for (double& label : group.log_seconds) label *= usual / spreads[place_of(platforms, group)];
  }
  return out;
}

std::int64_t heads_steps(std::span<const PreparedGroup> groups) {
  std::int64_t rows = 0;
  for (const PreparedGroup& group : groups) rows += group.programs->programs();
  return std::clamp<std::int64_t>(rows * 170 / 512, 100, 4000);
}

std::vector<float> train_platform_heads(const NetworkShape& shape, std::string_view backend, std::uint64_t seed,
                                        std::span<const PreparedGroup> groups, const HeadsSettings& settings,
                                        Stage stage) {
  constexpr std::int64_t most_parts = 4;
  assert(shape.outputs == 1);
  const std::vector<PlatformGroups> platforms = by_platform(groups);
  NetworkShape many = shape;
  many.outputs = std::int64_t(platforms.size());
  const auto heads = std::size_t(many.outputs);
  const auto network = make_network(many, backend);
  const std::vector<PreparedGroup> scaled = in_equal_units(groups);
  std::vector<std::size_t> head_of;
  for (const PreparedGroup& group : groups) head_of.push_back(place_of(platforms, group));
  std::vector<float> theta = initial_parameters(many, seed), mean = theta;
  stage.steps = settings.steps;
  base::Team alone;
  base::Team& team = stage.team == nullptr ? alone : *stage.team;
  Adam adam(theta.size());
  const Changing changing[] = {{&theta, &adam}, {&mean, nullptr}};
  run(stage, changing, [&](std::int64_t step) {
    base::Stream stream(stage.seed, stage.name, std::uint64_t(step));
    const std::vector<std::int64_t> drawn = stream.choose(std::int64_t(scaled.size()), settings.groups_per_step);
    const std::int64_t parts = std::min<std::int64_t>(most_parts, std::int64_t(drawn.size()));
    std::vector<std::vector<Selection>> selections(static_cast<std::size_t>(parts));
    std::vector<std::vector<std::size_t>> heads_of_rows(selections.size());
    for (std::size_t i = 0; i < drawn.size(); ++i) {
      const PreparedGroup& group = scaled[std::size_t(drawn[i])];
      const std::size_t part = i % selections.size();
      selections[part].push_back(
          {&group, stream.choose(group.programs->programs(), settings.rows_per_step / std::int64_t(drawn.size()))});
      heads_of_rows[part].insert(heads_of_rows[part].end(), selections[part].back().programs.size(),
                                 head_of[std::size_t(drawn[i])]);
    }
    // Over all groups that count: the sum of the loss by theta and of the loss, and how many they are.
    std::vector<float> total = base::summed(team, parts, stage.threads, [&](std::int64_t part) {
      Batch<float> batch = batch_of(settings.loss, selections[std::size_t(part)]);
      base::Stream noise(stage.seed, stage.name + ", hidden inputs", std::uint64_t(step * most_parts + part));
      hide_inputs(batch.x, settings.hidden, noise);
      const std::vector<std::size_t>& own = heads_of_rows[std::size_t(part)];
      std::vector<float> all(own.size() * heads), scores(own.size()), by_scores(own.size()), by_all(all.size(), 0.0f),
          sum(theta.size());
      const auto tape = network->forward(theta, batch.inputs(), all);
      for (std::size_t r = 0; r < own.size(); ++r) scores[r] = all[r * heads + own[r]];
      batch.objective.gradient<float>(scores, by_scores);
      for (std::size_t r = 0; r < own.size(); ++r) by_all[r * heads + own[r]] = by_scores[r];
      network->backward(theta, *tape, by_all, sum);
      const auto counted = float(batch.objective.counted());
      for (float& value : sum) value *= counted;
      sum.push_back(stage.record == nullptr ? 0.0f : batch.objective.value<float>(scores) * counted);
      sum.push_back(counted);
      return sum;
    });
    const float share = total.back() > 0 ? 1 / total.back() : 0;
    for (float& value : total) value *= share;
    const double rate = settings.rate * 0.5 * (1 + std::cos(std::numbers::pi * double(step) / double(settings.steps)));
    for (float& value : theta) value *= float(1 - rate * settings.decay);
    const std::span gradient(total.data(), theta.size());
    clip(gradient);
    adam.step(theta, gradient, rate);
    // The plain mean over the first steps, so that the start does not linger.
    const double kept = std::min(settings.average, double(step) / double(step + 1));
    for (std::size_t i = 0; i < theta.size(); ++i) mean[i] = float(kept * mean[i] + (1 - kept) * theta[i]);
    return total[theta.size()];
  });

  // The mean of the heads: the last weight is width x heads, the last bias heads.
  const std::vector<ParameterBlock> blocks = layout_of(many);
  const ParameterBlock &weight = blocks[blocks.size() - 2], &bias = blocks.back();
  std::vector<float> out(mean.begin(), mean.begin() + weight.offset);
  for (const ParameterBlock* const block : {&weight, &bias}) {
    for (std::int64_t i = 0; i < block->size; i += many.outputs) {
      const auto first = mean.begin() + block->offset + i;
      out.push_back(std::accumulate(first, first + many.outputs, 0.0f) / float(many.outputs));
    }
  }
  return out;
}

}  // namespace graft::meta
