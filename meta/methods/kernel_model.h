// Kernel ridge regressions averaged by stacking: the models of `scratch`, which has no sources, and of `residual`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "meta/cost_model.h"
#include "meta/methods/stacking.h"
#include "meta/sources/source_basis.h"
#include "meta/sources/trunk.h"

namespace graft::meta {

// kind "scratch": has no information (all scores equal) until it has support; then kernel ridge regression of -log
// seconds, centred per workload, on the support alone: a linear plus a Gaussian kernel on normalised features.
// Mixtures, widths and noises of a grid are averaged by stacking (stacking.h).
std::unique_ptr<CostModel> make_scratch_model(std::int64_t features);
// The regressions of a fitted `scratch` or `residual`, for inspection: fit/regressions (for each its kernel, noise,
// weight and amplitude: kernel_model.cpp), fit/alpha, and their inputs. Empty for other models.
base::Arrays regressions_of(const CostModel& fitted);

// A network of all sources, and its share in the mean that regressions start from.
struct SharedTrunk {
  Trunk trunk;
  float share = 0;
};

// kind "residual": the mean of the sources by their shares until it has support; then the same regressions, with the
// sources' scores as further inputs, with and without their mean as the starting point, and, if the sources are
// forests, also with the leaves of their trees in place of features. Contains scratch and (nearly) ridge, so that
// misleading sources can be ignored. With a trunk, also with its hidden layers in place of features, and its score is a
// part of the mean. prior: the quality of its regressions on other platforms (stacking.h).
std::unique_ptr<CostModel> make_residual_model(SourceBasis basis, std::optional<SharedTrunk> trunk = {},
                                               StackingPrior prior = {});
// The data of such a prior. From a pool of programs of one workload the regressions get the first `support`, and
// predict the others up to view.size(). view[i]: the program that the sources see in place of program i; i itself if
// they see the right one.
struct StackingTrial {
  std::int64_t support = 0;
  std::vector<std::int64_t> view;
};
class StackingMoments {
 public:
  explicit StackingMoments(SourceBasis basis, std::optional<SharedTrunk> trunk = {});
  // trials x upper triangle: the second moments of the regressions' residuals on the predicted programs' speeds, about
  // their mean and relative to the speeds' variance. For a regression without solution the residual is the whole speed;
  // zeros if nothing varies. At least two programs of support.
  std::vector<std::vector<double>> of(const Examples& pool, std::span<const StackingTrial> trials) const;

 private:
  std::shared_ptr<const CostModel> model_;
};
std::int64_t stacking_regressions(const SourceBasis& basis, bool has_trunk);  // their number
std::unique_ptr<CostModel> scratch_model_from(const base::Arrays& state);
std::unique_ptr<CostModel> residual_model_from(const base::Arrays& state);

}  // namespace graft::meta
