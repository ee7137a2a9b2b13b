// One network, or forest, per source platform; adapts by ridge regression on their scores. `ridge` has its shrinkage
// from the sources, `bayes-ridge` from the evidence of each support.
#pragma once

#include <memory>
#include <vector>

#include "meta/cost_model.h"
#include "meta/learner.h"
#include "meta/sources/source_basis.h"

namespace graft::meta {

// Ridge regression on a basis: minimises sum (y - B w)^2 + lambda n |w - w0|^2 with y and the columns of B centred per
// group, n = rows. Few coefficients on strong features: hard to beat with a handful of measurements.
struct BasisGroup {
  base::Matrix basis;               // rows x sources
  std::vector<double> log_seconds;  // rows
};
std::vector<double> ridge_weights(const std::vector<BasisGroup>& groups, const std::vector<double>& prior,
                                  double lambda);

// The posterior covariance of those weights (sources x sources, row after row), if noise and prior are Gaussian:
// s^2 (B^T B + lambda n I)^-1, s^2 = the minimum above / n. Empty without rows.
std::vector<double> ridge_covariance(const std::vector<BasisGroup>& groups, const std::vector<double>& prior,
                                     double lambda);

// kind "ridge": scores = basis * weights; adapted moves the weights by ridge_weights, shrunk to their earlier values
// (at first equal shares: the mean of the trusted sources). score_with_spread: sqrt(b^T covariance b), 0 without
// support.
std::unique_ptr<CostModel> make_ridge_model(SourceBasis basis, std::vector<double> weights, double lambda);

// The lambda of a grid with the largest evidence of the support, with noise of unknown variance (MacKay 1992). 1 if the
// groups have no information.
double likeliest_lambda(const std::vector<BasisGroup>& groups, const std::vector<double>& prior);

// kind "bayes-ridge": ridge with the likeliest lambda of each support.
std::unique_ptr<CostModel> make_bayes_ridge_model(SourceBasis basis, std::vector<double> weights);

std::unique_ptr<CostModel> ridge_model_from(const base::Arrays& state);
std::unique_ptr<CostModel> bayes_ridge_model_from(const base::Arrays& state);
std::unique_ptr<Learner> make_ridge_learner();
std::unique_ptr<Learner> make_bayes_ridge_learner();

}  // namespace graft::meta
