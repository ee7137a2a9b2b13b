// Shared by the learners: normalised groups, mini-batches of them, and the training of one network on pooled groups.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/monitor.h"
#include "base/random.h"
#include "meta/gradient/adaptation.h"
#include "meta/gradient/stage.h"
#include "meta/learner.h"

namespace graft::meta {

// Groups of a task set with their features normalised once.
struct PreparedGroup {
  std::string platform;
  std::shared_ptr<const features::Encoded> programs;  // normalised; copies of the group share them
  std::vector<double> log_seconds;
};
std::vector<PreparedGroup> prepared(const Normalisation& normalisation, std::span<const Examples> groups);

// Some programs of some groups.
struct Selection {
  const PreparedGroup* group = nullptr;
  std::vector<std::int64_t> programs;
};
Batch<float> batch_of(Loss loss, std::span<const Selection> selections);

// Rank correlation of the network's scores with the measured speeds.
double rank_correlation_of(const Network& network, std::span<const float> theta, const Selection& rows);

struct PooledSettings {
  Loss loss = Loss::rank;
  std::int64_t steps = 0;
  double rate = 3e-3;  // Adam, decaying to 0 along half a cosine
  double decay = 0.3;  // of the parameters, per step and unit of rate (Loshchilov and Hutter 2019)
  std::int64_t groups_per_step = 8, rows_per_step = 512;
};
double rate_at(const PooledSettings& settings, std::int64_t step);

// What trainings on drawn batches share: each step draws rows of some groups in a few batches, and moves theta along
// the mean over groups. gradient_of: writes the mean gradient over a batch's groups and returns their mean loss;
// `number` differs for each batch of a training. stage.name distinguishes streams of random numbers, stage.steps is
// ignored. The result is the same for any number of threads and ranks: the groups of a step are always cut into the
// same batches.
using GradientOf = std::function<float(std::span<const Selection> rows, Batch<float> batch, std::int64_t number,
                                       std::span<float> gradient)>;
struct RunningMean {
  std::vector<float> values;
  double kept = 0;  // share that stays in a step
};
// mean: of theta after each step, if wanted.
void train_in_batches(std::vector<float>& theta, std::span<const PreparedGroup> groups, const PooledSettings& settings,
                      Stage stage, const GradientOf& gradient_of, RunningMean* mean = nullptr);

// Trains on all groups alike.
void train_pooled(const Network& network, std::vector<float>& theta, std::span<const PreparedGroup> groups,
                  const PooledSettings& settings, Stage stage);

// How the tasks are shared.
base::Team& team_of(const LearnerSettings& settings);

// A stage of a training with these settings: alone, one of several in parallel, or with all threads and
// ranks.
Stage stage_of(const LearnerSettings& settings, std::string name, base::Monitor& monitor);
Stage shared_stage_of(const LearnerSettings& settings, std::string name, base::Monitor& monitor);

// The shape itself, or that of a linear model if this ranks left-out programs better: hidden layers
// overfit few programs, or features of a table. Judged on up to three platforms; an MLP's choice only.
NetworkShape fitting_shape(const NetworkShape& shape, std::span<const PreparedGroup> groups,
                           const LearnerSettings& settings, base::Monitor& monitor);

// The groups of each platform, in order of first occurrence.
struct PlatformGroups {
  std::string platform;
  std::vector<const PreparedGroup*> groups;
};
std::vector<PlatformGroups> by_platform(std::span<const PreparedGroup> groups);
// By group: the position of its platform there.
std::vector<std::size_t> platform_positions(std::span<const PreparedGroup> groups);
// UserError if a task set has no group of two programs or more: only programs of one group are compared.
void require_groups(const TaskSet& tasks);
// The network of the settings for the tasks' encoding. UserError as check_fits.
NetworkShape network_shape(const TaskSet& tasks, const LearnerSettings& settings);
// The start of a network learner: normalisation of the tasks, and seeded parameters. UserError as both.
NetworkState untrained_state(const TaskSet& tasks, const LearnerSettings& settings);

}  // namespace graft::meta
