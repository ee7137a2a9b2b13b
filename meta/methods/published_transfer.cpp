#include "meta/methods/published_transfer.h"

#include <cmath>
#include <utility>

#include "meta/forests/boosting.h"
#include "meta/forests/forest.h"
#include "meta/gradient/adaptation.h"
#include "meta/methods/gbt.h"
#include "meta/methods/parts.h"
#include "meta/state.h"

namespace graft::meta {
namespace {

class FrozenModel final : public CostModel {
 public:
  explicit FrozenModel(std::shared_ptr<const CostModel> model) : model_(std::move(model)) {}
  Scores score(const features::Encoded& programs) const override { return model_->score(programs); }
  Scores score_with_spread(const features::Encoded& programs) const override {
    return model_->score_with_spread(programs);
  }
  std::unique_ptr<CostModel> fitted(std::span<const Examples>) const override { return clone(); }
  std::unique_ptr<CostModel> clone() const override { return std::make_unique<FrozenModel>(*this); }
  bool is_informed() const override { return model_->is_informed(); }
  bool takes(const features::Encoding& encoding) const override { return model_->takes(encoding); }
  std::string_view kind() const override { return "frozen"; }
  base::Arrays state() const override {
    base::Arrays out;
    put_part(*model_, "model", out);
    return out;
  }

 private:
  std::shared_ptr<const CostModel> model_;
};

constexpr double half_life = 64, least_weight = 0.05;  // of measured programs; of f_global

class GlobalLocalModel final : public CostModel {
 public:
  GlobalLocalModel(std::shared_ptr<const CostModel> global, float weight, DecisionForest local)
      : global_(std::move(global)), weight_(weight), local_(std::move(local)), scorer_(local_) {}

  Scores score(const features::Encoded& programs) const override {
    const std::size_t count = std::size_t(programs.programs());
    std::vector<float> sum(count, 0.0f);
    if (count > 0) scorer_.score(tree_rows(programs), sum);
    if (weight_ > 0) {
      const std::vector<float> global = global_->score(programs).mean;
      for (std::size_t i = 0; i < count; ++i) sum[i] += weight_ * global[i];
    }
    return certain(std::move(sum));
  }

  std::unique_ptr<CostModel> fitted(std::span<const Examples> support) const override {
    const auto [programs, objective] = joined_examples(Loss::rank, support);
    if (objective.empty()) return clone();
    const double rows = double(objective.rows());
    double weight = std::exp2(-rows / half_life);
    if (weight < least_weight) weight = 0;
    std::vector<float> start(std::size_t(programs.programs()), 0.0f);
    if (weight > 0) {
      start = global_->score(programs).mean;
      for (float& score : start) score *= float(weight);
    }
    Adaptation growth;
    growth.descents = growth_from_nothing();
    const Adaptation::Descent* const descent = growth.descent_for(rows / double(support.size()));
    return std::make_unique<GlobalLocalModel>(global_, float(weight),
                                              boosted(tree_rows(programs), objective, start, adapting_trees(*descent)));
  }

  std::unique_ptr<CostModel> clone() const override {
    return std::make_unique<GlobalLocalModel>(global_, weight_, local_);
  }
  bool is_informed() const override { return global_->is_informed() || local_.trees() > 0; }
  bool takes(const features::Encoding& encoding) const override { return global_->takes(encoding); }
  std::string_view kind() const override { return "global-local"; }
  base::Arrays state() const override {
    base::Arrays out;
    put_part(*global_, "global", out);
    put(local_, out);
    put_values(out, "weight", {weight_});
    return out;
  }

 private:
  std::shared_ptr<const CostModel> global_;
  float weight_;  // of its scores
  DecisionForest local_;
  ForestScorer scorer_;
};

}  // namespace

std::unique_ptr<CostModel> make_frozen_model(std::unique_ptr<CostModel> model) {
  return std::make_unique<FrozenModel>(std::move(model));
}

std::unique_ptr<CostModel> frozen_model_from(const base::Arrays& state) {
  return make_frozen_model(part_from(state, "model", "frozen"));
}

std::unique_ptr<CostModel> make_global_local_model(std::unique_ptr<CostModel> model, std::int64_t features) {
  DecisionForest nothing;
  nothing.features = features;
  return std::make_unique<GlobalLocalModel>(std::move(model), 1.0f, std::move(nothing));
}

std::unique_ptr<CostModel> global_local_model_from(const base::Arrays& state) {
  const float weight = values_of(state, "weight", 1).front();
  return std::make_unique<GlobalLocalModel>(part_from(state, "global", "global-local"), weight, forest_from(state));
}

}  // namespace graft::meta
