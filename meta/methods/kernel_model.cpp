#include "meta/methods/kernel_model.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/statistics.h"
#include "meta/forests/boosting.h"
#include "meta/networks/gemm.h"
#include "meta/sources/training.h"
#include "meta/state.h"

namespace graft::meta {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXf;

// k(a, b) = (1 - trust) own(a, b) + trust <s(a), s(b)> / p
// s: scores of the p sources, in units of the mean variance that they have in the support, each times the root of p
// times its similarity to the target (SourceBasis::likeness). own, of the programs' features:
//   (1 - share) <a, b> / d + share exp(-|a - b|^2 / (2 width^2 d)) of the normalised features, d of which vary in the
//   support; or
//   leaves: the share of the sources' trees in which a and b end in the same leaf (Breiman 2000, "Some infinity
//   theory for predictor ensembles"), a tree counting as much as its leaves say. Programs are then similar if what
//   decides on the sources' speed does not distinguish them; or
//   hidden: <h(a), h(b)>, of the hidden layers of a network for all sources (sources/trunk.h), each about its mean in
//   the support and with mean square 1 / layers there.
enum class SimilarBy { features, leaves, hidden };
struct Kernel {
  SimilarBy own = SimilarBy::features;
  float share = 0.5f, width = 1, trust = 0;
  float from_mean = 0;  // 1: regress from the mean of the sources, 0: from nothing
  bool operator==(const Kernel&) const = default;
};

// Programs as the kernel sees them.
struct Rows {
  base::Matrix features;  // normalised, the sum of a program's rows
  base::Matrix sources;   // scaled scores; no columns without sources
  Vector norms;           // squared, of the features
  LeafTable leaves;       // of forests
  base::Matrix hidden;    // of the trunk, scaled; no columns without one
};

// The trees of all sources as one forest.
struct JoinedForest {
  DecisionForest forest;
  std::vector<std::size_t> source;  // of each tree
  ForestScorer scorer;
};

std::shared_ptr<const JoinedForest> joined_forest(const SourceBasis& basis) {
  if (basis.forests.empty()) return nullptr;
  DecisionForest all;
  all.features = basis.forests.front().features;
  std::vector<std::size_t> source;
  for (std::size_t s = 0; s < basis.forests.size(); ++s) {
    append(all, basis.forests[s]);
    source.resize(std::size_t(all.trees()), s);
  }
  ForestScorer scorer(all);
  return std::make_shared<const JoinedForest>(JoinedForest{std::move(all), std::move(source), std::move(scorer)});
}

Eigen::Map<const Matrix> in_rows(const base::Matrix& matrix) {
  return {matrix.values.data(), matrix.rows, matrix.columns};
}

Matrix products(const base::Matrix& a, const base::Matrix& b) {
  Matrix out(a.rows, b.rows);
  gemm(Transposed::no, Transposed::yes, a.rows, b.rows, a.columns, a.values.data(), a.columns, b.values.data(),
       b.columns, 0.0f, out.data(), b.rows);
  return out;
}

// Everything the kernel needs that does not depend on its parameters; empty what it does not need.
struct Similarity {
  Matrix dots, distances, proximity, agreement, hidden;  // proximity: of the leaves, agreement: of the sources

