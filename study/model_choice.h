// Which kind of model is trained, on which features: what somebody says of it, and what that comes to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/document.h"
#include "datasets/dataset.h"
#include "features/encoding.h"
#include "meta/learner.h"

namespace graft::study {

struct ModelChoice {
  std::string model = "mlp";  // mlp, treegru or gbt; "": trees if the learner can have them, nothing else says that a
                              // network is meant and the data are no tables, else an MLP
  std::string encoding;       // "": what is usual for the model, or for tables
  std::vector<std::int64_t> hidden;      // widths of the hidden layers; none: what is usual for the model
  std::int64_t embedding, units, slots;  // treegru
  std::string backend = "native", device = "cpu", loss;  // loss "": the learner's own
  std::int64_t steps = 0;                                // 0: the learner's own
  std::int64_t members = 1;                              // from 2 on an ensemble
  bool guard = false;
  ModelChoice();
};

// A choice with all decided that it left open.
class ModelPlan {
 public:
  // FieldError for what is unknown or does not go together, before anything is read. `learner` decides where no model
  // is named.
  ModelPlan(ModelChoice choice, const std::string& learner, std::uint64_t seed, int threads);
  // The learner that a name means with this model: with trees, what takes the place of the pooled network and of the
  // regression from scratch. FieldError for trees of a learner of networks.
  std::string learner_for(const std::string& name) const;
  // The same refusal, whatever takes its place.
  void check(const std::string& learner) const;
  // Where no encoding is asked for, rows of tables have the one that they can have, and an MLP unless trees are asked
  // for.
  void fit(const std::vector<datasets::Dataset>& data);

  const std::string& model() const { return choice_.model; }
  const features::Encoding& encoding() const { return *encoding_; }
  const meta::LearnerSettings& settings() const { return settings_; }
  void put(base::Document& request) const;           // what decides the numbers
  void put_training(base::Document& request) const;  // of these what a model that is continued has not of its own

 private:
  ModelChoice choice_;
  bool model_follows_data_ = false;  // it was not asked for, and both would do
  meta::LearnerSettings settings_;
  const features::Encoding* encoding_ = nullptr;
};

}  // namespace graft::study
