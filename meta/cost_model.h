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
  std::vector<float> spread;  // standard deviation of the model's uncertainty; 0 if it has none
};

// Scores without spread.
Scores certain(std::vector<float> scores);

struct LearnerSettings;  // learner.h

class CostModel {
 public:
  virtual ~CostModel() = default;
  // Scores `programs`, which must be in the encoding that the model was made for. Thread-safe.
  // spread is left at 0 by models for which it costs more than the scores.
  virtual Scores score(const features::Encoded& programs) const = 0;
  // The same scores, with the spread of every model that has one.
  virtual Scores score_with_spread(const features::Encoded& programs) const { return score(programs); }
  // A model for the platform that the support was measured on (one Examples per workload). Deterministic. It keeps its
  // prior and its support: adapted(a)->adapted(b) is adapted(a and b together). For a program in both, b's measurement
  // counts; if b is of another platform than a, the result is the prior adapted to b. An empty support gives
  // an equal model.
  std::unique_ptr<CostModel> adapted(std::span<const Examples> support) const;
  // The model that an adapted model scores with: this model fitted to the support only, without keeping prior and
  // support. For learners that adapt inside their training; others call `adapted`.
  virtual std::unique_ptr<CostModel> fitted(std::span<const Examples> support) const = 0;
  virtual std::unique_ptr<CostModel> clone() const = 0;
  // The model that it was adapted from: an equal model if it was not adapted.
  virtual std::shared_ptr<const CostModel> prior() const { return clone(); }
  // The support that it was adapted to, all of one platform; empty if it was not adapted.
  virtual std::span<const Examples> support() const { return {}; }
  // Whether the scores carry information: from training, adaptation, or a hand-made prediction. False
  // for a model that scores all programs equally until it has support, and for random scores.
  virtual bool is_informed() const = 0;
  // Whether `programs` may be of this encoding: as many columns as the model was made for, and trees if it needs them.
  virtual bool takes(const features::Encoding& encoding) const = 0;
  // Kind and all numbers, for the model file; `load_model` of model_file.h reads them back.
  virtual std::string_view kind() const = 0;
  virtual base::Arrays state() const = 0;
  // Whether the model can learn from further platforms without the data that it was trained on.
  virtual bool can_continue() const { return false; }
  // What it learnt of a platform that it was trained on, and of no other; null where it cannot tell.
  virtual std::unique_ptr<CostModel> of_source(std::string_view) const { return nullptr; }
  // The model extended by the tasks' platforms, as if it had been trained on `known` platforms
  // so far. Called through `continued` of methods.h, which checks.
  virtual std::unique_ptr<CostModel> continued(std::int64_t known, const TaskSet& tasks,
                                               const LearnerSettings& settings, base::Monitor& monitor) const;
};

// UserError for a model that cannot continue.
void check_continues(const CostModel& model);

}  // namespace graft::meta
