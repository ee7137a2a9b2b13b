// All methods in one table: a row says how a method is trained, how its models are read back, and what it can do. To
// add one, write its pair of files and its row; commands, tables of results and tests have it from here.
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

namespace graft::meta {

// What a method's models can be made of.
enum class MadeOf { networks, trees, either, neither };

struct Method {
  std::string name = {};
  std::string description = {};
  std::unique_ptr<Learner> (*make)() = nullptr;
  // The kind of its models (CostModel::kind), and how they are read from their state. Several methods may share both.
  std::string kind = {};
  std::unique_ptr<CostModel> (*read)(const base::Arrays& state) = nullptr;
  MadeOf made_of = MadeOf::networks;
  bool informed = true;    // whether its models are informed (cost_model.h) before they have any support
  bool continues = false;  // whether its models can learn of further platforms (`continued`)
  // What takes its place where trees are asked for; none: itself.
  std::string with_trees = {};
  // How tables of results name it and use it; none: by its name, adapted.
  struct Use {
    std::string name;
    bool adapts = true;  // false: scored with the empty support, whatever was measured
  };
  std::vector<Use> uses = {};
};

// scratch is an untrained prior (it needs no tasks but the encoding), pooled serves as zero-shot and for fine-tuning,
// analytic is pre-defined, random is the floor.
const std::vector<Method>& methods();
const Method& method_named(std::string_view name);             // UserError (did you mean)
std::unique_ptr<Learner> make_learner(std::string_view name);  // likewise

// A model of any kind, from kind() and state(). UserError for an unknown kind or a state that does not hold together.
std::unique_ptr<CostModel> model_from(const std::string& kind, const base::Arrays& state);

// Which method, of what, on which encoding: what holds where the user has said less than all of it.
//
// The method that is meant by `name` where trees are asked for, or not. Errors as method_named and check_made_of.
const Method& method_with(std::string_view name, bool trees);
// UserError for trees of a method that has networks only.
void check_made_of(const Method& method, bool trees);
// Whether the method has trees unless a network is asked for.
bool prefers_trees(const Method& method);
// Of programs.
const features::Encoding& usual_encoding(bool trees, NetworkKind network);
// Of data that are all rows of tables: they have no programs, so no other encoding can take them. Networks follow
// tables of few columns better than trees do.
const features::Encoding& encoding_of_tables();
bool are_tables(const std::vector<datasets::Dataset>& data);

// Models that are trained on no dataset, with the encoding that each is for.
struct UntrainedModel {
  std::string name, learner, encoding;
  NetworkKind network = NetworkKind::mlp;  // of learners that train one
};
const std::vector<UntrainedModel>& untrained_models();

// The row that is meant by "trees", or by "trees:rank" with what it descends; null: none of that name.
const UntrainedModel* untrained_named(std::string_view name);
// Its model. UserError for an unknown loss, and for one of a model that descends none.
std::unique_ptr<CostModel> untrained_model(std::string_view name, const LearnerSettings& settings,
                                           base::Monitor& monitor);

// What a search does with what is measured: "adapted" (the model is adapted to it: graft's own way), or as others
// published (published_transfer.h) "frozen" and "global-local". UserError for any other.
std::unique_ptr<CostModel> with_transfer(std::unique_ptr<CostModel> model, std::string_view transfer,
                                         const features::Encoding& encoding);

// The learner's model, or an ensemble of settings.members of them, guarded if so set. Errors as Learner::train.
std::unique_ptr<CostModel> trained(const Learner& learner, const TaskSet& tasks, const LearnerSettings& settings,
                                   base::Monitor& monitor);

// The model with what is known of the tasks' platforms besides: a further network each where there is one a platform
// (ridge, nearest, residual), a step towards each new platform of the length that one of `known` + 1 platforms has (all
// other networks). UserError for models that cannot continue (trees) and for another encoding's features.
std::unique_ptr<CostModel> continued(const CostModel& model, std::int64_t known, const TaskSet& tasks,
                                     const LearnerSettings& settings, base::Monitor& monitor);

}  // namespace graft::meta
