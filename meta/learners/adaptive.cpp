// The learner for those who do not want to choose: what is known in closed form is the floor, the encoder moves only
// where the support shows that this ranks better, and nothing is worse than having no sources.
#include "meta/learners/learners.h"
#include "meta/models/models.h"

namespace graft::meta {
namespace {

class AdaptiveLearner final : public Learner {
 public:
  std::unique_ptr<CostModel> train(const TaskSet& tasks, const LearnerSettings& settings,
                                   base::Monitor& monitor) const override {
    Members members;
    for (const std::string_view name : {"residual", settings.trees ? "gbt" : "pooled", "scratch"})
      members.push_back(make_learner(name)->train(tasks, settings, monitor));
    return make_chosen_model(std::move(members));
  }
};

}  // namespace

std::unique_ptr<Learner> make_adaptive_learner() {
  return std::make_unique<AdaptiveLearner>();
}

}  // namespace graft::meta
