#include "meta/methods/nearest.h"

#include <utility>

#include "meta/methods/basis_model.h"
#include "meta/metrics.h"
#include "meta/sources/training.h"

namespace graft::meta {

namespace {

class NearestModel final : public BasisModel {
 public:
  using BasisModel::BasisModel;

  std::unique_ptr<CostModel> fitted(std::span<const Examples> support) const override {
    const std::size_t sources = basis_->sources.size();
    std::vector<double> agreement(sources, 0.0);
    bool informed = false;
    for (const Examples& group : support) {
      if (group.size() < 2) continue;
      informed = true;
      const base::Matrix predicted = basis_->predict(group.features);
      for (std::size_t s = 0; s < sources; ++s) {
        std::vector<double> alone(sources, 0.0);
        alone[s] = 1;
        agreement[s] += rank_correlation(combined(predicted, alone), group.log_seconds);
      }
    }
    if (!informed) return std::make_unique<NearestModel>(basis_, weights_);
    std::size_t best = 0;
    for (std::size_t s = 1; s < sources; ++s) {
      if (agreement[s] > agreement[best]) best = s;
    }
    std::vector<double> weights(sources, 0.0);
    weights[best] = 1;
    return std::make_unique<NearestModel>(basis_, std::move(weights));
  }
  std::unique_ptr<CostModel> clone() const override { return std::make_unique<NearestModel>(*this); }
  std::unique_ptr<CostModel> continued(std::int64_t, const TaskSet& tasks, const LearnerSettings& settings,
                                       base::Monitor& monitor) const override {
    return make_nearest_model(with_more_sources(*basis_, tasks, settings, monitor));
  }
  std::string_view kind() const override { return "nearest"; }
};

class NearestLearner final : public Learner {
 public:
  std::unique_ptr<CostModel> train(const TaskSet& tasks, const LearnerSettings& settings,
                                   base::Monitor& monitor) const override {
    return make_nearest_model(train_basis(tasks, settings, monitor));
  }
};

}  // namespace

std::unique_ptr<CostModel> make_nearest_model(SourceBasis basis) {
  std::vector<double> weights = basis.equal_shares();
  return std::make_unique<NearestModel>(std::make_shared<const SourceBasis>(std::move(basis)), std::move(weights));
}

std::unique_ptr<CostModel> nearest_model_from(const base::Arrays& state) {
  SourceBasis basis = basis_from(state);
  std::vector<double> weights = weights_from(state, basis);
  return std::make_unique<NearestModel>(std::make_shared<const SourceBasis>(std::move(basis)), std::move(weights));
}

std::unique_ptr<Learner> make_nearest_learner() {
  return std::make_unique<NearestLearner>();
}

}  // namespace graft::meta