  Similarity(const Rows& left, const Rows& right, float varying) {
    if (left.leaves.rows() > 0) {
      const base::Matrix shared = left.leaves.shared(right.leaves);
      proximity = in_rows(shared);
    }
    dots = products(left.features, right.features);
    distances.resize(dots.rows(), dots.cols());
    for (Eigen::Index i = 0; i < dots.rows(); ++i) {
      distances.row(i) =
          (left.norms[i] + right.norms.transpose().array() - 2 * dots.row(i).array()).max(0.0f) / varying;
    }
    dots /= varying;
    if (left.hidden.columns > 0) hidden = products(left.hidden, right.hidden);
    if (left.sources.columns > 0) agreement = products(left.sources, right.sources) / float(left.sources.columns);
  }
  Matrix kernel(const Kernel& k) const {
    if (k.trust == 1) return agreement;
    Matrix out = k.own == SimilarBy::hidden ? hidden : proximity;
    if (k.own == SimilarBy::features)
      out = (1 - k.share) * dots.array() + k.share * (distances.array() / (-2 * k.width * k.width)).exp();
    if (k.trust > 0) out = (1 - k.trust) * out + k.trust * agreement;
    return out;
  }
  Similarity leading(Eigen::Index rows) const {
    Similarity out = *this;
    for (Matrix* const each : {&out.dots, &out.distances, &out.proximity, &out.agreement, &out.hidden}) {
      if (each->size() > 0) *each = each->topLeftCorner(rows, rows).eval();
    }
    return out;
  }
};

// Mean variance that the kernel gives to rows within a group.
float variance_within(const Matrix& kernel, const std::vector<std::int64_t>& sizes) {
  float sum = 0;
  std::int64_t begin = 0;
  for (const std::int64_t size : sizes) {
    const auto block = kernel.block(begin, begin, size, size);
    sum += float(size) * (block.diagonal().mean() - block.mean());
    begin += size;
  }
  return std::max(sum / float(begin), 1e-6f);
}

void centre(Eigen::Ref<Vector> values, const std::vector<std::int64_t>& sizes) {
  std::int64_t begin = 0;
  for (const std::int64_t size : sizes) {
    values.segment(begin, size).array() -= values.segment(begin, size).mean();
    begin += size;
  }
}

// What the square of a row's residual counts in the choice of weights: (2 r - 1) / n for the r-th slowest of the n rows
// of its group, mean 1, because a search measures the top of the order. As roots: factors of the residuals.
Vector root_weights(const Vector& speed, const std::vector<std::int64_t>& sizes) {
  Vector out(speed.size());
  std::int64_t begin = 0;
  for (const std::int64_t size : sizes) {
    const std::vector<double> ranks =
        base::ranks(std::vector<double>(speed.data() + begin, speed.data() + begin + size));
    for (std::int64_t i = 0; i < size; ++i)
      out[begin + i] = float(std::sqrt((2 * ranks[std::size_t(i)] - 1) / double(size)));
    begin += size;
  }
  return out;
}

// The covariance of the measured speeds: the kernel, an offset of each group about which next to nothing is known, and
// noise (relative to the kernel's variance within groups). Removing the groups' means instead would spoil leave-one-out
// errors: each row is what the others of its group leave over to zero.
Eigen::LLT<Matrix> covariance(Matrix kernel, float noise, const std::vector<std::int64_t>& sizes) {
  const float variance = variance_within(kernel, sizes);
  std::int64_t begin = 0;
  for (const std::int64_t size : sizes) {
    kernel.block(begin, begin, size, size).array() += 30 * variance;
    begin += size;
  }
  kernel.diagonal().array() += noise * variance;
  return Eigen::LLT<Matrix>(kernel);
}

// One of the regressions that are averaged.
struct Choice {
  Kernel kernel;
  float noise = 1;  // relative to the kernel's variance within groups
  float weight = 1;
};

// The regressions that are averaged, those of one kernel and noise next to each other. What the sources know is in
// their scores, which all mixtures with them have, in their trees' leaves, or in a network's hidden layers; "the
// sources are worth nothing" are those of features with trust = from_mean = 0, which are all that there is without
// sources.
std::vector<Choice> grid(bool has_sources, bool has_leaves, bool has_trunk) {
  const std::vector<float> all_noises = {2.0f, 0.5f, 0.1f, 0.01f}, fewer_noises = {0.5f, 0.1f, 0.01f};
  const std::vector<float> starts = has_sources ? std::vector<float>{1.0f, 0.0f} : std::vector<float>{0.0f};
  std::vector<Choice> out;
  const auto add = [&](Kernel kernel, const std::vector<float>& trusts, const std::vector<float>& noises) {
    for (const float trust : trusts) {
      for (const float noise : noises) {
        for (const float from_mean : starts) {
          kernel.trust = trust, kernel.from_mean = from_mean;
          out.push_back({kernel, noise});
        }
      }
    }
  };
  const std::vector<float> mixed = {0.9f, 0.5f, 0.0f};
  if (has_sources) add({has_leaves ? SimilarBy::leaves : SimilarBy::features}, {1.0f}, all_noises);
  if (has_leaves) add({SimilarBy::leaves}, mixed, all_noises);
  if (has_trunk) add({SimilarBy::hidden}, {0.5f, 0.0f}, {2.0f, 0.5f, 0.1f});
  for (const auto& [share, width] : {std::pair{0.0f, 1.0f}, {0.5f, 1.0f}, {0.9f, 1.0f}, {0.9f, 0.4f}}) {
    const Kernel kernel{SimilarBy::features, share, width};
    if (has_leaves) {
      add(kernel, {0.5f, 0.0f}, fewer_noises);
    } else {
      add(kernel, has_sources ? mixed : std::vector<float>{0.0f}, all_noises);
    }
  }
  return out;
}

// visit(first, last, factor) for each covariance of the choices; first ... last - 1 have it, and differ in what they
// regress from. No call if there is no factor.
template <class Visit>
void for_each_covariance(const std::vector<Choice>& all, const Similarity& similarity,
                         const std::vector<std::int64_t>& sizes, const Visit& visit) {
  const auto kernel_of = [](const Choice& choice) {
    Kernel kernel = choice.kernel;
    kernel.from_mean = 0;
    return kernel;
  };
  Matrix kernel;
  for (std::size_t first = 0, last = 0; first < all.size(); first = last) {
    const bool other_kernel = first == 0 || !(kernel_of(all[first]) == kernel_of(all[first - 1]));
    if (other_kernel) kernel = similarity.kernel(all[first].kernel);
    while (last < all.size() && kernel_of(all[last]) == kernel_of(all[first]) && all[last].noise == all[first].noise)
      ++last;
    const Eigen::LLT<Matrix> factor = covariance(kernel, all[first].noise, sizes);
    if (factor.info() == Eigen::Success) visit(first, last, factor);
  }
}

// The choices with their weights by stacking (stacking.h), those that matter: a leave-one-out residual is
// alpha_i / (A^-1)_ii for the covariance A (Rasmussen and Williams 2006, section 5.4.2). Looks at the leading groups of
// at most 256 rows, or at as many of a first one that is larger: the cost is cubic and the choice is not that delicate.
std::vector<Choice> choose(std::vector<Choice> all, const Similarity& similarity, const Vector& speed,
                           const Vector& mean_score, const std::vector<std::int64_t>& sizes,
                           const StackingPrior& prior) {
  constexpr double least_weight = 0.01;
  constexpr std::int64_t most_rows = 256;
  std::vector<std::int64_t> kept;
  std::int64_t rows = 0;
  for (const std::int64_t size : sizes) {
    if (rows > 0 && rows + size > most_rows) break;
    kept.push_back(std::min(size, most_rows));
    rows += kept.back();
  }
  base::Matrix residuals(std::int64_t(all.size()), rows);  // of one without solution: all of the speed
  for (std::int64_t c = 0; c < residuals.rows; ++c) std::copy_n(speed.data(), rows, residuals.row(c).data());
  const auto look = [&](std::size_t first, std::size_t last, const Eigen::LLT<Matrix>& factor) {
    const Matrix inverse = factor.solve(Matrix::Identity(rows, rows));
    for (std::size_t c = first; c < last; ++c) {
      const Vector alpha = inverse * (speed - all[c].kernel.from_mean * mean_score).head(rows);
      Eigen::Map<Vector>(residuals.row(std::int64_t(c)).data(), rows) = alpha.array() / inverse.diagonal().array();
    }
  };
  for_each_covariance(all, rows == speed.size() ? similarity : similarity.leading(rows), kept, look);
  const Vector roots = root_weights(speed.head(rows), kept);
  for (std::int64_t c = 0; c < residuals.rows; ++c)
    Eigen::Map<Vector>(residuals.row(c).data(), rows).array() *= roots.array();
  std::vector<char> trusts;
  for (const Choice& choice : all) trusts.push_back(choice.kernel.from_mean > 0);
  const double variance = double(speed.head(rows).cwiseProduct(roots).squaredNorm()) /
                          double(std::max<std::int64_t>(1, rows - std::int64_t(kept.size())));
  const std::vector<double> weights = stacking_weights(residuals, variance, trusts, prior);
  std::vector<Choice> out;
  float sum = 0;
  for (std::size_t c = 0; c < all.size(); ++c) {
    if (weights[c] < least_weight) continue;
    all[c].weight = float(weights[c]);
    sum += all[c].weight;
    out.push_back(all[c]);
  }
  for (Choice& choice : out) choice.weight /= sum;
  return out;
}

struct Regression {
  Choice choice;
  float amplitude = 0;  // of the covariance: mean of r^T A^-1 r over the rows, r: what is regressed
  std::vector<float> alpha;
};

// The data kept from a support.
struct Fit {
  std::vector<std::int64_t> sizes;   // of the support's groups
  Normalisation normalisation;       // of the features, by the support
  float varying = 1;                 // features that vary in the support
  Vector shares;                     // of the sources in their mean (SourceBasis::shares)
  std::vector<float> source_scale;   // of each source's scores, for the kernel
  Vector hidden_mean, hidden_scale;  // of the trunk's outputs in the support
  Rows rows;                         // of the support
  std::vector<Regression> regressions;
};

// The mean of the regressions as one function of a program.
struct Mean {
  Vector of_sources;                  // what each source's score counts
  std::optional<ForestScorer> trees;  // of forests, in place of that: their trees with other numbers in the leaves
  Vector linear;                      // what each normalised feature counts; empty if no regression looks at features
  std::vector<std::pair<float, Vector>> gaussians;  // width, and what each row of the support counts
  Vector of_hidden;                                 // what each of the trunk's outputs counts; empty if nothing does
  float without_hidden = 0;                         // to be added then
};

// Programs as the sources see them.
struct View {
  base::Matrix scores, shares, likeness;  // programs x sources: SourceBasis::predict, shares, likeness
  base::Matrix hidden;                    // Trunk::of

