// The kinds of cost models, each made by a learner or read back from its state. Private to meta: others see
// cost_model.h.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "meta/cost_model.h"
#include "meta/forests/boosting.h"
#include "meta/forests/forest.h"
#include "meta/gradient/adaptation.h"
#include "meta/models/heads.h"
#include "meta/models/stacking.h"
#include "meta/network.h"

namespace graft::meta {

// Whether the network's inputs are this encoding's columns, and trees where it needs them.
bool takes(const NetworkShape& shape, const features::Encoding& encoding);

// kind "network": one network. adapted = adapted_parameters of adaptation.h; the adapted model can be adapted again.
struct NetworkState {
  NetworkShape shape;
  Normalisation normalisation;
  std::vector<float> theta;
  Adaptation adaptation;
};
std::unique_ptr<CostModel> make_network_model(NetworkState state);

// kind "embedding": a network of several outputs under a head in closed form. adapted = adapted of heads.h.
struct EmbeddingState {
  NetworkShape shape;
  Normalisation normalisation;
  std::vector<float> theta;
  Head head;
};
std::unique_ptr<CostModel> make_embedding_model(EmbeddingState state);

// One network, or one forest, per source platform, trained on -log seconds centred per workload.
struct SourceBasis {
  struct Source {
    std::string platform;
    float spread = 1;           // standard deviation of its labels
    std::vector<float> target;  // what it has in target_columns
    bool doubted = false;       // counts nothing before anything is measured
  };
  std::vector<Source> sources;
  Normalisation normalisation;
  NetworkShape shape;
  std::vector<std::vector<float>> thetas;                    // one per source; none where there are forests
  std::vector<DecisionForest> forests;                       // one per source; none where there are networks
  std::vector<std::shared_ptr<const ForestScorer>> scorers;  // of the forests
  std::vector<std::int64_t> target_columns;                  // of the features: of_target

