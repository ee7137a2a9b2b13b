// The two models by kernel ridge regression: scratch (no sources) and residual (sources as inputs and as prior mean).
#include <Eigen/Cholesky>
#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "base/error.h"
#include "meta/models/models.h"
#include "meta/models/state.h"
#include "meta/networks/gemm.h"

namespace graft::meta {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXf;

// k(a, b) = (1 - trust) ((1 - share) <a, b> / d + share alike(a, b)) + trust <s(a), s(b)> / p
// a, b: normalised features, d of which vary in the support; s: scores of the p sources, in units of the variance that
// they have in it by mean, each times the root of p times its likeness (SourceBasis::likeness). alike: exp(-|a - b|^2 /
// (2 width^2 d)); where the sources are forests the share of their trees in which a and b end in the same leaf (Breiman
// 2000, "Some infinity theory for predictor ensembles"), a tree counting as much as its leaves say, with share = 1:
// programs are alike when what decides on the sources' speed does not tell them apart.
struct Kernel {
  float share = 0.5f, width = 1, trust = 0;
  float from_mean = 0;  // 1: regress from the mean of the sources, 0: from nothing
};

// Programs as the kernel sees them.
struct Rows {
  base::Matrix features;  // normalised, the sum of a program's rows; of forests as they see it (tree_rows)
  base::Matrix sources;   // scaled scores; no columns where there are no sources
  Vector norms;           // squared, of the features
  LeafTable leaves;       // of forests
};

// The trees of all sources as one forest.
struct Grove {
  DecisionForest forest;
  std::vector<std::size_t> source;  // of each tree
  ForestScorer scorer;
};

std::shared_ptr<const Grove> grove_of(const SourceBasis& basis) {
  if (basis.forests.empty()) return nullptr;
  DecisionForest all;
  all.features = basis.forests.front().features;
  std::vector<std::size_t> source;
  for (std::size_t s = 0; s < basis.forests.size(); ++s) {
    append(all, basis.forests[s]);
    source.resize(std::size_t(all.trees()), s);
  }
  ForestScorer scorer(all);
  return std::make_shared<const Grove>(Grove{std::move(all), std::move(source), std::move(scorer)});
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
  Matrix dots, distances, proximity, agreement;  // proximity: of the leaves, agreement: of the sources

  Similarity(const Rows& left, const Rows& right, float varying) {
    if (left.leaves.rows() > 0) {
      const base::Matrix shared = left.leaves.shared(right.leaves);
      proximity = in_rows(shared);
    } else {
      dots = products(left.features, right.features);
      distances.resize(dots.rows(), dots.cols());
      for (Eigen::Index i = 0; i < dots.rows(); ++i) {
        distances.row(i) =
            (left.norms[i] + right.norms.transpose().array() - 2 * dots.row(i).array()).max(0.0f) / varying;
      }
      dots /= varying;
    }
    if (left.sources.columns > 0) agreement = products(left.sources, right.sources) / float(left.sources.columns);
  }
  bool is_of_leaves() const { return proximity.size() > 0; }
  Matrix kernel(const Kernel& k) const {
    Matrix out = proximity;
    if (!is_of_leaves())
      out = (1 - k.share) * dots.array() + k.share * (distances.array() / (-2 * k.width * k.width)).exp();
    if (k.trust > 0) out = (1 - k.trust) * out + k.trust * agreement;
    return out;
  }
  Similarity leading(Eigen::Index rows) const {
    Similarity out = *this;
    for (Matrix* const each : {&out.dots, &out.distances, &out.proximity, &out.agreement}) {
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

// The regressions that are tried, those of one kernel and noise side by side.
std::vector<Choice> grid(bool has_sources, bool of_leaves) {
  const std::vector<float> trusts = has_sources ? std::vector<float>{1.0f, 0.9f, 0.5f, 0.0f} : std::vector<float>{0.0f};
  const std::vector<float> starts = has_sources ? std::vector<float>{1.0f, 0.0f} : std::vector<float>{0.0f};
  std::vector<std::pair<float, float>> shapes = {{0.0f, 1.0f}, {0.5f, 1.0f}, {0.9f, 1.0f}, {0.9f, 0.4f}};
  if (of_leaves) shapes = {{1.0f, 1.0f}};
  std::vector<Choice> out;
  for (const float trust : trusts) {
    for (const auto& [share, width] : shapes) {
      if (trust == 1 && (share != shapes[0].first || width != shapes[0].second)) continue;  // features do not count
      for (const float noise : {2.0f, 0.5f, 0.1f, 0.01f}) {
        for (const float from_mean : starts) out.push_back({{share, width, trust, from_mean}, noise});
      }
    }
  }
  return out;
}

// visit(number, choice, factor of its covariance) for each choice of the grid; no call where there is no factor.
template <class Visit>
void for_each_choice(const Similarity& similarity, const std::vector<std::int64_t>& sizes, const Visit& visit) {
  const std::vector<Choice> all = grid(similarity.agreement.size() > 0, similarity.is_of_leaves());
  Matrix kernel;
  Eigen::LLT<Matrix> factor;
  for (std::size_t c = 0; c < all.size(); ++c) {
    const Kernel &k = all[c].kernel, &last = all[c == 0 ? 0 : c - 1].kernel;
    const bool other_kernel = c == 0 || k.share != last.share || k.width != last.width || k.trust != last.trust;
    if (other_kernel) kernel = similarity.kernel(k);
    if (other_kernel || all[c].noise != all[c - 1].noise) factor = covariance(kernel, all[c].noise, sizes);
    if (factor.info() == Eigen::Success) visit(c, all[c], factor);
  }
}

// The errors after so many rows: between two numbers that were tried by the logarithm, outside those of the nearest.
// None where nothing is known.
std::vector<double> expected_errors(const ChoicePrior& prior, std::int64_t rows) {
  if (prior.rows.empty()) return {};
  const std::size_t above =
                        std::size_t(std::lower_bound(prior.rows.begin(), prior.rows.end(), rows) - prior.rows.begin()),
                    high = std::min(above, prior.rows.size() - 1), low = above == 0 ? 0 : above - 1,
                    choices = prior.errors.size() / prior.rows.size();
  const auto from = double(prior.rows[low]), to = double(prior.rows[high]);
  const double share = high == low ? 0 : std::log(double(rows) / from) / std::log(to / from);
  std::vector<double> out;
  for (std::size_t c = 0; c < choices; ++c) {
    out.push_back((1 - share) * double(prior.errors[low * choices + c]) +
                  share * double(prior.errors[high * choices + c]));
  }
  return out;
}

// The choices, weighed by e^(-n/4) for their leave-one-out error e on n rows: its residuals are alpha_i / (A^-1)_ii for
// the covariance A (Rasmussen and Williams 2006, section 5.4.2). Were the residuals independent, the likelihood of the
// rows would go with e^(-n/2); they are not, so half as many are counted. With few rows the error says little: then
// what the sources taught decides, whose errors count as 64 rows more; where they taught nothing, many kernels speak,
// with a handicap for setting the sources aside. Looks at the leading groups of at most 256 rows, or at as many of a
// first one that is larger: the cost is cubic and the choice is not that delicate.
std::vector<Choice> choose(const Similarity& similarity, const Vector& speed, const Vector& mean_score,
                           const std::vector<std::int64_t>& sizes, const ChoicePrior& prior) {
  constexpr float least_weight = 0.02f;  // of the greatest
  constexpr std::int64_t most_rows = 256;
  constexpr double rows_of_prior = 64;
  std::vector<std::int64_t> kept;
  std::int64_t rows = 0;
  for (const std::int64_t size : sizes) {
    if (rows > 0 && rows + size > most_rows) break;
    kept.push_back(std::min(size, most_rows));
    rows += kept.back();
  }
  const Similarity few = similarity.leading(rows);
  const std::vector<double> known = expected_errors(prior, rows);
  std::vector<Choice> all;
  std::vector<double> errors;
  for_each_choice(few, kept, [&](std::size_t number, const Choice& choice, const Eigen::LLT<Matrix>& factor) {
    const Matrix inverse = factor.solve(Matrix::Identity(rows, rows));
    const Vector alpha = inverse * (speed - choice.kernel.from_mean * mean_score).head(rows);
    double error = double((alpha.array() / inverse.diagonal().array()).square().mean());
    if (!known.empty()) {
      error *= std::exp(known[number] * rows_of_prior / double(rows));
    } else if (few.agreement.size() > 0) {
      error *= 1 + 8 * double(1 - choice.kernel.trust) / double(rows);
    }
    all.push_back(choice);
    errors.push_back(error);
  });
  std::vector<Choice> out;
  if (all.empty()) return out;
  const double least = *std::min_element(errors.begin(), errors.end());
  float sum = 0;
  for (std::size_t c = 0; c < all.size(); ++c) {
    // Nothing left over at all: the speeds are all alike.
    all[c].weight = least > 0 ? float(std::pow(errors[c] / least, -double(rows) / 4)) : float(errors[c] == 0);
    if (!(all[c].weight >= least_weight)) continue;
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

// What a support leaves behind.
struct Fit {
  std::vector<std::int64_t> sizes;  // of the support's groups
  Normalisation normalisation;      // of the features, by the support; none of forests
  float varying = 1;                // features that vary in the support
  Vector shares;                    // of the sources in their mean (SourceBasis::shares)
  std::vector<float> source_scale;  // of each source's scores, for the kernel
  Rows rows;                        // of the support
  std::vector<Regression> regressions;
};

// What follows from the features.
void finish(Rows& rows, const Grove* grove) {
  if (grove != nullptr) {
    rows.leaves = LeafTable(grove->forest, rows.features);
    return;
  }
  rows.norms.resize(rows.features.rows);
  for (std::int64_t r = 0; r < rows.features.rows; ++r)
    rows.norms[r] = Eigen::Map<const Vector>(rows.features.row(r).data(), rows.features.columns).squaredNorm();
}

class KernelModel final : public CostModel {
 public:
  // A null basis makes it scratch; the grove is the basis's, if it has forests.
  KernelModel(std::int64_t features, std::shared_ptr<const SourceBasis> basis, std::shared_ptr<const Grove> grove,
              ChoicePrior prior, std::shared_ptr<const Fit> fit)
      : features_(features),
        basis_(std::move(basis)),
        grove_(std::move(grove)),
        prior_(std::move(prior)),
        fit_(std::move(fit)) {
    if (grove_ != nullptr && fit_ != nullptr) scorer_ = adapted_trees();
  }

  Scores score(const features::Encoded& programs) const override {
    assert(programs.rows.columns == features_);
    if (programs.programs() == 0) return {};
    Scores out{std::vector<float>(std::size_t(programs.programs()), 0.0f),
               std::vector<float>(std::size_t(programs.programs()), 0.0f)};
    if (scorer_) {
      scorer_->score(tree_rows(programs), out.mean);
      return out;
    }
    const base::Matrix scores = source_scores(programs);
    Eigen::Map<Vector> mean(out.mean.data(), programs.programs());
    if (fit_ == nullptr) {
      if (basis_ == nullptr) return out;
      const base::Matrix shares = basis_->shares(programs);
      mean = (in_rows(scores).array() * in_rows(shares).array()).rowwise().sum();
      return out;
    }
    const Vector mean_score = in_rows(scores) * fit_->shares;
    const Similarity to_support(rows_of(*fit_, programs, scores), fit_->rows, fit_->varying);
    for (const Regression& regression : fit_->regressions)
      mean += regression.choice.weight * predicted(regression, to_support.kernel(regression.choice.kernel), mean_score);
    return out;
  }

  // Of the mixture of the Gaussian processes that the regressions are the means of, without their groups' offsets,
  // which no comparison sees. Of one: amplitude (k(x, x) - k(x, X) A^-1 k(X, x)) (Rasmussen and Williams 2006, equation
  // 2.26, and 5.9 for the amplitude).
  Scores score_with_spread(const features::Encoded& programs) const override {
    Scores out = score(programs);
    if (fit_ == nullptr || out.mean.empty()) return out;
    const base::Matrix scores = source_scores(programs);
    const Rows rows = rows_of(*fit_, programs, scores);
    const Similarity own(fit_->rows, fit_->rows, fit_->varying), similar(rows, fit_->rows, fit_->varying);
    const Vector mean = Eigen::Map<const Vector>(out.mean.data(), std::int64_t(out.mean.size())),
                 mean_score = in_rows(scores) * fit_->shares;
    Vector variance = Vector::Zero(mean.size());
    for (const Regression& regression : fit_->regressions) {
      const Kernel& k = regression.choice.kernel;
      const Eigen::LLT<Matrix> factor = covariance(own.kernel(k), regression.choice.noise, fit_->sizes);
      const Matrix to_support = similar.kernel(k), solved = factor.matrixL().solve(to_support.transpose());
      const Vector apart = predicted(regression, to_support, mean_score) - mean;
      for (Eigen::Index i = 0; i < to_support.rows(); ++i) {
        float prior = k.share;  // the kernel of a row with itself
        if (k.share < 1) prior += (1 - k.share) * rows.norms[i] / fit_->varying;
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

  std::unique_ptr<CostModel> adapted(std::span<const Examples> support) const override {
    const auto [fit, speed, mean_score] = taken(support);
    if (fit == nullptr) return std::make_unique<KernelModel>(*this);
    const Similarity similarity(fit->rows, fit->rows, fit->varying);
    for (const Choice& choice : choose(similarity, speed, mean_score, fit->sizes, prior_)) {
      const Eigen::LLT<Matrix> factor = covariance(similarity.kernel(choice.kernel), choice.noise, fit->sizes);
      if (factor.info() != Eigen::Success) continue;
      const Vector regressed = speed - choice.kernel.from_mean * mean_score;
      const Vector alpha = factor.solve(regressed);
      fit->regressions.push_back(
          {choice, regressed.dot(alpha) / float(regressed.size()), {alpha.data(), alpha.data() + alpha.size()}});
    }
    if (fit->regressions.empty()) return std::make_unique<KernelModel>(*this);
    return std::make_unique<KernelModel>(features_, basis_, grove_, prior_, fit);
  }

  // Of each choice of a regression on the support, the share of the query's variance that it leaves over.
  std::vector<double> left_over(const Trial& trial) const {
    std::vector<double> out(grid(true, grove_ != nullptr).size(), 1.0);
    const auto [fit, speed, mean_score] = taken({&trial.support, 1});
    if (fit == nullptr) return out;
    const std::vector<std::int64_t> size = {trial.query.size()};
    Vector truth(trial.query.size());
    for (Eigen::Index i = 0; i < truth.size(); ++i) truth[i] = float(-trial.query.log_seconds[std::size_t(i)]);
    centre(truth, size);
    if (truth.squaredNorm() == 0) return out;
    const base::Matrix scores = source_scores(trial.query.features);
    const Rows rows = rows_of(*fit, trial.query.features, scores);
    const Vector mean_of_query = in_rows(scores) * fit->shares;
    const Similarity own(fit->rows, fit->rows, fit->varying), to_support(rows, fit->rows, fit->varying);
    for_each_choice(own, fit->sizes, [&](std::size_t number, const Choice& choice, const Eigen::LLT<Matrix>& factor) {
      const Vector alpha = factor.solve(speed - choice.kernel.from_mean * mean_score);
      Vector left = truth - choice.kernel.from_mean * mean_of_query - to_support.kernel(choice.kernel) * alpha;
      centre(left, size);
      out[number] = double(left.squaredNorm() / truth.squaredNorm());
    });
    return out;
  }

  bool is_informed() const override { return basis_ != nullptr || fit_ != nullptr; }
  bool takes(const features::Encoding& encoding) const override {
    return features_ == std::int64_t(encoding.features.size()) && (basis_ == nullptr || basis_->takes(encoding));
  }
  std::string_view kind() const override { return basis_ == nullptr ? "scratch" : "residual"; }

  base::Arrays state() const override {
    base::Arrays out;
    if (basis_ != nullptr) put(*basis_, out);
    put_integers(out, "features", {features_});
    put_integers(out, "choices/rows", prior_.rows);
    put_values(out, "choices/errors", prior_.errors);
    if (fit_ == nullptr) return out;
    if (grove_ == nullptr) {
      put_values(out, "fit/mean", fit_->normalisation.mean);
      put_values(out, "fit/scale", fit_->normalisation.scale);
    }
    put_values(out, "fit/varying", {fit_->varying});
    put_integers(out, "fit/sizes", fit_->sizes);
    put_values(out, "fit/shares", {fit_->shares.begin(), fit_->shares.end()});
    put_values(out, "fit/source_scale", fit_->source_scale);
    const base::Matrix &features = fit_->rows.features, &sources = fit_->rows.sources;
    out.arrays["fit/features"] = {{features.rows, features.columns}, features.values};
    out.arrays["fit/sources"] = {{sources.rows, sources.columns}, sources.values};
    std::vector<float> choices, alphas;
    for (const auto& [choice, amplitude, alpha] : fit_->regressions) {
      const Kernel& k = choice.kernel;
      choices.insert(choices.end(), {k.share, k.width, k.trust, k.from_mean, choice.noise, choice.weight, amplitude});
      alphas.insert(alphas.end(), alpha.begin(), alpha.end());
    }
    put_values(out, "fit/kernels", choices);
    put_values(out, "fit/alpha", alphas);
    return out;
  }

 private:
  // A support as the regressions take it: all of its fit but for them.
  struct Given {
    std::shared_ptr<Fit> fit;  // null: nothing to learn from
    Vector speed, mean_score;  // centred by group
  };
  Given taken(std::span<const Examples> support) const {
    std::vector<Examples> groups;
    for (const Examples& group : support) {
      if (group.size() >= 2) groups.push_back(group);
    }
    if (groups.empty()) return {};

    auto fit = std::make_shared<Fit>();
    features::Encoded raw;
    std::vector<float> speeds;
    for (const Examples& group : groups) {
      features::append(raw, group.features);
      for (const double value : group.log_seconds) speeds.push_back(float(-value));
      fit->sizes.push_back(group.size());
    }
    Vector speed = Eigen::Map<const Vector>(speeds.data(), raw.programs());
    centre(speed, fit->sizes);
    if (grove_ == nullptr) {
      fit->normalisation = fit_normalisation(groups);
      const std::vector<float>& scale = fit->normalisation.scale;
      fit->varying =
          float(std::max<std::ptrdiff_t>(1, std::count_if(scale.begin(), scale.end(), [](float s) { return s != 0; })));
    }
    const base::Matrix scores = source_scores(raw);
    fit->shares.setZero(scores.columns);
    Vector likeness = Vector::Zero(scores.columns);
    if (basis_ != nullptr) {
      fit->shares = in_rows(basis_->shares(raw)).colwise().mean();
      likeness = in_rows(basis_->likeness(raw)).colwise().mean();
    }
    Vector mean_score = in_rows(scores) * fit->shares;
    centre(mean_score, fit->sizes);
    float variances = 0;  // the sum
    for (std::int64_t s = 0; s < scores.columns; ++s) {
      Vector column = in_rows(scores).col(s);
      centre(column, fit->sizes);
      variances += column.squaredNorm() / float(scores.rows);
    }
    // All in the same units: what a source varies by is not known from few rows. Doubted ones, too: measurements tell
    // what they are worth, were it with the other sign.
    for (std::int64_t s = 0; s < scores.columns; ++s) {
      const float weight = likeness[s] * float(scores.columns);
      fit->source_scale.push_back(std::sqrt(weight * float(scores.columns) / std::max(1e-12f, variances)));
    }
    fit->rows = rows_of(*fit, raw, scores);
    return {std::move(fit), std::move(speed), std::move(mean_score)};
  }
  static Vector predicted(const Regression& regression, const Matrix& to_support, const Vector& mean_score) {
    return regression.choice.kernel.from_mean * mean_score +
           to_support * Eigen::Map<const Vector>(regression.alpha.data(), std::int64_t(regression.alpha.size()));
  }
  base::Matrix source_scores(const features::Encoded& programs) const {
    return basis_ == nullptr ? base::Matrix(programs.programs(), 0) : basis_->predict(programs);
  }
  Rows rows_of(const Fit& fit, const features::Encoded& programs, const base::Matrix& scores) const {
    Rows out{{}, scores, {}, {}};
    for (std::int64_t r = 0; r < scores.rows; ++r) {
      for (std::int64_t s = 0; s < scores.columns; ++s) out.sources.at(r, s) *= fit.source_scale[std::size_t(s)];
    }
    out.features = grove_ == nullptr ? features::summed(fit.normalisation.apply(programs)) : tree_rows(programs);
    finish(out, grove_.get());
    return out;
  }

  // The mean of the regressions is linear in the sources' scores and in which leaves a row ends in, so it is the
  // sources' trees with other numbers.
  ForestScorer adapted_trees() const {
    const auto sources = in_rows(fit_->rows.sources);
    const auto count = float(sources.cols());
    Vector of_rows = Vector::Zero(sources.rows()), of_sources = Vector::Zero(sources.cols());
    for (const auto& [choice, amplitude, values] : fit_->regressions) {
      const Eigen::Map<const Vector> alpha(values.data(), std::int64_t(values.size()));
      const Kernel& k = choice.kernel;
      of_rows += choice.weight * (1 - k.trust) * alpha;
      of_sources += choice.weight * k.from_mean * fit_->shares;
      of_sources += choice.weight * k.trust / count *
                    Vector((sources.transpose() * alpha).array() *
                           Eigen::Map<const Vector>(fit_->source_scale.data(), sources.cols()).array());
    }
    for (Eigen::Index s = 0; s < of_sources.size(); ++s) of_sources[s] *= basis_->scale(std::size_t(s));
    std::vector<float> scales;
    for (const std::size_t source : grove_->source) scales.push_back(of_sources[Eigen::Index(source)]);
    return grove_->scorer.with_leaves_of(
        fit_->rows.leaves.relabelled(grove_->forest, scales, {of_rows.data(), std::size_t(of_rows.size())}));
  }

  std::int64_t features_;
  std::shared_ptr<const SourceBasis> basis_;
  std::shared_ptr<const Grove> grove_;
  ChoicePrior prior_;
  std::shared_ptr<const Fit> fit_;
  std::optional<ForestScorer> scorer_;  // of the adapted grove
};

KernelModel residual_of(SourceBasis basis, ChoicePrior prior) {
  const std::int64_t features = basis.normalisation.features();
  auto grove = grove_of(basis);
  return {features, std::make_shared<const SourceBasis>(std::move(basis)), std::move(grove), std::move(prior), nullptr};
}

std::unique_ptr<CostModel> kernel_model_from(std::shared_ptr<const SourceBasis> basis, const base::Arrays& state) {
  const std::int64_t features = integer_of(state, "features", 1);
  if (basis != nullptr && basis->normalisation.features() != features) {
    throw base::UserError("attribute 'features': not as many as the sources' networks take");
  }
  auto grove = basis == nullptr ? nullptr : grove_of(*basis);
  ChoicePrior prior = choice_prior_from(state);
  if (!prior.rows.empty() &&
      (basis == nullptr || prior.errors.size() != prior.rows.size() * grid(true, grove != nullptr).size()))
    throw base::UserError("array 'choices/errors': not of this model's regressions");
  if (!state.arrays.contains("fit/alpha"))
    return std::make_unique<KernelModel>(features, std::move(basis), std::move(grove), std::move(prior), nullptr);
  if (state.arrays.contains("fit/choices"))  // all trees counted alike
    throw base::UserError("adapted by an older graft, to which other programs were alike; adapt its prior again");
  const std::int64_t sources = basis == nullptr ? 0 : std::int64_t(basis->sources.size());
  auto fit = std::make_shared<Fit>();
  if (grove == nullptr) {
    fit->normalisation.mean = values_of(state, "fit/mean", features);
    fit->normalisation.scale = values_of(state, "fit/scale", features);
  }
  fit->varying = values_of(state, "fit/varying", 1)[0];
  if (!(fit->varying > 0)) throw base::UserError("array 'fit/varying': not positive");
  const std::vector<float>& shares = values_of(state, "fit/shares", sources);
  fit->shares = Eigen::Map<const Vector>(shares.data(), sources);
  fit->source_scale = values_of(state, "fit/source_scale", sources);
  fit->sizes = integers_of(state, "fit/sizes", 1);
  const std::vector<float>&alphas = values_of(state, "fit/alpha"), &choices = values_of(state, "fit/kernels");
  constexpr std::size_t numbers = 7;  // of a choice
  const std::size_t count = choices.size() / numbers;
  if (count == 0 || choices.size() % numbers != 0 || alphas.size() % count != 0)
    throw base::UserError("arrays 'fit/kernels', 'fit/alpha': not of the same regressions");
  const auto rows = std::int64_t(alphas.size() / count);
  if (rows == 0) throw base::UserError("array 'fit/alpha': of no rows");
  std::int64_t in_groups = 0;
  for (const std::int64_t size : fit->sizes) {
    if (size > rows) in_groups = -1;
    if (in_groups >= 0) in_groups += size;
  }
  if (in_groups != rows) throw base::UserError("attribute 'fit/sizes': not of this support");
  for (std::size_t r = 0; r < count; ++r) {
    const float* const n = choices.data() + r * numbers;
    const Choice choice{{n[0], n[1], n[2], n[3]}, n[4], n[5]};
    const auto first = alphas.begin() + std::int64_t(r) * rows;
    fit->regressions.push_back({choice, n[6], {first, first + rows}});
    if (!(n[1] > 0) || !(n[4] > 0) || !(n[5] >= 0) || !(n[6] >= 0) || (sources == 0 && (n[2] != 0 || n[3] != 0)))
      throw base::UserError("array 'fit/kernels': not regressions of this model");
  }
  fit->rows.features = base::Matrix(rows, features);
  fit->rows.features.values = values_of(state, "fit/features", rows * features);
  fit->rows.sources = base::Matrix(rows, sources);
  fit->rows.sources.values = values_of(state, "fit/sources", rows * sources);
  finish(fit->rows, grove.get());
  return std::make_unique<KernelModel>(features, std::move(basis), std::move(grove), std::move(prior), std::move(fit));
}

}  // namespace

std::unique_ptr<CostModel> make_scratch_model(std::int64_t features) {
  return std::make_unique<KernelModel>(features, nullptr, nullptr, ChoicePrior{}, nullptr);
}

std::unique_ptr<CostModel> make_residual_model(SourceBasis basis, ChoicePrior prior) {
  return std::make_unique<KernelModel>(residual_of(std::move(basis), std::move(prior)));
}

std::vector<std::vector<double>> left_over(SourceBasis basis, std::span<const Trial> trials) {
  const KernelModel model = residual_of(std::move(basis), {});
  std::vector<std::vector<double>> out;
  for (const Trial& trial : trials) out.push_back(model.left_over(trial));
  return out;
}

ChoicePrior choice_prior_from(const base::Arrays& state) {
  ChoicePrior out;
  if (!state.arrays.contains("choices/errors")) return out;  // of an older graft
  out.rows = integers_of(state, "choices/rows", 1);
  out.errors = values_of(state, "choices/errors");
  if (std::adjacent_find(out.rows.begin(), out.rows.end(), std::greater_equal<>()) != out.rows.end())
    throw base::UserError("attribute 'choices/rows': do not rise");
  return out;
}

std::unique_ptr<CostModel> scratch_model_from(const base::Arrays& state) {
  return kernel_model_from(nullptr, state);
}

std::unique_ptr<CostModel> residual_model_from(const base::Arrays& state) {
  return kernel_model_from(std::make_shared<const SourceBasis>(basis_from(state)), state);
}

}  // namespace graft::meta
