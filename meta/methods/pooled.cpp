#include "meta/methods/pooled.h"

#include "meta/gradient/descents.h"
#include "meta/gradient/training.h"
#include "meta/methods/network_model.h"

namespace graft::meta {
namespace {

constexpr std::int64_t default_steps = 800;

class PooledLearner final : public Learner {
 public:
  explicit PooledLearner(bool head_only) : head_only_(head_only) {}
  std::unique_ptr<CostModel> train(const TaskSet& tasks, const LearnerSettings& settings,
                                   base::Monitor& monitor) const override {
    NetworkState state = untrained_state(tasks, settings);
    const auto network = make_network(state.shape, settings.backend);
    const std::vector<PreparedGroup> groups = prepared(state.normalisation, tasks.groups);
    PooledSettings pooled;
    pooled.steps = settings.steps > 0 ? settings.steps : default_steps;
    pooled.loss = settings.loss.value_or(Loss::rank);
    state.adaptation.loss = pooled.loss;
    state.adaptation.head_only = head_only_;
    state.adaptation.descents = chosen_descents(*network, groups, pooled.loss, head_only_, 2, settings,
                                                [&](std::span<const PreparedGroup> others, const std::string& name) {
                                                  PooledSettings shorter = pooled;
                                                  shorter.steps = (pooled.steps + 1) / 2;
                                                  Trained trained{state.theta, {}};
                                                  train_pooled(*network, trained.theta, others, shorter,
                                                               shared_stage_of(settings, name, monitor));
                                                  return trained;
                                                });
    train_pooled(*network, state.theta, groups, pooled, shared_stage_of(settings, "pooled training", monitor));
    return make_network_model(std::move(state));
  }

 private:
  bool head_only_;  // in fine-tuning
};

}  // namespace

std::unique_ptr<Learner> make_pooled_learner() {
  return std::make_unique<PooledLearner>(false);
}

std::unique_ptr<Learner> make_pooled_head_learner() {
  return std::make_unique<PooledLearner>(true);
}

}  // namespace graft::meta
