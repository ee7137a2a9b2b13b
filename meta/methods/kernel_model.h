// Kernel ridge regressions averaged by stacking: the models of `scratch`, which has no sources, and of `residual`.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "meta/cost_model.h"
#include "meta/methods/stacking.h"
#include "meta/sources/source_basis.h"

namespace graft::meta {

// kind "scratch": knows nothing (all scores equal) until it has support; then kernel ridge regression of -log seconds,
// centred per workload, on the support alone: a linear plus a Gaussian kernel on normalised features. Mixtures, widths
// and noises of a grid are averaged by stacking (stacking.h).
std::unique_ptr<CostModel> make_scratch_model(std::int64_t features);
// The regressions of a fitted `scratch` or `residual`, to look at: fit/regressions (of each its kernel, noise, weight
// and amplitude: kernel_model.cpp), fit/alpha, and all that they are of. Empty of other models.
base::Arrays regressions_of(const CostModel& fitted);

// kind "residual": the mean of the sources by their shares until it has support; then the same regressions, with the
// sources' scores as further inputs and their mean as what is regressed from or not, and, if the sources are forests,
// also with the leaves of their trees in place of features. Contains scratch and (nearly) ridge, so that sources that
// mislead can be left out.
// prior: how good its regressions are on other platforms (stacking.h).
std::unique_ptr<CostModel> make_residual_model(SourceBasis basis, StackingPrior prior = {});
// What such a prior is made of. Of a pool of programs of one workload the first `support` are given to the regressions,
// the others up to view.size() are predicted. view[i]: the program that the sources take program i for, i itself if
// they see what there is.
struct StackingTrial {
  std::int64_t support = 0;
  std::vector<std::int64_t> view;
};
class StackingMoments {
 public:
  explicit StackingMoments(SourceBasis basis);
  // trials x upper triangle: the second moments of what the regressions leave over of the predicted programs' speeds,
  // about their mean and relative to the speeds' variance. A regression without solution leaves all of it over; zeros
  // if nothing varies. Two programs of support at least.
  std::vector<std::vector<double>> of(const Examples& pool, std::span<const StackingTrial> trials) const;

 private:
  std::shared_ptr<const CostModel> model_;
};
std::int64_t stacking_regressions(const SourceBasis& basis);  // how many there are
std::unique_ptr<CostModel> scratch_model_from(const base::Arrays& state);
std::unique_ptr<CostModel> residual_model_from(const base::Arrays& state);

}  // namespace graft::meta
