#include "meta/methods/network_scratch.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "base/text.h"
#include "meta/gradient/training.h"
#include "meta/methods/network_model.h"
#include "meta/state.h"

namespace graft::meta {
namespace {

// The cost limit of one fit: a round of a search waits for it. Total programs seen, and per step.
constexpr std::int64_t mlp_steps = 400, mlp_rows = 256;
constexpr std::int64_t treegru_steps = 250, treegru_rows = 128;

struct Untrained {
  NetworkShape shape;
  Loss loss = Loss::rank;
  std::int64_t steps = 0;  // 0: as many as its kind takes
  std::uint64_t seed = 1;
  int threads = 1;  // changes nothing but the time
};

class NetworkScratchModel final : public CostModel {
 public:
  explicit NetworkScratchModel(Untrained state) : state_(std::move(state)) {}

  Scores score(const features::Encoded& programs) const override {
    return certain(std::vector<float>(std::size_t(programs.programs()), 0.0f));
  }

  std::unique_ptr<CostModel> fitted(std::span<const Examples> support) const override {
    std::vector<Examples> groups;
    for (const Examples& group : support) {
      if (group.size() > 1) groups.push_back(group);
    }
    if (groups.empty()) return clone();
    NetworkState network{state_.shape, fit_normalisation(groups), initial_parameters(state_.shape, state_.seed), {}};
    network.adaptation.loss = state_.loss;
    const bool tree = state_.shape.kind == NetworkKind::treegru;
    PooledSettings pooled;
    pooled.loss = state_.loss;
    pooled.steps = state_.steps > 0 ? state_.steps : tree ? treegru_steps : mlp_steps;
    pooled.rows_per_step = tree ? treegru_rows : mlp_rows;
    base::Monitor unheard;  // of a fit that takes seconds
    Stage stage{"from scratch", state_.seed, 0, nullptr, &unheard, nullptr, state_.threads};
    train_pooled(*make_network(state_.shape), network.theta, prepared(network.normalisation, groups), pooled, stage);
    return make_network_model(std::move(network));
  }

  std::unique_ptr<CostModel> clone() const override { return std::make_unique<NetworkScratchModel>(*this); }
  bool is_informed() const override { return false; }
  bool takes(const features::Encoding& encoding) const override { return meta::takes(state_.shape, encoding); }
  std::string_view kind() const override { return "network-scratch"; }
  base::Arrays state() const override {
    base::Arrays out;
    put(state_.shape, out);
    put_integers(out, "plan", {state_.shape.inputs, state_.steps});
    out.attributes["loss"] = name_of(state_.loss);
    out.attributes["seed"] = base::to_hex(state_.seed);
    return out;
  }

 private:
  Untrained state_;
};

class NetworkScratchLearner final : public Learner {
 public:
  std::unique_ptr<CostModel> train(const TaskSet& tasks, const LearnerSettings& settings,
                                   base::Monitor&) const override {
    return std::make_unique<NetworkScratchModel>(Untrained{network_shape(tasks, settings),
                                                           settings.loss.value_or(Loss::rank), settings.steps,
                                                           settings.seed, settings.threads});
  }
};

}  // namespace

std::unique_ptr<CostModel> network_scratch_model_from(const base::Arrays& state) {
  const std::vector<std::int64_t> plan = integers_of(state, "plan", 0);
  if (plan.size() != 2 || plan[0] < 1) throw base::UserError("array 'plan': expected inputs and steps");
  return std::make_unique<NetworkScratchModel>(Untrained{scoring_shape_from(state, plan[0]),
                                                         loss_named(attribute_of(state, "loss")), plan[1],
                                                         base::from_hex(attribute_of(state, "seed"))});
}

std::unique_ptr<Learner> make_network_scratch_learner() {
  return std::make_unique<NetworkScratchLearner>();
}

}  // namespace graft::meta
