#include "meta/learner.h"

#include <fmt/format.h>

#include "base/error.h"
#include "meta/learners/learners.h"
#include "meta/models/models.h"

namespace graft::meta {
namespace {

// Learners that learn nothing before they see the target.
class ScratchLearner final : public Learner {
 public:
  std::unique_ptr<CostModel> train(const TaskSet& tasks, const LearnerSettings&, base::Monitor&) const override {
    return make_scratch_model(std::int64_t(tasks.encoding->features.size()));
  }
};

class RandomLearner final : public Learner {
 public:
  std::unique_ptr<CostModel> train(const TaskSet&, const LearnerSettings& settings, base::Monitor&) const override {
    return make_random_model(settings.seed);
  }
};

class AnalyticLearner final : public Learner {
 public:
  std::unique_ptr<CostModel> train(const TaskSet& tasks, const LearnerSettings&, base::Monitor&) const override {
    if (tasks.encoding->name != "analytic")
      throw base::UserError(fmt::format("learner analytic: its prediction is the encoding analytic; {} was asked for",
                                        tasks.encoding->name));
    return make_column_model();
  }
};

}  // namespace

std::unique_ptr<Learner> make_scratch_learner() {
  return std::make_unique<ScratchLearner>();
}
std::unique_ptr<Learner> make_random_learner() {
  return std::make_unique<RandomLearner>();
}

std::unique_ptr<Learner> make_analytic_learner() {
  return std::make_unique<AnalyticLearner>();
}

void check_fits(NetworkKind kind, const features::Encoding& encoding) {
  const bool tree = encoding.shape == features::Shape::tree;
  if (tree == (kind == NetworkKind::treegru)) return;
  throw base::UserError(
      tree
          ? fmt::format("encoding {} makes trees, which {} does not take; use treegru", encoding.name, name_of(kind))
          : fmt::format("encoding {} makes no trees, which {} needs; use encoding tree", encoding.name, name_of(kind)));
}

const std::vector<LearnerEntry>& learners() {
  static const std::vector<LearnerEntry> table = {
      {"scratch", "knows nothing before the target's support; then kernel ridge on it alone", make_scratch_learner,
       false},
      {"pooled", "one network on all platforms alike; adapts by fine-tuning", make_pooled_learner},
      {"pooled-head", "the same; fine-tunes the last layer only", make_pooled_head_learner},
      {"nearest", "one network or forest per platform; adapts by choosing the one that ranks the support best",
       make_nearest_learner},
      {"ridge", "one network or forest per platform; adapts by ridge regression on their scores", make_ridge_learner},
      {"bayes-ridge", "the same with the shrinkage of most evidence for each support", make_bayes_ridge_learner},
      {"residual",
       "one network or forest per platform; adapts by kernel ridge on features, or leaves, and their scores",
       make_residual_learner},
      {"adaptive", "residual, a fine-tuned network, or scratch: what the support says", make_adaptive_learner},
      {"maml", "a network meta-trained through its adaptation, exact second order", make_maml_learner},
      {"fomaml", "the same to first order", make_fomaml_learner},
      {"reptile", "a network moved towards its adapted versions", make_reptile_learner},
      {"anil", "MAML that adapts the last layer only", make_anil_learner},
      {"meta-sgd", "MAML with a learned rate for each parameter", make_meta_sgd_learner},
      {"maml++", "MAML with a learned rate for each step and layer and a loss after each step",
       make_maml_plus_plus_learner},
      {"cavia", "MAML that adapts a few numbers which stand for the platform, seen beside the features",
       make_cavia_learner},
      {"hyper", "MAML that adapts the code of a linear hypernetwork", make_hyper_learner},
      {"r2d2", "an embedding trained through the ridge regression that adapts its head", make_r2d2_learner},
      {"matching", "an embedding trained through a kernel smoother of the support", make_matching_learner, false},
      {"proto", "an embedding trained through the means of the support's fast, middle and slow programs",
       make_proto_learner, false},
      {"latent", "one embedding with a head a platform; adapts by Bayesian regression from the heads' distribution",
       make_latent_learner},
      {"gbt", "boosted trees on all platforms alike; adapts by further trees", make_gbt_learner},
      {"gbt-scratch", "boosted trees on the target's support alone", make_gbt_scratch_learner, false},
      {"analytic", "the pre-defined roofline of the encoding analytic; learns nothing", make_analytic_learner},
      {"random", "scores that mean nothing: the floor of every table", make_random_learner, false}};
  return table;
}

const std::vector<UntrainedModel>& untrained_models() {
  static const std::vector<UntrainedModel> table = {
      {"scratch", "scratch", "context_relation"},
      {"black-box", "scratch", "knobs"},
      {"analytic", "analytic", "analytic"},
      {"random", "random", "context_relation"},
  };
  return table;
}

const LearnerEntry& learner_named(std::string_view name) {
  std::vector<std::string> names;
  for (const LearnerEntry& entry : learners()) {
    if (entry.name == name) return entry;
    names.push_back(entry.name);
  }
  throw base::UserError(fmt::format("unknown learner '{}'{}", name, base::did_you_mean(name, names)));
}

std::unique_ptr<Learner> make_learner(std::string_view name) {
  return learner_named(name).make();
}

}  // namespace graft::meta