  View of(const std::vector<std::int64_t>& programs) const;
};

base::Matrix chosen_rows(const base::Matrix& from, const std::vector<std::int64_t>& rows) {
  base::Matrix out(std::int64_t(rows.size()), from.columns);
  for (std::size_t r = 0; r < rows.size(); ++r)
    std::copy_n(from.row(rows[r]).data(), from.columns, out.row(std::int64_t(r)).data());
  return out;
}

View View::of(const std::vector<std::int64_t>& programs) const {
  return {chosen_rows(scores, programs), chosen_rows(shares, programs), chosen_rows(likeness, programs),
          chosen_rows(hidden, programs)};
}

void put(const SharedTrunk& trunk, base::Arrays& arrays) {
  put(trunk.trunk, arrays);
  put_values(arrays, "trunk_share", {trunk.share});
}

class KernelModel final : public CostModel {
 public:
  // A null basis makes it scratch; the grove is the basis's, if it has forests. The trunk may be null.
  KernelModel(std::int64_t features, std::shared_ptr<const SourceBasis> basis,
              std::shared_ptr<const JoinedForest> grove, std::shared_ptr<const SharedTrunk> trunk,
              std::shared_ptr<const StackingPrior> prior, std::shared_ptr<const Fit> fit)
      : features_(features),
        basis_(std::move(basis)),
        grove_(std::move(grove)),
        trunk_(std::move(trunk)),
        prior_(std::move(prior)),
        fit_(std::move(fit)) {
    if (fit_ != nullptr) mean_ = mean_of(*fit_);
  }

