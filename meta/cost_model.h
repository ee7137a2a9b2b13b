// A cost model scores programs of a platform, higher is faster, and has two verbs: `score` and `adapted`. Fitting,
// updating, fine-tuning and few-shot adaptation are all `adapted`, always from the prior: a model is a function of
// (prior, trials). Zero-shot is the empty support; scratch is an untrained prior.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/arrays.h"
#include "base/monitor.h"
#include "meta/task_set.h"

namespace graft::meta {

struct Scores {
  std::vector<float> mean;    // higher is faster; comparable within one workload only
  std::vector<float> spread;  // standard deviation of the model's belief; 0 where it has none
};

// Scores without a belief in how wrong they are.
Scores certain(std::vector<float> scores);

struct LearnerSettings;  // learner.h

class CostModel {
 public:
  virtual ~CostModel() = default;
  // `programs` in the encoding that the model was made for; one score each. Thread-safe.
  // spread is left at 0 by models whose belief costs more than their scores.
  virtual Scores score(const features::Encoded& programs) const = 0;
  // The same scores, with the spread of every model that has one.
  virtual Scores score_with_spread(const features::Encoded& programs) const { return score(programs); }
  // A model for the platform that the support was measured on (one Examples per workload). Deterministic. It keeps its
  // prior and its support: adapted(a)->adapted(b) is adapted(a and b together). A program that both measured counts as
  // b measured it; if b is of another platform than a, the result is the prior adapted to b. An empty support gives an
  // equal model.
  std::unique_ptr<CostModel> adapted(std::span<const Examples> support) const;
  // What an adapted model scores by: this model fitted to the support and nothing else, kept by nothing. Learners that
  // adapt inside their training use it; others call `adapted`.
  virtual std::unique_ptr<CostModel> fitted(std::span<const Examples> support) const = 0;
  virtual std::unique_ptr<CostModel> clone() const = 0;
  // What it was adapted from: an equal model for one that was not adapted.
  virtual std::shared_ptr<const CostModel> prior() const { return clone(); }
  // What it was adapted to, all of one platform; nothing for one that was not adapted.
  virtual std::span<const Examples> support() const { return {}; }
  // Whether the scores mean something: they depend on what the model was trained on or adapted to, or on a prediction
  // made by hand. False for a model that scores all programs alike until it has support, and for one by chance.
  virtual bool is_informed() const = 0;
  // Whether `programs` may be of this encoding: as many columns as the model was made for, trees where it needs them.
  virtual bool takes(const features::Encoding& encoding) const = 0;
  // Kind and all numbers, for the model file; `load_model` of model_file.h is the way back.
  virtual std::string_view kind() const = 0;
  virtual base::Arrays state() const = 0;
  // Whether the model can learn of further platforms without the data that it was trained on.
  virtual bool can_continue() const { return false; }
  // The model with what is known of the tasks' platforms besides, as it would be if it had been trained on `known`
  // platforms so far. Called through `continued` of methods.h, which checks.
  virtual std::unique_ptr<CostModel> continued(std::int64_t known, const TaskSet& tasks,
                                               const LearnerSettings& settings, base::Monitor& monitor) const;
};

// UserError for a model that cannot continue.
void check_continues(const CostModel& model);

}  // namespace graft::meta
