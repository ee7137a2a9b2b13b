#include "meta/methods/adaptive.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "meta/episode.h"
#include "meta/methods/gbt.h"
#include "meta/methods/pooled.h"
#include "meta/methods/residual.h"
#include "meta/methods/scratch.h"

namespace graft::meta {
namespace {

constexpr std::int64_t folds = 5;
constexpr std::int64_t most_rows = 64;  // of a group that are used: the choice needs no more

// The support without one fold, and which rows of which group were left out. Groups too small to cut are kept whole.
using Fold = Episode<std::vector<Examples>, std::vector<std::vector<std::int64_t>>>;
Fold fold_of(std::span<const Examples> support, std::int64_t fold) {
  Fold out;
  for (std::size_t g = 0; g < support.size(); ++g) {
    const std::int64_t size = support[g].size();
    std::vector<std::int64_t> order = base::Stream(1, "folds", g).choose(size, size), kept, left_out;
    for (std::int64_t i = 0; i < size; ++i)
      (i % folds == fold && size >= 4 ? left_out : kept).push_back(order[std::size_t(i)]);
    out.support.push_back(chosen(support[g], kept));
    out.query.push_back(std::move(left_out));
  }
  return out;
}

// Pairs of a left-out row and any other of its group: share that is in the right order, each pair counting as in the
// rank loss (objectives.h).
struct Pairs {
  double right = 0, all = 0;
};
void judge(const CostModel& model, std::span<const Examples> support, const Fold& fold, Pairs& pairs) {
  for (std::size_t g = 0; g < support.size(); ++g) {
    if (fold.query[g].empty()) continue;
    const std::vector<float> scores = model.score(support[g].features).mean;
    for (const std::int64_t a : fold.query[g]) {
      for (std::int64_t b = 0; b < support[g].size(); ++b) {
        const double gap = support[g].log_seconds[std::size_t(b)] - support[g].log_seconds[std::size_t(a)];
        const double weight = std::min(std::abs(gap), 1.0);
        const float ahead = scores[std::size_t(a)] - scores[std::size_t(b)];
        pairs.all += weight;
        pairs.right += ahead == 0 ? weight / 2 : (ahead > 0) == (gap > 0) ? weight : 0;
      }
    }
  }
}

class ChosenModel final : public CostModel {
 public:
  explicit ChosenModel(std::shared_ptr<const Members> members) : members_(std::move(members)) {
    assert(members_->size() >= 2);
  }

  Scores score(const features::Encoded& programs) const override { return members_->front()->score(programs); }
  Scores score_with_spread(const features::Encoded& programs) const override {
    return members_->front()->score_with_spread(programs);
  }

  std::unique_ptr<CostModel> fitted(std::span<const Examples> support) const override {
    std::int64_t rows = 0;
    std::vector<Examples> looked_at;
    for (const Examples& group : support) {
      rows += group.size();
      if (group.size() < 2) continue;
      std::vector<std::int64_t> first = base::Stream(1, "rows looked at").choose(group.size(), most_rows);
      looked_at.push_back(chosen(group, first));
    }
    if (rows == 0) return clone();
    return (*members_)[best(looked_at)]->fitted(support);
  }

  std::unique_ptr<CostModel> clone() const override { return std::make_unique<ChosenModel>(*this); }
  bool is_informed() const override { return members_->front()->is_informed(); }
  bool takes(const features::Encoding& encoding) const override { return all_take(*members_, encoding); }
  bool can_continue() const override {
    return std::any_of(members_->begin(), members_->end(), [](const auto& member) { return member->can_continue(); });
  }
  std::unique_ptr<CostModel> continued(std::int64_t known, const TaskSet& tasks, const LearnerSettings& settings,
                                       base::Monitor& monitor) const override {
    Members out;
    for (const auto& member : *members_)  // those that cannot stay what they are
      out.push_back(member->can_continue() ? member->continued(known, tasks, settings, monitor) : member->clone());
    return make_chosen_model(std::move(out));
  }
  std::string_view kind() const override { return "chosen"; }

  base::Arrays state() const override {
    base::Arrays out;
    put_members(*members_, out);
    return out;
  }

 private:
  std::size_t best(std::span<const Examples> support) const {
    std::vector<Pairs> pairs(members_->size());
    double judged = 0;
    for (std::int64_t f = 0; f < folds; ++f) {
      const Fold fold = fold_of(support, f);
      for (const auto& left_out : fold.query) judged += double(left_out.size());
      for (std::size_t m = 0; m < members_->size(); ++m)
        judge(*(*members_)[m]->fitted(fold.support), support, fold, pairs[m]);
    }
    if (pairs.front().all == 0) return 0;
    const double chance = 0.25 / std::sqrt(judged);
    std::size_t best = 0;
    for (std::size_t m = 1; m < pairs.size(); ++m) {
      if (pairs[m].right / pairs[m].all > pairs[best].right / pairs[best].all + chance) best = m;
    }
    return best;
  }

  std::shared_ptr<const Members> members_;
};

// The closed form is the floor, the encoder moves only if the support shows that this ranks better, and the result
// is not worse than without sources.
class AdaptiveLearner final : public Learner {
 public:
  std::unique_ptr<CostModel> train(const TaskSet& tasks, const LearnerSettings& settings,
                                   base::Monitor& monitor) const override {
    const auto moved = settings.trees ? make_gbt_learner(values_of("gbt", tree_settings())) : make_pooled_learner();
    Members members;
    members.push_back(make_residual_learner()->train(tasks, settings, monitor));
    members.push_back(moved->train(tasks, settings, monitor));
    members.push_back(make_scratch_learner()->train(tasks, settings, monitor));
    return make_chosen_model(std::move(members));
  }
};

}  // namespace

std::unique_ptr<CostModel> make_chosen_model(Members members) {
  return std::make_unique<ChosenModel>(std::make_shared<const Members>(std::move(members)));
}

std::unique_ptr<CostModel> chosen_model_from(const base::Arrays& state) {
  if (state.attributes.contains("speaks"))
    throw base::UserError("adapted by an older graft; adapt the model that it was made from again");
  return make_chosen_model(members_from(state, "chosen"));
}

std::unique_ptr<Learner> make_adaptive_learner() {
  return std::make_unique<AdaptiveLearner>();
}

}  // namespace graft::meta