  Scores score(const features::Encoded& programs) const override {
    assert(programs.rows.columns == features_);
    if (programs.programs() == 0) return {};
    Scores out{std::vector<float>(std::size_t(programs.programs()), 0.0f),
               std::vector<float>(std::size_t(programs.programs()), 0.0f)};
    Eigen::Map<Vector> mean(out.mean.data(), programs.programs());
    if (fit_ == nullptr) {
      if (basis_ == nullptr) return out;
      const View view = view_of(programs, false);
      mean = mean_of_sources(view, (in_rows(view.scores).array() * in_rows(view.shares).array()).rowwise().sum());
      return out;
    }
    features::Encoded seen;  // by the trees
    if (mean_.trees) {
      seen = features::one_row_each(tree_rows(programs));
      mean_.trees->score(seen.rows, out.mean);
    } else if (basis_ != nullptr) {
      mean = in_rows(basis_->predict(programs)) * mean_.of_sources;
    }
    if (mean_.of_hidden.size() > 0)
      mean.array() += (in_rows(trunk_->trunk.of(programs)) * mean_.of_hidden).array() + mean_.without_hidden;
    if (mean_.linear.size() == 0) return out;
    const base::Matrix own =
        mean_.trees ? fit_->normalisation.apply(std::move(seen)).rows : own_features(fit_->normalisation, programs);
    mean += in_rows(own) * mean_.linear;
    if (mean_.gaussians.empty()) return out;
    Matrix distances = -2 * products(own, fit_->rows.features);
    distances.rowwise() += fit_->rows.norms.transpose();
    distances.colwise() += Vector(in_rows(own).rowwise().squaredNorm());
    distances = distances.cwiseMax(0.0f) / fit_->varying;
    for (const auto& [width, weights] : mean_.gaussians)
      mean += (distances.array() / (-2 * width * width)).exp().matrix() * weights;
    return out;
  }

  // The variance of the mixture of the Gaussian processes whose means the regressions are, without their groups'
  // offsets, which do not affect comparisons. For one process: amplitude (k(x, x) - k(x, X) A^-1 k(X, x)) (Rasmussen
  // and Williams 2006, equation 2.26, and 5.9 for the amplitude).
  Scores score_with_spread(const features::Encoded& programs) const override {
    Scores out = score(programs);
    if (fit_ == nullptr || out.mean.empty()) return out;
    const View view = view_of(programs);
    Rows rows = rows_of(*fit_, programs, view);
    rows.leaves = leaves_of(programs);
    const Similarity own(fit_->rows, fit_->rows, fit_->varying), similar(rows, fit_->rows, fit_->varying);
    const Vector mean = Eigen::Map<const Vector>(out.mean.data(), std::int64_t(out.mean.size())),
                 mean_score = mean_of_sources(view, in_rows(view.scores) * fit_->shares);
    Vector variance = Vector::Zero(mean.size());
    for (const Regression& regression : fit_->regressions) {
      const Kernel& k = regression.choice.kernel;
      const Eigen::LLT<Matrix> factor = covariance(own.kernel(k), regression.choice.noise, fit_->sizes);
      const Matrix to_support = similar.kernel(k), solved = factor.matrixL().solve(to_support.transpose());
      const Vector apart = predicted(regression, to_support, mean_score) - mean;
      for (Eigen::Index i = 0; i < to_support.rows(); ++i) {
        float prior = 1;  // the kernel of a row with itself
        if (k.own == SimilarBy::features) prior = k.share + (1 - k.share) * rows.norms[i] / fit_->varying;
        if (k.own == SimilarBy::hidden) prior = in_rows(rows.hidden).row(i).squaredNorm();
        if (k.trust > 0) {
          const auto s = rows.sources.row(i);
          const float agreement = Eigen::Map<const Vector>(s.data(), std::int64_t(s.size())).squaredNorm();
          prior = (1 - k.trust) * prior + k.trust * agreement / float(s.size());
        }
        variance[i] +=
            regression.choice.weight *
            (regression.amplitude * std::max(0.0f, prior - solved.col(i).squaredNorm()) + apart[i] * apart[i]);
      }
    }
    for (Eigen::Index i = 0; i < variance.size(); ++i) out.spread[std::size_t(i)] = std::sqrt(variance[i]);
    return out;
  }

