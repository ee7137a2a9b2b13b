#include "meta/methods/methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "base/error.h"
#include "base/text.h"
#include "meta/gradient/training.h"
#include "meta/methods/adapted.h"
#include "meta/methods/adaptive.h"
#include "meta/methods/analytic.h"
#include "meta/methods/embedding.h"
#include "meta/methods/embedding_model.h"
#include "meta/methods/ensemble.h"
#include "meta/methods/gbt.h"
#include "meta/methods/kernel_model.h"
#include "meta/methods/known_rows.h"
#include "meta/methods/meta_gradient.h"
#include "meta/methods/nearest.h"
#include "meta/methods/network_model.h"
#include "meta/methods/network_scratch.h"
#include "meta/methods/pooled.h"
#include "meta/methods/published_transfer.h"
#include "meta/methods/random.h"
#include "meta/methods/residual.h"
#include "meta/methods/ridge.h"
#include "meta/methods/scratch.h"

namespace graft::meta {
namespace {

// For a method without settings.
MakeLearner plain(std::unique_ptr<Learner> (*make)()) {
  return [make](const MethodValues&) { return make(); };
}

// A network meta-trained through its adaptation: MAML with some switches turned (meta_gradient.h).
Method through_adaptation(std::string name, std::string description, const MetaSettings& usual) {
  return {
      .name = std::move(name),
      .description = std::move(description),
      .make = [usual](const MethodValues& values) { return make_meta_gradient_learner(with_values(usual, values)); },
      .settings = settings_of(usual),
      .kind = "network",
      .read = network_model_from,
      .continues = true};
}

// One model for each source, networks or forests; adapts by what it learns of their scores.
Method of_source_models(std::string name, std::string description, std::unique_ptr<Learner> (*make)(), std::string kind,
                        std::unique_ptr<CostModel> (*read)(const base::Arrays& state)) {
  return {.name = std::move(name),
          .description = std::move(description),
          .make = plain(make),
          .kind = std::move(kind),
          .read = read,
          .made_of = MadeOf::either,
          .continues = true};
}

// An embedding, which either continues or needs support before it says anything.
Method embedding(std::string name, std::string description, std::unique_ptr<Learner> (*make)(), bool continues) {
  return {.name = std::move(name),
          .description = std::move(description),
          .make = plain(make),
          .kind = "embedding",
          .read = embedding_model_from,
          .informed = continues,
          .continues = continues};
}

std::vector<Method> scratch_and_pooled() {
  return {{.name = "scratch",
           .description = "knows nothing before the target's support; then kernel ridge on it alone",
           .make = plain(make_scratch_learner),
           .kind = "scratch",
           .read = scratch_model_from,
           .made_of = MadeOf::neither,
           .informed = false,
           .with_trees = "gbt-scratch"},
          {.name = "pooled",
           .description = "one network, trained with a head for each platform; adapts by fine-tuning",
           .make = plain(make_pooled_learner),
           .kind = "network",
           .read = network_model_from,
           .continues = true,
           .with_trees = "gbt",
           .uses = {{"zero-shot", false}, {"finetune"}}},
          {.name = "pooled-head",
           .description = "the same; fine-tunes the last layer only",
           .make = plain(make_pooled_head_learner),
           .kind = "network",
           .read = network_model_from,
           .continues = true,
           .uses = {{"finetune-head"}}}};
}

std::vector<Method> of_many_models() {
  return {
      of_source_models("nearest",
                       "one network or forest per platform; adapts by choosing the one that ranks the support best",
                       make_nearest_learner, "nearest", nearest_model_from),
      of_source_models("ridge", "one network or forest per platform; adapts by ridge regression on their scores",
                       make_ridge_learner, "ridge", ridge_model_from),
      of_source_models("bayes-ridge", "the same with the shrinkage of most evidence for each support",
                       make_bayes_ridge_learner, "bayes-ridge", bayes_ridge_model_from),
      of_source_models(
          "residual",
          "one network or forest per platform; adapts by kernel ridge on features, or leaves, and their scores",
          make_residual_learner, "residual", residual_model_from),
      of_source_models("adaptive", "residual, a fine-tuned network, or scratch: what the support says",
                       make_adaptive_learner, "chosen", chosen_model_from),
  };
}

std::vector<Method> meta_trained() {
  return {
      through_adaptation("maml", "a network meta-trained through its adaptation, exact second order", {}),
      through_adaptation("fomaml", "the same to first order", {.rule = OuterRule::first_order}),
      through_adaptation("reptile", "a network moved towards its adapted versions",
                         {.rule = OuterRule::towards, .outer_rate = 0.5}),
      through_adaptation("anil", "MAML that adapts the last layer only",
                         {.adapts = Adapts::head, .rates = LearnedRates::per_step_and_block}),
      through_adaptation("meta-sgd", "MAML with a learned rate for each parameter",
                         {.rates = LearnedRates::per_parameter}),
      through_adaptation("maml++", "MAML with a learned rate for each step and layer and a loss after each step",
                         {.rates = LearnedRates::per_step_and_block, .anneals = true}),
      through_adaptation(
          "cavia", "MAML that adapts a few numbers that represent the platform and are inputs next to the features",
          {.adapts = Adapts::context, .rates = LearnedRates::per_step_and_block, .inner_rate = 1.0}),
      through_adaptation("hyper", "MAML that adapts the code of a linear hypernetwork",
                         {.adapts = Adapts::code, .rates = LearnedRates::per_step_and_block}),
      embedding("r2d2", "an embedding trained through the ridge regression that adapts its head", make_r2d2_learner,
                true),
      embedding("matching", "an embedding trained through a kernel smoother of the support", make_matching_learner,
                false),
      embedding("proto", "an embedding trained through the means of the support's fast, middle and slow programs",
                make_proto_learner, false),
      embedding("latent",
                "one embedding with a head a platform; adapts by Bayesian regression from the heads' distribution",
                make_latent_learner, true),
  };
}

std::vector<Method> trees_and_references() {
  return {{.name = "gbt",
           .description = "boosted trees on all platforms alike; adapts by further trees",
           .make = make_gbt_learner,
           .settings = tree_settings(),
           .kind = "gbt",
           .read = forest_model_from,
           .made_of = MadeOf::trees,
           .uses = {{"gbt"}, {"gbt-zero-shot", false}}},
          {.name = "gbt-scratch",
           .description = "boosted trees on the target's support alone",
           .make = plain(make_gbt_scratch_learner),
           .kind = "gbt",
           .read = forest_model_from,
           .made_of = MadeOf::trees,
           .informed = false},
          {.name = "network-scratch",
           .description = "one network trained on the target's support alone, from new parameters",
           .make = plain(make_network_scratch_learner),
           .kind = "network-scratch",
           .read = network_scratch_model_from,
           .informed = false},
          {.name = "analytic",
           .description = "the pre-defined roofline of the encoding analytic; learns nothing",
           .make = plain(make_analytic_learner),
           .kind = "column",
           .read = column_model_from,
           .made_of = MadeOf::neither,
           .uses = {{"analytic", false}}},
          {.name = "random",
           .description = "scores that mean nothing: the floor of every table",
           .make = plain(make_random_learner),
           .kind = "random",
           .read = random_model_from,
           .made_of = MadeOf::neither,
           .informed = false,
           .uses = {{"random", false}}}};
}

}  // namespace

const std::vector<Method>& methods() {
  static const std::vector<Method> table = [] {
    std::vector<Method> all;
    for (const auto& family : {scratch_and_pooled(), of_many_models(), meta_trained(), trees_and_references()})
      all.insert(all.end(), family.begin(), family.end());
    return all;
  }();
  return table;
}

const Method& method_named(std::string_view learner) {
  const std::string_view name = method_name_of(learner);
  std::vector<std::string> names;
  for (const Method& method : methods()) {
    if (method.name == name) {
      values_of(learner, method.settings);
      return method;
    }
    names.push_back(method.name);
  }
  throw base::UserError(fmt::format("unknown learner '{}'{}", name, base::did_you_mean(name, names)));
}

std::unique_ptr<Learner> make_learner(std::string_view learner) {
  const Method& method = method_named(learner);
  return method.make(values_of(learner, method.settings));
}

std::unique_ptr<CostModel> model_from(const std::string& kind, const base::Arrays& state) {
  // Kinds that are made from models of any method.
  const std::pair<std::string, std::unique_ptr<CostModel> (*)(const base::Arrays&)> made_from_others[] = {
      {std::string(adapted_kind), adapted_model_from},
      {std::string(ensemble_kind), ensemble_model_from},
      {known_rows_kind, known_rows_model_from},
      {"frozen", frozen_model_from},
      {"global-local", global_local_model_from}};
  std::vector<std::string> names;
  for (const auto& [name, read] : made_from_others) {
    if (name == kind) return read(state);
    names.push_back(name);
  }
  for (const Method& method : methods()) {
    if (method.kind == kind) return method.read(state);
    names.push_back(method.kind);
  }
  throw base::UserError(fmt::format("unknown kind of model '{}'{}", kind, base::did_you_mean(kind, names)));
}

std::string learner_with(std::string_view learner, bool trees) {
  const Method& method = method_named(learner);
  if (trees && !method.with_trees.empty()) return method.with_trees;
  check_made_of(method, trees);
  return std::string(learner);
}

void check_made_of(const Method& method, bool trees) {
  if (!trees || method.made_of != MadeOf::networks) return;
  std::vector<std::string> others;
  for (const Method& other : methods()) {
    if (other.made_of != MadeOf::networks) others.push_back(other.name);
  }
  throw base::UserError(fmt::format("{} trains networks, gbt does not; learners of trees, or of neither: {}",
                                    method.name, base::join(others, ", ")));
}

bool prefers_trees(const Method& method) {
  return method.made_of == MadeOf::trees || method.made_of == MadeOf::either;
}

const features::Encoding& usual_encoding(bool trees, NetworkKind network) {
  return features::encoding_named(trees                             ? "context_relation+on_target"
                                  : network == NetworkKind::treegru ? "tree"
                                                                    : "context_relation");
}

const features::Encoding& encoding_of_tables() {
  return features::encoding_named("columns");
}

bool are_tables(const std::vector<datasets::Dataset>& data) {
  return std::all_of(data.begin(), data.end(), [](const datasets::Dataset& dataset) {
    return std::all_of(dataset.sketches.begin(), dataset.sketches.end(),
                       [](const auto& sketch) { return !sketch->columns.empty(); });
  });
}

const std::vector<UntrainedModel>& untrained_models() {
  static const std::vector<UntrainedModel> table = {
      {"scratch", "scratch", "context_relation"},
      {"black-box", "scratch", "knobs"},
      {"analytic", "analytic", "analytic"},
      {"random", "random", "context_relation"},
      {"trees", "gbt-scratch", "context_relation+on_target"},
      {"mlp", "network-scratch", "context_relation"},
      {"treegru", "network-scratch", "tree", NetworkKind::treegru},
  };
  return table;
}

const UntrainedModel* untrained_named(std::string_view name) {
  for (const UntrainedModel& model : untrained_models()) {
    if (name == model.name || name.starts_with(model.name + ":")) return &model;
  }
  return nullptr;
}

std::unique_ptr<CostModel> untrained_model(std::string_view name, const LearnerSettings& settings,
                                           base::Monitor& monitor) {
  const UntrainedModel* const model = untrained_named(name);
  assert(model != nullptr);
  LearnerSettings with = settings;
  if (name.size() > model->name.size()) {
    if (method_named(model->learner).made_of == MadeOf::neither)
      throw base::UserError(fmt::format("{}: {} descends no loss; trees, mlp and treegru do", name, model->name));
    with.loss = loss_named(name.substr(model->name.size() + 1));
  }
  with.network.kind = model->network;
  TaskSet none;
  none.encoding = &features::encoding_named(model->encoding);
  return make_learner(model->learner)->train(none, with, monitor);
}

std::unique_ptr<CostModel> with_transfer(std::unique_ptr<CostModel> model, std::string_view transfer,
                                         const features::Encoding& encoding) {
  if (transfer == "adapted") return model;
  if (transfer == "frozen") return make_frozen_model(std::move(model));
  if (transfer == "global-local")
    return make_global_local_model(std::move(model), std::int64_t(encoding.features.size()));
  throw base::UserError(fmt::format("unknown transfer '{}'; adapted, frozen or global-local", transfer));
}

namespace {

// Without what is known of rows.
std::unique_ptr<CostModel> trained_alone(const Learner& learner, const TaskSet& tasks, const LearnerSettings& settings,
                                         base::Monitor& monitor) {
  if (settings.guard) {
    LearnerSettings without = settings;
    without.guard = false;
    Members members;
    members.push_back(trained_alone(learner, tasks, without, monitor));
    members.push_back(make_scratch_model(std::int64_t(tasks.encoding->features.size())));
    return make_chosen_model(std::move(members));
  }
  if (settings.members <= 1) return learner.train(tasks, settings, monitor);
  std::vector<std::unique_ptr<CostModel>> members;
  for (int m = 0; m < settings.members; ++m) {
    TaskSet own = tasks;
    own.groups = bootstrap_share(tasks.groups, settings.seed, m);
    LearnerSettings with = settings;
    with.members = 1;
    with.seed = settings.seed + std::uint64_t(m);
    members.push_back(learner.train(own, with, monitor));
  }
  return make_ensemble_model(std::move(members), settings.seed);
}

}  // namespace

std::unique_ptr<CostModel> trained(const Learner& learner, const TaskSet& tasks, const LearnerSettings& settings,
                                   base::Monitor& monitor) {
  return with_known_rows(trained_alone(learner, tasks, settings, monitor), tasks, settings, monitor);
}

std::unique_ptr<CostModel> continued(const CostModel& model, std::int64_t known, const TaskSet& tasks,
                                     const LearnerSettings& settings, base::Monitor& monitor) {
  require_groups(tasks);
  check_continues(model);
  return model.continued(known, tasks, settings, monitor);
}

}  // namespace graft::meta
