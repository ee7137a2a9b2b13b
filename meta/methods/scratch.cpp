#include "meta/methods/scratch.h"

#include "meta/methods/kernel_model.h"

namespace graft::meta {

namespace {

class ScratchLearner final : public Learner {
 public:
  std::unique_ptr<CostModel> train(const TaskSet& tasks, const LearnerSettings&, base::Monitor&) const override {
    return make_scratch_model(std::int64_t(tasks.encoding->features.size()));
  }
};

}  // namespace

std::unique_ptr<Learner> make_scratch_learner() {
  return std::make_unique<ScratchLearner>();
}

}  // namespace graft::meta
