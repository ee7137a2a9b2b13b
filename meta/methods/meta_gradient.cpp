#include "meta/methods/meta_gradient.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/team.h"
#include "meta/gradient/descents.h"
#include "meta/gradient/episodes.h"
#include "meta/gradient/inner_loop.h"
#include "meta/gradient/platform_heads.h"
#include "meta/gradient/synthetic_platforms.h"
#include "meta/gradient/training.h"
#include "meta/methods/network_model.h"
#include "meta/sources/training.h"

namespace graft::meta {
namespace {

constexpr std::int64_t context_size = 8;
// Learned rates move by this share of themselves in a step of Adam: a hundred times as fast as parameters, as there are
// few of them and 250 steps must be able to change them by a factor of ten.
constexpr double rates_share = 0.03;
// The weight of the losses after steps before the last one falls to this, and not to 0.
constexpr double least_step_weight = 0.03;

bool may_move(Adapts adapts, const ParameterBlock& block) {
  return adapts == Adapts::all || (adapts == Adapts::head ? block.head : block.context);
}

Rates<float> first_rates(const Network& network, const MetaSettings& settings) {
  Rates<float> out{settings.inner_steps, settings.rates == LearnedRates::per_parameter, {}};
  const std::int64_t sets = settings.rates == LearnedRates::per_step_and_block ? settings.inner_steps : 1;
  for (std::int64_t s = 0; s < sets; ++s) {
    for (const ParameterBlock& block : network.layout()) {
      const float rate = may_move(settings.adapts, block) ? float(settings.inner_rate) : 0.0f;
      out.values.insert(out.values.end(), out.per_parameter ? std::size_t(block.size) : 1, rate);
    }
  }
  return out;
}

// The largest curvature of the support's loss along what adapts, by power iteration: a gradient step of more than twice
// its inverse diverges. 0 without a support to compare.
double curvature_of(const Network& network, Adapts adapts, std::span<const float> theta, const Batch<float>& support) {
  std::vector<float> direction(theta.size(), 1.0f), product(theta.size());
  double out = 0;
  for (int k = 0; k < 8; ++k) {
    for (const ParameterBlock& block : network.layout()) {
      if (!may_move(adapts, block)) std::fill_n(direction.begin() + block.offset, block.size, 0.0f);
    }
    double squares = 0;
    for (const float value : direction) squares += double(value) * double(value);
    if (!(squares > 0) || !std::isfinite(squares)) return out;
    for (float& value : direction) value /= float(std::sqrt(squares));
    loss_hessian_product<float>(network, theta, support, direction, product);
    squares = 0;
    for (const float value : product) squares += double(value) * double(value);
    out = std::sqrt(squares);
    direction.swap(product);
  }
  return std::isfinite(out) ? out : 0;
}

// What the query's loss after each step counts, `progress` (0 .. 1) of the way through training.
std::vector<double> weights_of_steps(const MetaSettings& settings, double progress) {
  if (!settings.anneals || settings.inner_steps == 0) return {};
  const double each = std::max(least_step_weight, 1 - 2 * progress) / double(settings.inner_steps);
  std::vector<double> out(std::size_t(settings.inner_steps), each);
  out.back() = 1 - each * double(settings.inner_steps - 1);
  return out;
}

// Mixtures of what a forest for each source says. None for fewer than two platforms and for encodings that trees do not
// take.
SyntheticPlatforms synthetic_platforms(const TaskSet& tasks, std::span<const PreparedGroup> groups,
                                       const LearnerSettings& settings, base::Monitor& monitor) {
  if (tasks.encoding->shape == features::Shape::tree || platforms(tasks).size() < 2) return {};
  LearnerSettings trees = settings;
  trees.trees = true;
  trees.loss = Loss::squared;
  const SourceBasis basis = train_basis(tasks, trees, monitor);
  std::vector<std::string> names;
  for (const SourceBasis::Source& source : basis.sources) names.push_back(source.platform);
  std::vector<base::Matrix> predictions;
  for (const Examples& group : tasks.groups) predictions.push_back(basis.predict(group.features));
  return {in_equal_units(groups), std::move(names), std::move(predictions)};
}

class MetaGradientLearner final : public Learner {
 public:
  explicit MetaGradientLearner(const MetaSettings& settings) : meta_(settings) {}

