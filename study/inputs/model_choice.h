// Which kind of model is trained, on which features: the user's choice, and the decisions that follow from it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/document.h"
#include "datasets/dataset.h"
#include "features/encoding.h"
#include "meta/learner.h"
#include "study/inputs/setting.h"

namespace graft::study {

// model "": trees if the learner can have them, no other setting implies a network and the data are not tables, else an
// MLP.
struct ModelChoice {
#include "study/inputs/settings/model_choice.def"
  ModelChoice() = default;
  explicit ModelChoice(std::string kind) : model(std::move(kind)) {}
};

// A choice with its open settings decided.
class ModelPlan {
 public:
  // FieldError for unknown or contradictory settings, before anything is read. `learner` decides if no model
  // is named.
  ModelPlan(ModelChoice choice, const std::string& learner, std::uint64_t seed, int threads);
  // The learner that a name means with this model: with trees, the replacements of the pooled network and of
  // the regression from scratch. FieldError for trees of a learner of networks.
  std::string learner_for(const std::string& name) const;
  // The same refusal, regardless of replacements.
  void check(const std::string& learner) const;
  // If no encoding is requested, rows of tables get the only one that fits, and an MLP unless trees are requested.
  void fit(const std::vector<datasets::Dataset>& data);

  const std::string& model() const { return choice_.model; }
  const features::Encoding& encoding() const { return *encoding_; }
  const meta::LearnerSettings& settings() const { return settings_; }
  void put(base::Document& request) const;           // the settings that affect the numbers
  void put_training(base::Document& request) const;  // those of them that a continued model does not have itself

 private:
  ModelChoice choice_;
  bool model_follows_data_ = false;  // it was not requested, and both are possible
  meta::LearnerSettings settings_;
  const features::Encoding* encoding_ = nullptr;
};

}  // namespace graft::study
