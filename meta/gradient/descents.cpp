#include "meta/gradient/descents.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/team.h"
#include "meta/episode.h"

namespace graft::meta {
namespace {

// The grid that fine-tuning is chosen from, and the default without a second platform to choose on.
struct Way {
  double rate;
  bool adam;
};
constexpr std::array<Way, 6> descent_ways = {
    {{0.03, false}, {0.1, false}, {0.3, false}, {3e-4, true}, {1e-3, true}, {3e-3, true}}};
constexpr std::array<std::int64_t, 7> descent_steps = {0, 3, 6, 12, 24, 48, 96};
constexpr std::array<std::int64_t, 3> descent_shots = {5, 20, 64};
constexpr Adaptation::Descent default_descent = {20, 24, 0.1f, false};

Adaptation::Descent descent_of(std::int64_t shots, std::int64_t steps, const Way& way) {
  return {shots, steps, float(way.rate), way.adam};
}

// Mean rank correlation over groups of the network's scores on some rows.
double quality(const Network& network, std::span<const float> theta, std::span<const Selection> query) {
  double sum = 0;
  for (const Selection& selection : query) sum += rank_correlation_of(network, theta, selection);
  return sum / double(query.size());
}

using Table =
    std::array<std::array<std::array<double, descent_steps.size()>, descent_ways.size()>, descent_shots.size()>;

// Fine-tunes on draws of support from one platform that was not seen in training; adds up the quality on other rows.
void try_descents(const Network& network, const Trained& trained, std::span<const PreparedGroup> held_out, Loss loss,
                  bool head_only, const LearnerSettings& settings, Table& quality_sums) {
  constexpr std::int64_t draws = 2, query_rows = 100;
  constexpr auto shots = std::int64_t(descent_shots.size()), steps = std::int64_t(descent_steps.size());
  const auto one_draw = [&](std::int64_t number) {
    const std::size_t shot = std::size_t(number % shots);
    base::Stream stream(settings.seed, "fine-tuning trial", std::uint64_t(number / shots));
    Episode<std::vector<Selection>> episode;
    for (const PreparedGroup& group : held_out) {
      auto rows = episode_of(stream.choose(group.programs->programs(), group.programs->programs()), descent_shots[shot],
                             query_rows);
      episode.support.push_back({&group, std::move(rows.support)});
      episode.query.push_back({&group, std::move(rows.query)});
    }
    const Batch<float> batch = batch_of(loss, episode.support);
    const std::vector<float> start = adapt<float>(network, trained.rates, trained.theta, batch);
    const auto before = float(quality(network, start, episode.query));
    std::vector<float> qualities;  // rate by rate, at each number of steps
    for (const Way& way : descent_ways) {
      qualities.push_back(before);
      std::vector<float> moved = start;
      std::size_t next = 1;
      descend(network, moved, batch, descent_of(descent_shots[shot], descent_steps.back(), way), head_only,
              [&](std::int64_t k) {
                if (next >= descent_steps.size() || k != descent_steps[next]) return;
                qualities.push_back(float(quality(network, moved, episode.query)));
                ++next;
              });
    }
    return qualities;
  };
  const auto all = base::divided(team_of(settings), shots * draws, settings.threads, one_draw);
  for (std::size_t number = 0; number < all.size(); ++number) {
    for (std::size_t i = 0; i < all[number].size(); ++i)
      quality_sums[number % std::size_t(shots)][i / std::size_t(steps)][i % std::size_t(steps)] += all[number][i];
  }
}

}  // namespace

std::vector<Adaptation::Descent> chosen_descents(
    const Network& network, std::span<const PreparedGroup> groups, Loss loss, bool head_only, std::size_t folds,
    const LearnerSettings& settings,
    const std::function<Trained(std::span<const PreparedGroup>, const std::string&)>& train) {
  std::vector<std::string> names;
  for (const PlatformGroups& platform : by_platform(groups)) names.push_back(platform.platform);
  if (names.size() < 2) return {default_descent};
  base::Stream(settings.seed, "left-out platforms").shuffle(names);
  names.resize(std::min(names.size(), folds));
  Table sums{};
  for (const std::string& name : names) {
    std::vector<PreparedGroup> held_out, others;
    for (const PreparedGroup& group : groups) (group.platform == name ? held_out : others).push_back(group);
    try_descents(network, train(others, "choosing fine-tuning without " + name), held_out, loss, head_only, settings,
                 sums);
  }
  std::vector<Adaptation::Descent> chosen;
  for (std::size_t s = 0; s < descent_shots.size(); ++s) {
    Adaptation::Descent best = descent_of(descent_shots[s], 0, descent_ways[0]);
    double most = sums[s][0][0];
    for (std::size_t r = 0; r < descent_ways.size(); ++r) {
      for (std::size_t k = 0; k < descent_steps.size(); ++k) {
        if (sums[s][r][k] > most) {
          most = sums[s][r][k];
          best = descent_of(descent_shots[s], descent_steps[k], descent_ways[r]);
        }
      }
    }
    chosen.push_back(best);
  }
  return chosen;
}

}  // namespace graft::meta
