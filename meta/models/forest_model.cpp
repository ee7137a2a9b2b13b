#include <utility>

#include "base/error.h"
#include "meta/models/models.h"
#include "meta/state.h"

namespace graft::meta {
namespace {

class ForestModel final : public CostModel {
 public:
  explicit ForestModel(ForestState state) : state_(std::move(state)), scorer_(state_.forest) {}

  Scores score(const features::Encoded& programs) const override {
    const std::size_t count = std::size_t(programs.programs());
    Scores out{std::vector<float>(count), std::vector<float>(count, 0.0f)};
    if (count > 0) scorer_.score(tree_rows(programs), out.mean);
    return out;
  }

  std::unique_ptr<CostModel> fitted(std::span<const Examples> support) const override {
    const auto [programs, objective] = together(state_.adaptation.loss, support);
    if (objective.empty()) return make_forest_model(state_);
    const double shots = double(objective.rows()) / double(support.size());
    ForestState moved = state_;
    if (const Adaptation::Descent* const descent = state_.adaptation.descent_for(shots)) {
      const std::vector<float> start = score(programs).mean;
      append(moved.forest, boosted(tree_rows(programs), objective, start, adapting_trees(*descent)));
    }
    return make_forest_model(std::move(moved));
  }

  std::unique_ptr<CostModel> clone() const override { return std::make_unique<ForestModel>(*this); }
  bool is_informed() const override { return state_.forest.trees() > 0; }
  bool takes(const features::Encoding& encoding) const override {
    return state_.forest.features == std::int64_t(encoding.features.size());
  }
  std::string_view kind() const override { return "gbt"; }

  base::Arrays state() const override {
    base::Arrays out;
    put(state_.forest, out);
    put(state_.adaptation, out);
    return out;
  }

 private:
  ForestState state_;
  ForestScorer scorer_;
};

}  // namespace

BoostingSettings adapting_trees(const Adaptation::Descent& descent) {
  BoostingSettings out;
  out.trees = descent.steps;
  out.rate = double(descent.rate);
  out.depth = 3;
  out.features = 0.3;
  return out;
}

std::unique_ptr<CostModel> make_forest_model(ForestState state) {
  return std::make_unique<ForestModel>(std::move(state));
}

std::unique_ptr<CostModel> forest_model_from(const base::Arrays& state) {
  ForestState out{forest_from(state), adaptation_from(state, {})};
  return make_forest_model(std::move(out));
}

}  // namespace graft::meta