  std::unique_ptr<CostModel> train(const TaskSet& tasks, const LearnerSettings& settings,
                                   base::Monitor& monitor) const override {
    NetworkState state = untrained_state(tasks, settings);
    const NetworkShape plain = state.shape;
    if (meta_.adapts == Adapts::context || meta_.adapts == Adapts::code) {
      state.shape.context = {context_size, meta_.adapts == Adapts::code};
      state.theta = initial_parameters(state.shape, settings.seed);
    }
    const auto network = make_network(state.shape);
    const std::vector<PreparedGroup> groups = prepared(state.normalisation, tasks.groups);
    const SyntheticPlatforms synthetic = synthetic_platforms(tasks, groups, settings, monitor);
    const auto train_on = [&](std::span<const PreparedGroup> some, const std::string& name, std::int64_t share) {
      return meta_train(plain, *network, state.theta, some, synthetic.only(some), settings, share, name, monitor);
    };
    state.adaptation.loss = loss_of(settings);
    state.adaptation.descents = chosen_descents(
        *network, groups, state.adaptation.loss, false, 1, settings,
        [&](std::span<const PreparedGroup> others, const std::string& name) { return train_on(others, name, 2); });
    Trained trained = train_on(groups, "meta-training", 1);
    state.theta = std::move(trained.theta);
    state.adaptation.rates = std::move(trained.rates);
    return make_network_model(std::move(state));
  }

 private:
  static Loss loss_of(const LearnerSettings& settings) { return settings.loss.value_or(Loss::squared); }

  // The largest curvature of the tasks of a first step, which bounds the rates.
  double most_curved(const Network& network, const std::vector<float>& theta,
                     const std::vector<PlatformGroups>& platforms, const LearnerSettings& settings,
                     const std::string& name) const {
    double curvature = 0;
    for (std::int64_t t = 0; t < meta_.tasks_per_step; ++t) {
      base::Stream stream(settings.seed, name + ", curvature", std::uint64_t(t));
      const auto task = batches_of(loss_of(settings), draw_episode(platforms, shots_of_step(0), stream));
      curvature = std::max(curvature, curvature_of(network, meta_.adapts, theta, task.support));
    }
    return curvature;
  }

  // An episode of a platform, or of a synthetic one half of the time if there are any.
  Episode<Batch<float>> drawn(const std::vector<PlatformGroups>& platforms, const SyntheticPlatforms& synthetic,
                              std::int64_t step, const LearnerSettings& settings, base::Stream& stream) const {
    std::vector<PreparedGroup> mixed;
    if (!synthetic.empty() && stream.below(2) == 0) mixed = synthetic.draw(stream);
    return batches_of(loss_of(settings),
                      draw_episode(mixed.empty() ? platforms : by_platform(mixed), shots_of_step(step), stream));
  }

