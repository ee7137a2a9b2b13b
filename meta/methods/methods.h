// All methods in one table: a row defines how a method is trained, how its models are read back, and what it can do.
// To add one, write its pair of files and its row; commands, tables of results and tests use this table.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/monitor.h"
#include "datasets/dataset.h"
#include "meta/cost_model.h"
#include "meta/learner.h"
#include "meta/methods/setting.h"

namespace graft::meta {

// What a method's models can consist of.
enum class MadeOf { networks, trees, either, neither };

struct Method {
  std::string name = {};
  std::string description = {};
  MakeLearner make = nullptr;
  std::vector<MethodSetting> settings = {};
  // The kind of its models (CostModel::kind), and how they are read from their state. Several methods may share both.
  std::string kind = {};
  std::unique_ptr<CostModel> (*read)(const base::Arrays& state) = nullptr;
  MadeOf made_of = MadeOf::networks;
  bool informed = true;    // whether its models are informed (cost_model.h) before they have any support
  bool continues = false;  // whether its models can learn of further platforms (`continued`)
  // The method that replaces it if trees are requested; none: itself.
  std::string with_trees = {};
  // Names and uses in tables of results; none: by its name, adapted.
  struct Use {
    std::string name;
    bool adapts = true;  // false: scored with the empty support, regardless of measurements
  };
  std::vector<Use> uses = {};
};

// scratch is an untrained prior (it needs no tasks but the encoding), pooled serves as zero-shot and for fine-tuning,
// analytic is pre-defined, random is the floor.
const std::vector<Method>& methods();
// The method of a learner's text (setting.h), whose settings are checked. UserError (did you mean).
const Method& method_named(std::string_view learner);
std::unique_ptr<Learner> make_learner(std::string_view learner);  // likewise

// A model of any kind, from kind() and state(). UserError for an unknown kind or an inconsistent state.
std::unique_ptr<CostModel> model_from(const std::string& kind, const base::Arrays& state);

// Which method, with which kind of model, on which encoding: the defaults for settings that the user leaves open.
//
// The learner that the text means with or without trees. Errors as method_named and check_made_of.
std::string learner_with(std::string_view learner, bool trees);
// UserError for trees with a method that has only networks.
void check_made_of(const Method& method, bool trees);
// Whether the method uses trees unless a network is requested.
bool prefers_trees(const Method& method);
// For programs.
const features::Encoding& usual_encoding(bool trees, NetworkKind network);
// For data that are all rows of tables: they have no programs, so no other encoding works. Networks fit
// tables of few columns better than trees do.
const features::Encoding& encoding_of_tables();
bool are_tables(const std::vector<datasets::Dataset>& data);

// Models that need no dataset, with the encoding of each.
struct UntrainedModel {
  std::string name, learner, encoding;
  NetworkKind network = NetworkKind::mlp;  // for learners that train one
};
const std::vector<UntrainedModel>& untrained_models();

// The row that "trees", or "trees:rank" with its loss, means; null: none of that name.
const UntrainedModel* untrained_named(std::string_view name);
// Its model. UserError for an unknown loss, and for a loss with a model that has none.
std::unique_ptr<CostModel> untrained_model(std::string_view name, const LearnerSettings& settings,
                                           base::Monitor& monitor);

// How a search uses measurements: "adapted" (the model is adapted to them: graft's own way), or as published
// by others (published_transfer.h) "frozen" and "global-local". UserError for any other.
std::unique_ptr<CostModel> with_transfer(std::unique_ptr<CostModel> model, std::string_view transfer,
                                         const features::Encoding& encoding);

// The learner's model, or an ensemble of settings.members of them, guarded if so set; with what the sources know of
// rows of tables (known_rows.h), if so set. Errors as Learner::train.
std::unique_ptr<CostModel> trained(const Learner& learner, const TaskSet& tasks, const LearnerSettings& settings,
                                   base::Monitor& monitor);

// The model extended by the tasks' platforms: one more network each for models with one per platform (ridge,
// nearest, residual), or a step towards each new platform with the share of one of `known` + 1 platforms (all other
// networks). UserError for models that cannot continue (trees) and for another encoding's features.
std::unique_ptr<CostModel> continued(const CostModel& model, std::int64_t known, const TaskSet& tasks,
                                     const LearnerSettings& settings, base::Monitor& monitor);

}  // namespace graft::meta