  std::unique_ptr<CostModel> fitted(std::span<const Examples> support) const override {
    std::vector<Examples> groups;
    features::Encoded programs;
    for (const Examples& group : support) {
      if (group.size() < 2) continue;
      groups.push_back(group);
      features::append(programs, group.features);
    }
    if (groups.empty()) return clone();
    const auto [fit, speed, mean_score] = taken(groups, programs, view_of(programs));
    fit->rows.leaves = leaves_of(programs);
    const Similarity similarity(fit->rows, fit->rows, fit->varying);
    for (const Choice& choice : choose(choices(), similarity, speed, mean_score, fit->sizes, *prior_)) {
      const Eigen::LLT<Matrix> factor = covariance(similarity.kernel(choice.kernel), choice.noise, fit->sizes);
      if (factor.info() != Eigen::Success) continue;
      const Vector regressed = speed - choice.kernel.from_mean * mean_score;
      const Vector alpha = factor.solve(regressed);
      fit->regressions.push_back(
          {choice, regressed.dot(alpha) / float(regressed.size()), {alpha.data(), alpha.data() + alpha.size()}});
    }
    if (fit->regressions.empty()) return clone();
    return std::make_unique<KernelModel>(features_, basis_, grove_, trunk_, prior_, fit);
  }

  // See stacking_moments.
  std::vector<std::vector<double>> moments(const Examples& pool, std::span<const StackingTrial> trials) const {
    const View all_views = view_of(pool.features);
    const LeafTable leaves = leaves_of(pool.features);
    const base::Matrix shared = leaves.rows() > 0 ? leaves.shared(leaves) : base::Matrix();
    std::vector<std::vector<double>> out;
    for (const StackingTrial& trial : trials) {
      std::vector<std::int64_t> places(trial.view.size());
      std::iota(places.begin(), places.end(), std::int64_t(0));
      const auto cut = places.begin() + trial.support;
      const auto seen = trial.view.begin() + trial.support;
      const std::vector<std::int64_t> seen_support(trial.view.begin(), seen), seen_query(seen, trial.view.end());
      const Examples support = chosen(pool, {places.begin(), cut}), query = chosen(pool, {cut, places.end()});
      const Given given = taken({support}, support.features, all_views.of(seen_support));
      const View query_view = all_views.of(seen_query);
      Similarity own(given.fit->rows, given.fit->rows, given.fit->varying),
          to_support(rows_of(*given.fit, query.features, query_view), given.fit->rows, given.fit->varying);
      if (leaves.rows() > 0) {
        const auto part = [&](const std::vector<std::int64_t>& rows) {
          return Matrix(in_rows(shared)(rows, seen_support));
        };
        own.proximity = part(seen_support);
        to_support.proximity = part(seen_query);
      }
      out.push_back(moments(given, own, to_support, query,
                            mean_of_sources(query_view, in_rows(query_view.scores) * given.fit->shares)));
    }
    return out;
  }

  std::unique_ptr<CostModel> clone() const override { return std::make_unique<KernelModel>(*this); }
  bool is_informed() const override { return basis_ != nullptr || fit_ != nullptr; }
  bool takes(const features::Encoding& encoding) const override {
    return features_ == std::int64_t(encoding.features.size()) && (basis_ == nullptr || basis_->takes(encoding));
  }
  bool can_continue() const override { return basis_ != nullptr; }
  std::unique_ptr<CostModel> of_source(std::string_view platform) const override {
    const auto source = basis_ == nullptr ? std::nullopt : source_of(*basis_, platform);
    return source ? make_residual_model(only(*basis_, *source)) : nullptr;
  }
  std::unique_ptr<CostModel> continued(std::int64_t, const TaskSet& tasks, const LearnerSettings& settings,
                                       base::Monitor& monitor) const override {
    return make_residual_model(with_more_sources(*basis_, tasks, settings, monitor),
                               trunk_ == nullptr ? std::nullopt : std::optional(*trunk_), *prior_);
  }
  std::string_view kind() const override { return basis_ == nullptr ? "scratch" : "residual"; }

  base::Arrays state() const override {
    base::Arrays out;
    if (basis_ != nullptr) put(*basis_, out);
    put_integers(out, "features", {features_});
    if (trunk_ != nullptr) put(*trunk_, out);
    put(*prior_, out);
    return out;
  }

