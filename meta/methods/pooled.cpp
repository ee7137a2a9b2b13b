#include "meta/methods/pooled.h"

#include "meta/gradient/descents.h"
#include "meta/gradient/platform_heads.h"
#include "meta/gradient/training.h"
#include "meta/methods/network_model.h"

namespace graft::meta {
namespace {

class PooledLearner final : public Learner {
 public:
  explicit PooledLearner(bool head_only) : head_only_(head_only) {}
  std::unique_ptr<CostModel> train(const TaskSet& tasks, const LearnerSettings& settings,
                                   base::Monitor& monitor) const override {
    NetworkState state = untrained_state(tasks, settings);
    const auto network = make_network(state.shape);
    const std::vector<PreparedGroup> groups = prepared(state.normalisation, tasks.groups);
    HeadsSettings heads;
    heads.batches.loss = settings.loss.value_or(Loss::squared);
    heads.batches.steps = settings.steps > 0 ? settings.steps : heads_steps(groups);
    const auto train_on = [&](std::span<const PreparedGroup> some, std::int64_t share, const std::string& name) {
      HeadsSettings shorter = heads;
      shorter.batches.steps = (heads.batches.steps + share - 1) / share;
      return train_platform_heads(state.shape, settings.seed, some, shorter,
                                  shared_stage_of(settings, name, monitor));
    };
    state.adaptation.loss = heads.batches.loss;
    state.adaptation.head_only = head_only_;
    state.adaptation.descents = chosen_descents(*network, groups, heads.batches.loss, head_only_, 2, settings,
                                                [&](std::span<const PreparedGroup> others, const std::string& name) {
                                                  return Trained{train_on(others, 2, name), {}};
                                                });
    state.theta = train_on(groups, 1, "pooled training");
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