  // Training with heads, then outer steps; both shortened by `share`. plain: the network without its context, whose
  // parameters come before the plain one's; start: they are those of the context at first.
  Trained meta_train(const NetworkShape& plain, const Network& network, const std::vector<float>& start,
                     std::span<const PreparedGroup> measured, const SyntheticPlatforms& synthetic,
                     const LearnerSettings& settings, std::int64_t share, const std::string& name,
                     base::Monitor& monitor) const {
    const std::vector<PreparedGroup> groups = in_equal_units(measured);
    const std::vector<PlatformGroups> platforms = by_platform(groups);
    Trained out{start, first_rates(network, meta_)};
    HeadsSettings heads;
    heads.batches.loss = loss_of(settings);
    heads.batches.steps = ((settings.steps > 0 ? settings.steps : heads_steps(groups)) + share - 1) / share;
    const std::vector<float> warm =
        train_platform_heads(plain, settings.seed, groups, heads, shared_stage_of(settings, name + ", heads", monitor));
    std::copy(warm.begin(), warm.end(), out.theta.end() - std::ptrdiff_t(warm.size()));

    std::vector<float>& rates = out.rates.values;
    const double curvature = most_curved(network, out.theta, platforms, settings, name);
    for (float& rate : rates) rate = std::min(rate, float(1 / std::max(curvature, 1e-6)));
    const ByRates learns_rates = meta_.rates == LearnedRates::none ? ByRates::no : ByRates::yes;
    Adam adam(out.theta.size()), rates_adam(rates.size());
    Stage stage = shared_stage_of(settings, name, monitor);
    stage.steps = ((settings.steps > 0 ? settings.steps : meta_.outer_steps) + share - 1) / share;
    const TrainedVector changing[] = {{&out.theta, &adam}, {&rates, &rates_adam}};
    run(stage, changing, [&](std::int64_t step) {
      const double progress = double(step) / double(stage.steps), left = 1 - progress;
      const OuterRule rule = meta_.anneals && progress < 0.3 ? OuterRule::first_order : meta_.rule;
      const std::vector<double> step_weights = weights_of_steps(meta_, progress);
      // The mean over tasks: by theta, by the rates, and of the loss.
      std::vector<float> mean =
          base::summed(team_of(settings), meta_.tasks_per_step, settings.threads, [&](std::int64_t t) {
            base::Stream stream(settings.seed, name, std::uint64_t(step * meta_.tasks_per_step + t));
            const Episode<Batch<float>> task = drawn(platforms, synthetic, step, settings, stream);
            MetaGradient<float> part = meta_gradient<float>(network, rule, out.rates, out.theta, task.support,
                                                            task.query, step_weights, learns_rates);
            part.theta.insert(part.theta.end(), part.rates.begin(), part.rates.end());
            part.theta.push_back(part.query_loss);
            return std::move(part.theta);
          });
      for (float& value : mean) value /= float(meta_.tasks_per_step);
      const std::span gradient(mean.data(), out.theta.size());
      const std::span by_rates = std::span(mean).subspan(gradient.size(), mean.size() - gradient.size() - 1);
      const float loss = mean.back();
      for (const ParameterBlock& block : network.layout()) {  // a context begins at 0 for every task
        if (block.context) std::fill_n(gradient.begin() + block.offset, block.size, 0.0f);
      }
      // A task whose inner steps diverged teaches nothing.
      if (!std::all_of(mean.begin(), mean.end(), [](float value) { return std::isfinite(value); })) return loss;
      if (rule == OuterRule::towards) {
        for (std::size_t i = 0; i < gradient.size(); ++i) out.theta[i] -= float(meta_.outer_rate * left) * gradient[i];
        return loss;
      }
      clip(gradient);
      adam.step(out.theta, gradient, meta_.outer_rate * left);
      move_rates(network, rates_adam, rates, by_rates, left);
      return loss;
    });
    return out;
  }

  // Rates that are 0 for what does not adapt stay 0.
  void move_rates(const Network& network, Adam& adam, std::vector<float>& rates, std::span<float> gradient,
                  double left) const {
    if (meta_.rates == LearnedRates::none) return;
    if (meta_.rates == LearnedRates::per_parameter) {
      for (const ParameterBlock& block : network.layout()) {
        if (!may_move(meta_.adapts, block)) std::fill_n(gradient.begin() + block.offset, block.size, 0.0f);
      }
      adam.step(rates, gradient, rates_share * meta_.inner_rate * left);
      return;
    }
    std::vector<float> logs(rates.size());
    for (std::size_t i = 0; i < rates.size(); ++i) {
      logs[i] = rates[i] > 0 ? std::log(rates[i]) : 0;
      gradient[i] *= rates[i];
    }
    adam.step(logs, gradient, rates_share * left);
    for (std::size_t i = 0; i < rates.size(); ++i) rates[i] = rates[i] > 0 ? std::exp(logs[i]) : 0;
  }

  MetaSettings meta_;
};

}  // namespace

std::vector<MethodSetting> settings_of(const MetaSettings& usual) {
  return {
      {"inner_steps", "gradient steps of an adaptation", double(usual.inner_steps), 1, 1000},
      {"inner_rate", "of these steps, at the start of training", usual.inner_rate, 1e-6, 1e3, false},
      {"outer_steps", "of meta-training", double(usual.outer_steps), 1, 1e6},
      {"outer_rate", "of Adam, or the share of the way to the adapted network; decays to 0", usual.outer_rate, 1e-9, 10,
       false},
      {"tasks", "that an outer step takes the mean of", double(usual.tasks_per_step), 1, 1000},
  };
}

MetaSettings with_values(MetaSettings settings, const MethodValues& values) {
  settings.inner_steps = std::int64_t(values.at("inner_steps"));
  settings.inner_rate = values.at("inner_rate");
  settings.outer_steps = std::int64_t(values.at("outer_steps"));
  settings.outer_rate = values.at("outer_rate");
  settings.tasks_per_step = std::int64_t(values.at("tasks"));
  return settings;
}

std::unique_ptr<Learner> make_meta_gradient_learner(const MetaSettings& settings) {
  return std::make_unique<MetaGradientLearner>(settings);
}

}  // namespace graft::meta