  base::Arrays regressions() const {
    base::Arrays out;
    if (fit_ == nullptr) return out;
    put_values(out, "fit/mean", fit_->normalisation.mean);
    put_values(out, "fit/scale", fit_->normalisation.scale);
    put_values(out, "fit/shares", {fit_->shares.begin(), fit_->shares.end()});
    put_values(out, "fit/source_scale", fit_->source_scale);
    const base::Matrix& sources = fit_->rows.sources;
    out.arrays["fit/sources"] = {{sources.rows, sources.columns}, sources.values};
    std::vector<float> choices, alphas;
    for (const auto& [choice, amplitude, alpha] : fit_->regressions) {
      const Kernel& k = choice.kernel;
      choices.insert(choices.end(),
                     {float(k.own), k.share, k.width, k.trust, k.from_mean, choice.noise, choice.weight, amplitude});
      alphas.insert(alphas.end(), alpha.begin(), alpha.end());
    }
    put_values(out, "fit/regressions", choices);
    put_values(out, "fit/alpha", alphas);
    return out;
  }

 private:
  // A support as the regressions take it: all of its fit but for them.
  struct Given {
    std::shared_ptr<Fit> fit;  // null: nothing to learn from
    Vector speed, mean_score;  // centred by group
  };
  // groups: of two rows at least; programs: all of theirs, which the sources see as `view`.
  Given taken(const std::vector<Examples>& groups, const features::Encoded& programs, const View& view) const {
    auto fit = std::make_shared<Fit>();
    std::vector<float> speeds;
    for (const Examples& group : groups) {
      for (const double value : group.log_seconds) speeds.push_back(float(-value));
      fit->sizes.push_back(group.size());
    }
    Vector speed = Eigen::Map<const Vector>(speeds.data(), programs.programs());
    centre(speed, fit->sizes);
    Examples together;
    together.features = grove_ == nullptr ? programs : features::one_row_each(tree_rows(programs));
    fit->normalisation = fit_normalisation({&together, 1});
    const std::vector<float>& scale = fit->normalisation.scale;
    fit->varying =
        float(std::max<std::ptrdiff_t>(1, std::count_if(scale.begin(), scale.end(), [](float s) { return s != 0; })));
    const std::int64_t sources = view.scores.columns;
    fit->shares = in_rows(view.shares).colwise().mean();
    const Vector likeness = in_rows(view.likeness).colwise().mean();
    Vector mean_score = mean_of_sources(view, in_rows(view.scores) * fit->shares);
    centre(mean_score, fit->sizes);
    float variances = 0;  // the sum
    for (std::int64_t s = 0; s < sources; ++s) {
      Vector column = in_rows(view.scores).col(s);
      centre(column, fit->sizes);
      variances += column.squaredNorm() / float(view.scores.rows);
    }
    // All in the same units: what a source varies by is not known from few rows. Down-weighted ones, too: measurements
    // tell what they are worth, were it with the other sign.
    for (std::int64_t s = 0; s < sources; ++s) {
      const float weight = likeness[s] * float(sources);
      fit->source_scale.push_back(std::sqrt(weight * float(sources) / std::max(1e-12f, variances)));
    }
    if (trunk_ != nullptr) {
      const auto hidden = in_rows(view.hidden);
      fit->hidden_mean = hidden.colwise().mean();
      fit->hidden_scale = Vector(hidden.cols());
      const std::vector<std::int64_t>& widths = trunk_->trunk.shape.hidden;
      std::int64_t begin = 0;
      for (const std::int64_t width : widths) {
        const Matrix apart =
            (hidden.middleCols(begin, width).rowwise() - fit->hidden_mean.segment(begin, width).transpose());
        const float square = apart.squaredNorm() / float(apart.rows());
        fit->hidden_scale.segment(begin, width)
            .setConstant(1 / std::sqrt(std::max(1e-12f, square) * float(widths.size())));
        begin += width;
      }
    }
    fit->rows = rows_of(*fit, programs, view);
    return {std::move(fit), std::move(speed), std::move(mean_score)};
  }

