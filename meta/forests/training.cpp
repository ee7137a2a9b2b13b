#include "meta/forests/training.h"

#include <vector>

#include "meta/gradient/adaptation.h"

namespace graft::meta {

BoostingSettings training_trees(const LearnerSettings& settings, std::int64_t usual_trees) {
  BoostingSettings out;
  out.trees = settings.steps > 0 ? settings.steps : usual_trees;
  out.depth = 6;  // 4 orders worse, 8 with half as many trees alike (docs/notebook)
  out.least_weight = 5;
  out.features = 0.3;
  out.seed = settings.seed;
  out.threads = settings.threads;
  return out;
}

DecisionForest trained_forest(std::span<const Examples> groups, Loss loss, const BoostingSettings& settings,
                              std::string_view name, base::Monitor& monitor, const DecisionForest& before) {
  const JoinedExamples all = joined_examples(loss, groups);
  const base::Matrix rows = tree_rows(all.programs);
  std::vector<float> start(std::size_t(rows.rows), 0.0f);
  if (before.trees() > 0) ForestScorer(before).score(rows, start);
  base::check_stop(monitor);
  DecisionForest forest = before;
  const DecisionForest more = boosted(rows, all.objective, start, settings, [&](std::int64_t tree) {
    base::check_stop(monitor);
    monitor.progress(name, tree, settings.trees);
  });
  if (before.trees() == 0) return more;
  append(forest, more);
  return forest;
}

}  // namespace graft::meta
