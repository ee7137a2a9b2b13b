// Shared by the models that score by a weighted sum of their sources: ridge and nearest.
#pragma once

#include <memory>
#include <vector>

#include "meta/cost_model.h"
#include "meta/sources/source_basis.h"

namespace graft::meta {

// basis (programs x sources) times weights.
std::vector<float> combined(const base::Matrix& basis, const std::vector<double>& weights);

// Copies of an adapted model share the sources' networks: only the weights differ.
class BasisModel : public CostModel {
 public:
  BasisModel(std::shared_ptr<const SourceBasis> basis, std::vector<double> weights);
  Scores score(const features::Encoded& programs) const override;
  bool is_informed() const override { return true; }
  bool takes(const features::Encoding& encoding) const override { return basis_->takes(encoding); }
  base::Arrays state() const override;
  bool can_continue() const override { return true; }

 protected:
  std::shared_ptr<const SourceBasis> basis_;
  std::vector<double> weights_;
};

// The weights among a model's arrays. UserError if their number is not that of the sources.
std::vector<double> weights_from(const base::Arrays& state, const SourceBasis& basis);

}  // namespace graft::meta