  // programs x sources: what each source would score, times scale(). Where one platform's programs differ by factors
  // and the others' by per cents, it would decide alone on the mean of all.
  base::Matrix predict(const features::Encoded& programs) const;
  float scale(std::size_t source) const;  // the mean spread over this source's; 1 where that is 0
  // programs x sources: how like the target each of them is, 1 in all: alike, or where there are target_columns by
  // exp(-d^2 / 2) of the distance d in them. Machines alike like the same programs.
  base::Matrix likeness(const features::Encoded& programs) const;
  // What each of them counts before anything is measured: its likeness, of those that count, 1 in all.
  base::Matrix shares(const features::Encoded& programs) const;
  bool counts(std::size_t source) const;     // not doubted, or all are
  std::vector<double> equal_shares() const;  // of those that count, 1 in all
  bool takes(const features::Encoding& encoding) const;
};

// Doubts sources that order these programs against the others: while there are three, the one whose mean rank
// correlation with the others' predictions is least, if it is below 0, as of times that were reversed or are of other
// programs. No measurement is looked at.
void doubt_contrary_sources(SourceBasis& basis, std::span<const Examples> groups);

// A source more; that of a platform that is known is replaced.
void add(SourceBasis& basis, const SourceBasis::Source& source, std::vector<float> theta);
void add(SourceBasis& basis, const SourceBasis::Source& source, DecisionForest forest);
SourceBasis without(SourceBasis basis, std::size_t source);
void put(const SourceBasis& basis, base::Arrays& arrays);
SourceBasis basis_from(const base::Arrays& arrays);

// Ridge regression on a basis: minimises sum (y - B w)^2 + lambda n |w - w0|^2 with y and the columns of B centred per
// group, n = rows. Few coefficients on strong features: with a handful of measurements hard to beat.
struct BasisGroup {
  base::Matrix basis;               // rows x sources
  std::vector<double> log_seconds;  // rows
};
std::vector<double> ridge_weights(const std::vector<BasisGroup>& groups, const std::vector<double>& prior,
                                  double lambda);

// The posterior covariance of those weights (sources x sources, row after row), where noise and prior are Gaussian:
// s^2 (B^T B + lambda n I)^-1, s^2 = the minimum above / n. Empty without rows.
std::vector<double> ridge_covariance(const std::vector<BasisGroup>& groups, const std::vector<double>& prior,
                                     double lambda);

// kind "ridge": scores = basis * weights; adapted moves the weights by ridge_weights, shrunk to what they were (at
// first equal shares: the mean of the sources that count). score_with_spread: sqrt(b^T covariance b), 0 without
// support.
std::unique_ptr<CostModel> make_ridge_model(SourceBasis basis, std::vector<double> weights, double lambda);

// The lambda of a grid under which the support is likeliest, with noise of unknown variance (MacKay 1992). 1 where the
// groups say nothing.
double likeliest_lambda(const std::vector<BasisGroup>& groups, const std::vector<double>& prior);

// kind "bayes-ridge": ridge with the likeliest lambda of each support.
std::unique_ptr<CostModel> make_bayes_ridge_model(SourceBasis basis, std::vector<double> weights);

// kind "nearest": the mean of the sources that count until it has support, then the one source whose scores rank the
// support best (mean rank correlation over the workloads; the first of equals).
std::unique_ptr<CostModel> make_nearest_model(SourceBasis basis);

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

// kind "gbt": the sum of a forest's trees. adapted grows further ones on the support, from the forest's own scores:
// adaptation.loss, and as many trees at such a rate as its descent for the support says. A forest of no trees knows
// nothing until it has support.
struct ForestState {
  DecisionForest forest;
  Adaptation adaptation;
};
std::unique_ptr<CostModel> make_forest_model(ForestState state);
// How the trees of an adaptation are grown; `trees` and `rate` are the descent's. Fewer decisions than in training:
// there are few rows.
BoostingSettings adapting_trees(const Adaptation::Descent& descent);

// A model that is a part of another: its state under the prefix NAME/, and back. No model holds one of its own kind.
void put_part(const CostModel& model, const std::string& name, base::Arrays& arrays);
std::unique_ptr<CostModel> part_from(const base::Arrays& state, const std::string& name, std::string_view of_kind);
// Several of them.
using Members = std::vector<std::unique_ptr<CostModel>>;
void put_members(const Members& members, base::Arrays& arrays);
Members members_from(const base::Arrays& state, std::string_view of_kind);
Members copies(const Members& members);
bool all_take(const Members& members, const features::Encoding& encoding);

// kind "chosen": several models of which the support chooses. Without one it is the first, the most trusted; fitted, it
// is the fitted member that, fitted to four fifths of the support, puts the left fifth in the best order among all of
// it (five folds). A later member must be better than those before it by more than chance would make it with so few
// rows. It is the guard against negative transfer where the last member is `scratch`.
std::unique_ptr<CostModel> make_chosen_model(Members members);

// kind "adapted": a prior of another kind and the support that it was adapted to (CostModel::adapted makes it). Its
// state is no more than that: reading it fits the prior again.

// kind "ensemble": the mean of at least two members' scores; spread: their standard deviation (n - 1). Each is fitted
// to its own draw of the support. Scores of losses that compare within groups only have an offset a workload, which is
// part of the spread.
std::unique_ptr<CostModel> make_ensemble_model(Members members, std::uint64_t seed);
// A member's share: 80 % of each group's rows, without replacement.
std::vector<Examples> bootstrap_share(std::span<const Examples> groups, std::uint64_t seed, int member);

// kind "random": scores are a hash of the features; the floor of every table.
std::unique_ptr<CostModel> make_random_model(std::uint64_t seed);

// kind "column": less than the first column of an encoding that predicts times (features/analytic.h). Nothing adapts
// it.
std::unique_ptr<CostModel> make_column_model();

// Any kind, from kind() and state(). UserError for an unknown kind or a state that does not hold together.
std::unique_ptr<CostModel> model_from(const std::string& kind, const base::Arrays& state);
// How each kind is read; model_from picks.
std::unique_ptr<CostModel> network_model_from(const base::Arrays& state);
std::unique_ptr<CostModel> embedding_model_from(const base::Arrays& state);
std::unique_ptr<CostModel> ridge_model_from(const base::Arrays& state);
std::unique_ptr<CostModel> bayes_ridge_model_from(const base::Arrays& state);
std::unique_ptr<CostModel> nearest_model_from(const base::Arrays& state);
std::unique_ptr<CostModel> scratch_model_from(const base::Arrays& state);
std::unique_ptr<CostModel> residual_model_from(const base::Arrays& state);
std::unique_ptr<CostModel> forest_model_from(const base::Arrays& state);
std::unique_ptr<CostModel> ensemble_model_from(const base::Arrays& state);
std::unique_ptr<CostModel> chosen_model_from(const base::Arrays& state);
std::unique_ptr<CostModel> adapted_model_from(const base::Arrays& state);
std::unique_ptr<CostModel> random_model_from(const base::Arrays& state);
std::unique_ptr<CostModel> column_model_from(const base::Arrays& state);

}  // namespace graft::meta
