// Learners that train a network through its own adaptation: MAML, FOMAML, ANIL, Reptile. They differ by a row of a
// table.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/parallel.h"
#include "meta/learners/adam.h"
#include "meta/learners/descents.h"
#include "meta/learners/inner_loop.h"
#include "meta/learners/learners.h"
#include "meta/learners/training.h"
#include "meta/models/models.h"

namespace graft::meta {
namespace {

struct MetaSettings {
  OuterRule rule = OuterRule::second_order;
  bool head_only = false;  // only the last layer adapts
  std::int64_t inner_steps = 5;
  double inner_rate = 0.1;        // at the start; all rules but Reptile's then learn rates per step and block
  std::int64_t warm_steps = 400;  // pooled training before: features first, then how to adapt them
  std::int64_t outer_steps = 250;
  double outer_rate = 3e-4;  // of Adam; for Reptile the share of the way, decaying to 0
  std::int64_t tasks_per_step = 4, groups_per_task = 4, query_rows = 32;
};

// A source platform with some of its workloads: support and query rows of each.
struct EpisodeBatches {
  Batch<float> support, query;
};

EpisodeBatches draw_task(const std::vector<std::vector<const PreparedGroup*>>& by_platform,
                         const MetaSettings& settings, base::Stream& stream) {
  const auto& own = by_platform[std::size_t(stream.below(std::int64_t(by_platform.size())))];
  const std::int64_t shots = episode_shots[std::size_t(stream.below(std::int64_t(std::size(episode_shots))))];
  std::vector<Selection> support, query;
  for (const std::int64_t g : stream.choose(std::int64_t(own.size()), settings.groups_per_task)) {
    const PreparedGroup& group = *own[std::size_t(g)];
    const std::int64_t cut = std::min(shots, group.programs.programs() / 2);
    const std::vector<std::int64_t> rows = stream.choose(group.programs.programs(), cut + settings.query_rows);
    support.push_back({&group, {rows.begin(), rows.begin() + cut}});
    query.push_back({&group, {rows.begin() + cut, rows.end()}});
  }
  return {batch_of(Loss::rank, support), batch_of(Loss::rank, query)};
}

class MetaGradientLearner final : public Learner {
 public:
  explicit MetaGradientLearner(const MetaSettings& settings) : meta_(settings) {}

  std::unique_ptr<CostModel> train(const TaskSet& tasks, const LearnerSettings& settings,
                                   base::Monitor& monitor) const override {
    NetworkState state = untrained_state(tasks, settings);
    const auto network = make_network(state.shape, settings.backend);
    const std::vector<PreparedGroup> groups = prepared(state.normalisation, tasks.groups);
    const std::vector<float> start = state.theta;
    const auto train_on = [&](std::span<const PreparedGroup> some, const std::string& name, std::int64_t share) {
      return meta_train(*network, start, some, settings, share, name, monitor);
    };
    state.adaptation.loss = Loss::rank;
    state.adaptation.descents = chosen_descents(
        *network, groups, Loss::rank, 1, settings.seed,
        [&](std::span<const PreparedGroup> others, const std::string& name) { return train_on(others, name, 2); });
    Trained trained = train_on(groups, "meta-training", 1);
    state.theta = std::move(trained.theta);
    state.adaptation.rates = std::move(trained.rates);
    return make_network_model(std::move(state));
  }

 private:
  // Pooled training, then outer steps; both shortened by `share`.
  Trained meta_train(const Network& network, const std::vector<float>& start, std::span<const PreparedGroup> groups,
                     const LearnerSettings& settings, std::int64_t share, const std::string& name,
                     base::Monitor& monitor) const {
    std::vector<std::vector<const PreparedGroup*>> by_platform;
    std::vector<std::string> names;
    for (const PreparedGroup& group : groups) {
      const auto found = std::find(names.begin(), names.end(), group.platform) - names.begin();
      if (found == std::ptrdiff_t(names.size())) {
        names.push_back(group.platform);
        by_platform.emplace_back();
      }
      by_platform[std::size_t(found)].push_back(&group);
    }
    Trained out{start, {}};
    PooledSettings pooled;
    pooled.steps = meta_.warm_steps / share;
    train_pooled(network, out.theta, groups, pooled, settings.seed, name + ", pooled", monitor);

    std::vector<float>& rates = out.rates;
    for (std::int64_t k = 0; k < meta_.inner_steps; ++k) {
      for (const ParameterBlock& block : network.layout()) {
        rates.push_back(meta_.head_only && !block.head ? 0.0f : float(meta_.inner_rate));
      }
    }
    Adam adam(out.theta.size()), rates_adam(rates.size());
    const std::int64_t outer_steps = ((settings.steps > 0 ? settings.steps : meta_.outer_steps) + share - 1) / share;
    for (std::int64_t step = 0; step < outer_steps; ++step) {
      check_stop(monitor);
      std::vector<MetaGradient<float>> parts(std::size_t(meta_.tasks_per_step));
      base::parallel_for(meta_.tasks_per_step, settings.threads, [&](std::int64_t t) {
        base::Stream stream(settings.seed, name, std::uint64_t(step * meta_.tasks_per_step + t));
        const EpisodeBatches task = draw_task(by_platform, meta_, stream);
        parts[std::size_t(t)] = meta_gradient<float>(network, meta_.rule, rates, out.theta, task.support, task.query);
      });
      // Summed in order, so that the number of threads changes nothing.
      std::vector<float> gradient(out.theta.size(), 0.0f), rates_gradient(rates.size(), 0.0f);
      const float weight = 1.0f / float(meta_.tasks_per_step);
      for (const MetaGradient<float>& part : parts) {
        for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] += weight * part.theta[i];
        for (std::size_t i = 0; i < rates.size(); ++i) rates_gradient[i] += weight * part.rates[i] * rates[i];
      }
      const double left = 1 - double(step) / double(outer_steps);
      if (meta_.rule == OuterRule::towards) {
        for (std::size_t i = 0; i < gradient.size(); ++i) out.theta[i] -= float(meta_.outer_rate * left) * gradient[i];
      } else {
        adam.step(out.theta, gradient, meta_.outer_rate * left);
        // On a logarithmic scale, so that rates stay positive; those that are 0 stay 0.
        std::vector<float> logs(rates.size());
        for (std::size_t i = 0; i < rates.size(); ++i) logs[i] = rates[i] > 0 ? std::log(rates[i]) : 0;
        rates_adam.step(logs, rates_gradient, 0.03 * left);
        for (std::size_t i = 0; i < rates.size(); ++i) rates[i] = rates[i] > 0 ? std::exp(logs[i]) : 0;
      }
      monitor.progress(name, step + 1, outer_steps);
    }
    return out;
  }

  MetaSettings meta_;
};

}  // namespace

std::unique_ptr<Learner> make_maml_learner() {
  return std::make_unique<MetaGradientLearner>(MetaSettings{});
}

std::unique_ptr<Learner> make_fomaml_learner() {
  MetaSettings settings;
  settings.rule = OuterRule::first_order;
  return std::make_unique<MetaGradientLearner>(settings);
}

std::unique_ptr<Learner> make_anil_learner() {
  MetaSettings settings;
  settings.head_only = true;
  return std::make_unique<MetaGradientLearner>(settings);
}

std::unique_ptr<Learner> make_reptile_learner() {
  MetaSettings settings;
  settings.rule = OuterRule::towards;
  settings.outer_rate = 0.5;
  return std::make_unique<MetaGradientLearner>(settings);
}

}  // namespace graft::meta
