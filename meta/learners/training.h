// What the learners share: normalised groups, mini-batches of them, and the training of one network on pooled groups.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/monitor.h"
#include "base/random.h"
#include "meta/learner.h"
#include "meta/models/adaptation.h"
#include "meta/models/models.h"

namespace graft::meta {

// Groups of a task set with their features normalised once.
struct PreparedGroup {
  std::string platform;
  features::Encoded programs;  // normalised
  std::vector<double> log_seconds;
};
std::vector<PreparedGroup> prepared(const Normalisation& normalisation, std::span<const Examples> groups);

// Some programs of some groups.
struct Selection {
  const PreparedGroup* group = nullptr;
  std::vector<std::int64_t> programs;
};
Batch<float> batch_of(Loss loss, std::span<const Selection> selections);

struct PooledSettings {
  Loss loss = Loss::rank;
  std::int64_t steps = 0;
  double rate = 3e-3;  // Adam, decaying to 0 along half a cosine
  double decay = 0.3;  // of the parameters, per step and unit of rate (Loshchilov and Hutter 2019)
  std::int64_t groups_per_step = 8, rows_per_step = 512;
};
// Trains on all groups alike. `name` tells streams of random numbers apart. Throws Failure when the monitor asks to
// stop.
void train_pooled(const Network& network, std::vector<float>& theta, std::span<const PreparedGroup> groups,
                  const PooledSettings& settings, std::uint64_t seed, std::string_view name, base::Monitor& monitor);

// Failure "stopped by request" if the monitor asks for it.
void check_stop(base::Monitor& monitor);
// UserError when a task set has no groups to learn from.
void require_groups(const TaskSet& tasks);
// The network of the settings for the tasks' encoding. UserError as check_fits.
NetworkShape network_shape(const TaskSet& tasks, const LearnerSettings& settings);
// What a network learner starts from: normalisation of the tasks, and seeded parameters. UserError as both.
NetworkState untrained_state(const TaskSet& tasks, const LearnerSettings& settings);

// Support sizes for which adaptation is chosen and episodes are drawn: the default grid of shots.
inline constexpr std::int64_t episode_shots[] = {5, 10, 20, 32};

}  // namespace graft::meta
