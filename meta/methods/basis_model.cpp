#include "meta/methods/basis_model.h"

#include <cassert>
#include <utility>

#include "meta/state.h"

namespace graft::meta {

std::vector<float> combined(const base::Matrix& basis, const std::vector<double>& weights) {
  std::vector<float> out(std::size_t(basis.rows));
  for (std::int64_t r = 0; r < basis.rows; ++r) {
    double sum = 0;
    for (std::int64_t s = 0; s < basis.columns; ++s) sum += weights[std::size_t(s)] * double(basis.at(r, s));
    out[std::size_t(r)] = float(sum);
  }
  return out;
}

BasisModel::BasisModel(std::shared_ptr<const SourceBasis> basis, std::vector<double> weights)
    : basis_(std::move(basis)), weights_(std::move(weights)) {
  assert(!weights_.empty() && weights_.size() == basis_->sources.size());
}

Scores BasisModel::score(const features::Encoded& programs) const {
  return certain(combined(basis_->predict(programs), weights_));
}

base::Arrays BasisModel::state() const {
  base::Arrays out;
  put(*basis_, out);
  put_values(out, "weights", std::vector<float>(weights_.begin(), weights_.end()));
  return out;
}

std::vector<double> weights_from(const base::Arrays& state, const SourceBasis& basis) {
  const std::vector<float>& weights = values_of(state, "weights", std::int64_t(basis.sources.size()));
  return {weights.begin(), weights.end()};
}

}  // namespace graft::meta
