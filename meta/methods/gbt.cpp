#include "meta/methods/gbt.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/random.h"
#include "meta/episode.h"
#include "meta/forests/training.h"
#include "meta/gradient/training.h"
#include "meta/metrics.h"

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
    const auto [programs, objective] = joined_examples(state_.adaptation.loss, support);
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

// The loss of the trained forest. Squared: it ranked programs of a platform left out better than the two losses of
// pairs.
constexpr std::int64_t default_trees = 400;
constexpr Loss default_loss = Loss::squared;

// The grid that fine-tuning is chosen from, and the default without a second platform to choose on.
constexpr std::array<double, 2> tuning_rates = {0.05, 0.15};
constexpr std::array<std::int64_t, 6> tuning_trees = {0, 5, 10, 20, 40, 80};
constexpr std::array<std::int64_t, 3> tuning_shots = {5, 20, 64};
constexpr Adaptation::Descent default_tuning = {20, 20, 0.1f};

struct Rows {
  base::Matrix rows;
  Objective objective;
};
Rows rows_of(std::span<const Examples> groups, Loss loss) {
  JoinedExamples all = joined_examples(loss, groups);
  return {tree_rows(all.programs), std::move(all.objective)};
}

using Table = std::array<std::array<std::array<double, tuning_trees.size()>, tuning_rates.size()>, tuning_shots.size()>;

// Further trees on draws of support from a platform that the forest has not seen; adds up how well they rank its other
// rows.
void try_tuning(const DecisionForest& forest, std::span<const Examples> held_out, Loss loss, std::uint64_t seed,
                Table& sums) {
  constexpr std::int64_t draws = 2, query_rows = 100;
  const ForestScorer prior(forest);
  for (std::size_t s = 0; s < tuning_shots.size(); ++s) {
    for (std::int64_t draw = 0; draw < draws; ++draw) {
      base::Stream stream(seed, "fine-tuning trial", std::uint64_t(draw));
      Episode<std::vector<Examples>> episode;
      for (const Examples& group : held_out) {
        const auto rows = episode_of(stream.choose(group.size(), group.size()), tuning_shots[s], query_rows);
        episode.support.push_back(chosen(group, rows.support));
        episode.query.push_back(chosen(group, rows.query));
      }
      const Rows given = rows_of(episode.support, loss);
      std::vector<float> start(std::size_t(given.rows.rows));
      prior.score(given.rows, start);
      for (std::size_t r = 0; r < tuning_rates.size(); ++r) {
        const DecisionForest grown = boosted(given.rows, given.objective, start,
                                             adapting_trees({0, tuning_trees.back(), float(tuning_rates[r])}));
        for (const Examples& group : episode.query) {
          const base::Matrix rows = tree_rows(group.features);
          std::vector<float> scores(std::size_t(rows.rows)), more(scores.size());
          prior.score(rows, scores);
          std::int64_t made = 0;
          for (std::size_t t = 0; t < tuning_trees.size(); ++t) {
            const std::int64_t until = std::min(tuning_trees[t], grown.trees());
            ForestScorer(part(grown, made, until)).score(rows, more);
            for (std::size_t i = 0; i < scores.size(); ++i) scores[i] += more[i];
            sums[s][r][t] += rank_correlation(scores, group.log_seconds);
            made = until;
          }
        }
      }
    }
  }
}

// What ranked best on up to two source platforms that a smaller forest has not seen.
std::vector<Adaptation::Descent> chosen_tuning(const TaskSet& tasks, Loss loss, BoostingSettings settings,
                                               base::Monitor& monitor) {
  std::vector<std::string> names = platforms(tasks);
  if (names.size() < 2) return {default_tuning};
  base::Stream(settings.seed, "left-out platforms").shuffle(names);
  names.resize(2);
  settings.trees = (settings.trees + 1) / 2;
  Table sums{};
  for (const std::string& name : names) {
    const DecisionForest forest = trained_forest(without_platform(tasks, name).groups, loss, settings,
                                                 "choosing fine-tuning without " + name, monitor);
    try_tuning(forest, only_platforms(tasks, {name}).groups, loss, settings.seed, sums);
  }
  std::vector<Adaptation::Descent> chosen;
  for (std::size_t s = 0; s < tuning_shots.size(); ++s) {
    Adaptation::Descent best{tuning_shots[s], 0, float(tuning_rates[0])};
    double most = sums[s][0][0];
    for (std::size_t r = 0; r < tuning_rates.size(); ++r) {
      for (std::size_t t = 0; t < tuning_trees.size(); ++t) {
        if (sums[s][r][t] <= most) continue;
        most = sums[s][r][t];
        best = {tuning_shots[s], tuning_trees[t], float(tuning_rates[r])};
      }
    }
    chosen.push_back(best);
  }
  return chosen;
}

class GbtLearner final : public Learner {
 public:
  explicit GbtLearner(const MethodValues& values) : values_(values) {}

  std::unique_ptr<CostModel> train(const TaskSet& tasks, const LearnerSettings& settings,
                                   base::Monitor& monitor) const override {
    require_groups(tasks);
    const Loss loss = settings.loss.value_or(default_loss);
    BoostingSettings trees = training_trees(settings, default_trees);
    trees.depth = int(values_.at("depth"));
    trees.rate = values_.at("rate");
    trees.features = values_.at("features");
    trees.least_weight = values_.at("least_weight");
    ForestState state;
    state.adaptation.loss = loss;
    state.adaptation.descents = chosen_tuning(tasks, loss, trees, monitor);
    state.forest = trained_forest(tasks.groups, loss, trees, "boosting", monitor);
    return make_forest_model(std::move(state));
  }

 private:
  MethodValues values_;
};

class GbtScratchLearner final : public Learner {
 public:
  std::unique_ptr<CostModel> train(const TaskSet& tasks, const LearnerSettings& settings,
                                   base::Monitor&) const override {
    ForestState state;
    state.forest.features = std::int64_t(tasks.encoding->features.size());
    state.adaptation.loss = settings.loss.value_or(default_loss);
    state.adaptation.descents = growth_from_nothing();
    return make_forest_model(std::move(state));
  }
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

const std::vector<Adaptation::Descent>& growth_from_nothing() {
  static const std::vector<Adaptation::Descent> growth = {
      {5, 30, 0.15f}, {20, 60, 0.15f}, {64, 120, 0.15f}, {256, 240, 0.15f}};
  return growth;
}

std::unique_ptr<CostModel> make_forest_model(ForestState state) {
  return std::make_unique<ForestModel>(std::move(state));
}

std::unique_ptr<CostModel> forest_model_from(const base::Arrays& state) {
  ForestState out{forest_from(state), adaptation_from(state, {})};
  return make_forest_model(std::move(out));
}

std::vector<MethodSetting> tree_settings() {
  const BoostingSettings usual = training_trees({}, default_trees);
  return {
      {"depth", "of a tree, in decisions", double(usual.depth), 1, DecisionForest::deepest},
      {"rate", "the share of each Newton step that a tree takes", usual.rate, 1e-3, 1, false},
      {"features", "the share of the features that a tree may use", usual.features, 0.01, 1, false},
      {"least_weight", "of a leaf, in rows of mean curvature", usual.least_weight, 0, 1e6, false},
  };
}
std::unique_ptr<Learner> make_gbt_learner(const MethodValues& values) {
  return std::make_unique<GbtLearner>(values);
}
std::unique_ptr<Learner> make_gbt_scratch_learner() {
  return std::make_unique<GbtScratchLearner>();
}

}  // namespace graft::meta
