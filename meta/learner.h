// A meta-learner makes, from many tasks, a cost model that adapts to a new one. By name from one table.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/monitor.h"
#include "base/team.h"
#include "meta/cost_model.h"
#include "meta/network.h"
#include "meta/objectives.h"
#include "meta/task_set.h"
#include "meta/training_record.h"

namespace graft::meta {

struct LearnerSettings {
  NetworkShape network;            // its inputs follow from the encoding
  std::string backend = "native";  // or "torch"
  bool trees = false;              // boosted trees in place of networks, of learners that can have either
  std::int64_t steps = 0;          // outer steps, or trees; 0: the learner's default
  std::optional<Loss> loss;        // of learners that descend one; none: the learner's default
  int members = 1;                 // from 2 on: an ensemble of so many models, each trained on its own draw of rows
  bool guard = false;              // the support chooses between the model and scratch (models.h, kind "chosen")
  std::uint64_t seed = 1;
  int threads = 1;
  base::Team* team = nullptr;        // whose ranks train the same model and share the tasks; none: alone
  TrainingRecord* record = nullptr;  // losses and checkpoints, where they are wanted
};

// UserError unless a network of this kind takes what the encoding makes: a TreeGRU trees, an MLP anything else.
void check_fits(NetworkKind kind, const features::Encoding& encoding);

class Learner {
 public:
  virtual ~Learner() = default;
  // UserError without groups of two programs or more to learn from, or for an encoding that the network does not take
  // (check_fits); Stopped when the monitor asks for it.
  virtual std::unique_ptr<CostModel> train(const TaskSet& tasks, const LearnerSettings& settings,
                                           base::Monitor& monitor) const = 0;
};

struct LearnerEntry {
  std::string name;
  std::string description;
  std::unique_ptr<Learner> (*make)() = nullptr;
  bool informed = true;  // whether its models are informed (cost_model.h) before they have any support
};
// scratch is an untrained prior (it needs no tasks but the encoding), pooled serves as zero-shot and for fine-tuning,
// analytic is pre-defined, random is the floor.
const std::vector<LearnerEntry>& learners();
const LearnerEntry& learner_named(std::string_view name);      // UserError (did you mean)
std::unique_ptr<Learner> make_learner(std::string_view name);  // likewise

// Models that are trained on no dataset, with the encoding that each is for: scratch; black-box, a Gaussian process
// that knows a program's knobs and times only; analytic; random.
struct UntrainedModel {
  std::string name, learner, encoding;
};
const std::vector<UntrainedModel>& untrained_models();

// The learner's model, or an ensemble of settings.members of them, guarded if so set. Errors as Learner::train.
std::unique_ptr<CostModel> trained(const Learner& learner, const TaskSet& tasks, const LearnerSettings& settings,
                                   base::Monitor& monitor);

// The model with what is known of the tasks' platforms besides: a further network each where there is one a platform
// (ridge, nearest, residual), a step towards each new platform of the length that one of `known` + 1 platforms has (all
// other networks). UserError for kinds that cannot go on (trees) and for another encoding's features.
std::unique_ptr<CostModel> continued(const CostModel& model, std::int64_t known, const TaskSet& tasks,
                                     const LearnerSettings& settings, base::Monitor& monitor);

}  // namespace graft::meta
