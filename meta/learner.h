// A meta-learner makes, from many tasks, a cost model that adapts to a new one. By name from one table.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/monitor.h"
#include "meta/cost_model.h"
#include "meta/network.h"
#include "meta/objectives.h"
#include "meta/task_set.h"

namespace graft::meta {

struct LearnerSettings {
  NetworkShape network;            // its inputs follow from the encoding
  std::string backend = "native";  // or "torch"
  std::int64_t steps = 0;          // outer steps, or trees; 0: the learner's default
  std::optional<Loss> loss;        // of learners that descend one; none: the learner's default
  int members = 1;                 // from 2 on: an ensemble of so many models, each trained on its own draw of rows
  std::uint64_t seed = 1;
  int threads = 1;
};

// UserError unless a network of this kind takes what the encoding makes: a TreeGRU trees, an MLP anything else.
void check_fits(NetworkKind kind, const features::Encoding& encoding);

class Learner {
 public:
  virtual ~Learner() = default;
  virtual std::unique_ptr<CostModel> train(const TaskSet& tasks, const LearnerSettings& settings,
                                           base::Monitor& monitor) const = 0;
};

struct LearnerEntry {
  std::string name;
  std::string description;
  std::unique_ptr<Learner> (*make)() = nullptr;
};
// scratch (an untrained prior: needs no tasks but the encoding), pooled (zero-shot and fine-tune), nearest, ridge,
// residual, maml, fomaml, reptile, anil, gbt (boosted trees), gbt-scratch, analytic (pre-defined), random (the floor).
const std::vector<LearnerEntry>& learners();
std::unique_ptr<Learner> make_learner(std::string_view name);  // UserError (did you mean)

// Models that are trained on no dataset, with the encoding that each is for: scratch; black-box, a Gaussian process
// that knows a program's knobs and times only; analytic; random.
struct UntrainedModel {
  std::string name, learner, encoding;
};
const std::vector<UntrainedModel>& untrained_models();

// The learner's model, or an ensemble of settings.members of them.
std::unique_ptr<CostModel> trained(const Learner& learner, const TaskSet& tasks, const LearnerSettings& settings,
                                   base::Monitor& monitor);

}  // namespace graft::meta