  std::vector<double> moments(const Given& given, const Similarity& own, const Similarity& to_support,
                              const Examples& query, const Vector& mean_of_query) const {
    const std::vector<Choice> all = choices();
    const auto size = std::int64_t(all.size());
    std::vector<double> out(std::size_t(triangle(size)), 0.0);
    const std::vector<std::int64_t> rows = {query.size()};
    Vector truth(query.size());
    for (Eigen::Index i = 0; i < truth.size(); ++i) truth[i] = float(-query.log_seconds[std::size_t(i)]);
    centre(truth, rows);
    if (truth.squaredNorm() == 0) return out;
    Matrix left = truth.replicate(1, size);
    for_each_covariance(all, own, given.fit->sizes,
                        [&](std::size_t first, std::size_t last, const Eigen::LLT<Matrix>& factor) {
                          const Matrix kernel = to_support.kernel(all[first].kernel);
                          for (std::size_t c = first; c < last; ++c) {
                            const float from_mean = all[c].kernel.from_mean;
                            const Vector alpha = factor.solve(given.speed - from_mean * given.mean_score);
                            Vector residual = truth - from_mean * mean_of_query - kernel * alpha;
                            centre(residual, rows);
                            left.col(Eigen::Index(c)) = residual;
                          }
                        });
    const Vector roots = root_weights(truth, rows);
    left.array().colwise() *= roots.array();
    const Matrix products = left.transpose() * left / truth.cwiseProduct(roots).squaredNorm();
    std::size_t at = 0;
    for (Eigen::Index a = 0; a < size; ++a) {
      for (Eigen::Index b = a; b < size; ++b) out[at++] = double(products(a, b));
    }
    return out;
  }
  static Vector predicted(const Regression& regression, const Matrix& to_support, const Vector& mean_score) {
    return regression.choice.kernel.from_mean * mean_score +
           to_support * Eigen::Map<const Vector>(regression.alpha.data(), std::int64_t(regression.alpha.size()));
  }
  View view_of(const features::Encoded& programs, bool with_likeness = true) const {
    const base::Matrix none(programs.programs(), 0);
    if (basis_ == nullptr) return {none, none, none, none};
    return {basis_->predict(programs), basis_->shares(programs), with_likeness ? basis_->likeness(programs) : none,
            trunk_ == nullptr ? none : trunk_->trunk.of(programs)};
  }
  // What the regressions start from: the sources' mean by their shares, mixed with the trunk's score.
  Vector mean_of_sources(const View& view, const Vector& by_shares) const {
    if (trunk_ == nullptr) return by_shares;
    const std::vector<float> head = trunk_->trunk.head();
    return (1 - trunk_->share) * by_shares +
           trunk_->share * (in_rows(view.hidden) * Eigen::Map<const Vector>(head.data(), std::int64_t(head.size())));
  }
  LeafTable leaves_of(const features::Encoded& programs) const {
    return grove_ == nullptr ? LeafTable() : LeafTable(grove_->forest, tree_rows(programs));
  }
  std::vector<Choice> choices() const { return grid(basis_ != nullptr, grove_ != nullptr, trunk_ != nullptr); }
  // Normalised, one row a program.
  base::Matrix own_features(const Normalisation& normalisation, const features::Encoded& programs) const {
    if (grove_ != nullptr) return normalisation.apply(features::one_row_each(tree_rows(programs))).rows;
    return features::summed(normalisation.apply(programs));
  }
  // All but their leaves.
  Rows rows_of(const Fit& fit, const features::Encoded& programs, const View& view) const {
    Rows out{own_features(fit.normalisation, programs), view.scores, {}, {}, view.hidden};
    for (std::int64_t r = 0; r < view.scores.rows; ++r) {
      for (std::int64_t s = 0; s < view.scores.columns; ++s) out.sources.at(r, s) *= fit.source_scale[std::size_t(s)];
      if (trunk_ == nullptr) continue;
      Eigen::Map<Vector> hidden(out.hidden.row(r).data(), out.hidden.columns);
      hidden = (hidden - fit.hidden_mean).cwiseProduct(fit.hidden_scale);
    }
    out.norms = in_rows(out.features).rowwise().squaredNorm();
    return out;
  }

  // The regressions' mean is linear in the sources' scores, in which leaves a row ends in, and in the kernels of its
  // features: the sources' trees with other numbers, a linear function and two sums of Gaussians are all of it.
  Mean mean_of(const Fit& fit) const {
    const auto sources = in_rows(fit.rows.sources);
    const Eigen::Index rows = sources.rows(), count = sources.cols();
    Mean out;
    out.of_sources = Vector::Zero(count);
    Vector of_leaves = Vector::Zero(rows), of_dots = Vector::Zero(rows), by_hidden = Vector::Zero(rows);
    const float trunk_share = trunk_ == nullptr ? 0 : trunk_->share;
    float from_trunk = 0;
    bool of_features = false;
    for (const auto& [choice, amplitude, values] : fit.regressions) {
      const Eigen::Map<const Vector> alpha(values.data(), std::int64_t(values.size()));
      const Kernel& k = choice.kernel;
      const Vector own = choice.weight * (1 - k.trust) * alpha;
      if (k.own == SimilarBy::leaves) {
        of_leaves += own;
      } else if (k.own == SimilarBy::hidden) {
        by_hidden += own;
      } else if (k.trust < 1) {
        of_features = true;
        of_dots += (1 - k.share) * own;
        const auto known = std::find_if(out.gaussians.begin(), out.gaussians.end(),
                                        [&](const auto& gaussian) { return gaussian.first == k.width; });
        if (known != out.gaussians.end()) {
          known->second += k.share * own;
        } else if (k.share > 0) {
          out.gaussians.emplace_back(k.width, k.share * own);
        }
      }
      out.of_sources += choice.weight * k.from_mean * (1 - trunk_share) * fit.shares;
      from_trunk += choice.weight * k.from_mean * trunk_share;
      if (count > 0)
        out.of_sources += choice.weight * k.trust / float(count) *
                          Vector((sources.transpose() * alpha).array() *
                                 Eigen::Map<const Vector>(fit.source_scale.data(), count).array());
    }
    if (of_features) out.linear = in_rows(fit.rows.features).transpose() * of_dots / fit.varying;
    if (from_trunk > 0 || by_hidden.squaredNorm() > 0) {
      const std::vector<float> head = trunk_->trunk.head();
      out.of_hidden = (in_rows(fit.rows.hidden).transpose() * by_hidden).cwiseProduct(fit.hidden_scale);
      out.without_hidden = -out.of_hidden.dot(fit.hidden_mean);
      out.of_hidden += from_trunk * Eigen::Map<const Vector>(head.data(), std::int64_t(head.size()));
    }
    if (grove_ == nullptr) return out;
    std::vector<float> scales;
    for (const std::size_t source : grove_->source)
      scales.push_back(out.of_sources[Eigen::Index(source)] * basis_->scale(source));
    out.trees = grove_->scorer.with_leaves_of(
        fit.rows.leaves.relabelled(grove_->forest, scales, {of_leaves.data(), std::size_t(of_leaves.size())}));
    return out;
  }

  std::int64_t features_;
  std::shared_ptr<const SourceBasis> basis_;
  std::shared_ptr<const JoinedForest> grove_;
  std::shared_ptr<const SharedTrunk> trunk_;
  std::shared_ptr<const StackingPrior> prior_;
  std::shared_ptr<const Fit> fit_;
  Mean mean_;  // of the fit
};

std::shared_ptr<const StackingPrior> shared(StackingPrior prior) {
  return std::make_shared<const StackingPrior>(std::move(prior));
}

KernelModel residual_of(SourceBasis basis, std::optional<SharedTrunk> trunk, StackingPrior prior) {
  const std::int64_t features = basis.normalisation.features();
  auto grove = joined_forest(basis);
  return {features,
          std::make_shared<const SourceBasis>(std::move(basis)),
          std::move(grove),
          trunk ? std::make_shared<const SharedTrunk>(std::move(*trunk)) : nullptr,
          shared(std::move(prior)),
          nullptr};
}

}  // namespace

std::unique_ptr<CostModel> make_scratch_model(std::int64_t features) {
  return std::make_unique<KernelModel>(features, nullptr, nullptr, nullptr, shared({}), nullptr);
}

std::unique_ptr<CostModel> make_residual_model(SourceBasis basis, std::optional<SharedTrunk> trunk,
                                               StackingPrior prior) {
  return std::make_unique<KernelModel>(residual_of(std::move(basis), std::move(trunk), std::move(prior)));
}

base::Arrays regressions_of(const CostModel& fitted) {
  const auto* const model = dynamic_cast<const KernelModel*>(&fitted);
  return model == nullptr ? base::Arrays() : model->regressions();
}

StackingMoments::StackingMoments(SourceBasis basis, std::optional<SharedTrunk> trunk)
    : model_(std::make_shared<const KernelModel>(residual_of(std::move(basis), std::move(trunk), {}))) {}

std::vector<std::vector<double>> StackingMoments::of(const Examples& pool,
                                                     std::span<const StackingTrial> trials) const {
  return static_cast<const KernelModel&>(*model_).moments(pool, trials);
}

std::int64_t stacking_regressions(const SourceBasis& basis, bool has_trunk) {
  return std::int64_t(grid(true, !basis.forests.empty(), has_trunk).size());
}

std::unique_ptr<CostModel> scratch_model_from(const base::Arrays& state) {
  return make_scratch_model(integer_of(state, "features", 1));
}

std::unique_ptr<CostModel> residual_model_from(const base::Arrays& state) {
  if (state.arrays.contains("fit/alpha"))
    throw base::UserError("adapted by an older graft; adapt the model that it was made from again");
  SourceBasis basis = basis_from(state);
  const std::int64_t features = integer_of(state, "features", 1);
  if (basis.normalisation.features() != features)
    throw base::UserError("attribute 'features': not as many as the sources' networks take");
  std::optional<SharedTrunk> trunk;
  if (state.arrays.contains("trunk_share")) {
    trunk = SharedTrunk{trunk_from(state), values_of(state, "trunk_share", 1).front()};
    if (!(trunk->share >= 0 && trunk->share <= 1)) throw base::UserError("array 'trunk_share': expected 0 to 1");
    if (trunk->trunk.normalisation.features() != features)
      throw base::UserError("array 'trunk/theta': not of as many features as the sources take");
  }
  StackingPrior prior = stacking_prior_from(state, stacking_regressions(basis, trunk.has_value()));
  return make_residual_model(std::move(basis), std::move(trunk), std::move(prior));
}

}  // namespace graft::meta
