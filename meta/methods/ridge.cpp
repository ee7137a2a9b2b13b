#include "meta/methods/ridge.h"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "meta/episode.h"
#include "meta/methods/basis_model.h"
#include "meta/metrics.h"
#include "meta/sources/training.h"
#include "meta/state.h"

namespace graft::meta {

namespace {

// The system of ridge regression: (squares) (weights - prior) = moments, with the penalty on the diagonal.
struct NormalEquations {
  Eigen::MatrixXd squares;
  Eigen::VectorXd moments;
  double residual = 0;  // sum of squares of what the prior leaves over
  std::int64_t rows = 0;
  std::int64_t free = 0;  // rows but one a group: its mean is taken away
};
NormalEquations normal_equations(const std::vector<BasisGroup>& groups, const std::vector<double>& prior,
                                 double lambda) {
  const auto sources = std::int64_t(prior.size());
  const Eigen::Map<const Eigen::VectorXd> from(prior.data(), sources);
  NormalEquations out{Eigen::MatrixXd::Zero(sources, sources), Eigen::VectorXd::Zero(sources), 0, 0, 0};
  for (const BasisGroup& group : groups) {
    if (group.basis.rows < 2) continue;
    using Floats = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    Eigen::MatrixXd basis =
        Eigen::Map<const Floats>(group.basis.values.data(), group.basis.rows, group.basis.columns).cast<double>();
    basis.rowwise() -= basis.colwise().mean().eval();
    Eigen::VectorXd speed = -Eigen::Map<const Eigen::VectorXd>(group.log_seconds.data(), group.basis.rows);
    speed.array() -= speed.mean();
    const Eigen::VectorXd left = speed - basis * from;
    out.squares += basis.transpose() * basis;
    out.moments += basis.transpose() * left;
    out.residual += left.squaredNorm();
    out.rows += group.basis.rows;
    out.free += group.basis.rows - 1;
  }
  out.squares.diagonal().array() += lambda * double(out.rows);
  return out;
}

// lambda: nullopt if the support decides.
class RidgeModel final : public BasisModel {
 public:
  RidgeModel(std::shared_ptr<const SourceBasis> basis, std::vector<double> weights, std::optional<double> lambda,
             std::vector<double> covariance = {})
      : BasisModel(std::move(basis), std::move(weights)), lambda_(lambda), covariance_(std::move(covariance)) {}

  Scores score_with_spread(const features::Encoded& programs) const override {
    const base::Matrix predicted = basis_->predict(programs);
    Scores out = certain(combined(predicted, weights_));
    if (covariance_.empty()) return out;
    const std::size_t sources = weights_.size();
    for (std::int64_t p = 0; p < predicted.rows; ++p) {
      const auto row = predicted.row(p);
      double variance = 0;
      for (std::size_t a = 0; a < sources; ++a) {
        for (std::size_t b = 0; b < sources; ++b)
          variance += double(row[a]) * covariance_[a * sources + b] * double(row[b]);
      }
      out.spread[std::size_t(p)] = float(std::sqrt(std::max(0.0, variance)));
    }
    return out;
  }

  std::unique_ptr<CostModel> fitted(std::span<const Examples> support) const override {
    std::vector<BasisGroup> groups;
    for (const Examples& group : support) groups.push_back({basis_->predict(group.features), group.log_seconds});
    const double lambda = lambda_ ? *lambda_ : likeliest_lambda(groups, weights_);
    std::vector<double> covariance = ridge_covariance(groups, weights_, lambda);
    if (covariance.empty()) covariance = covariance_;
    return std::make_unique<RidgeModel>(basis_, ridge_weights(groups, weights_, lambda), lambda_,
                                        std::move(covariance));
  }
  std::unique_ptr<CostModel> clone() const override { return std::make_unique<RidgeModel>(*this); }
  std::unique_ptr<CostModel> continued(std::int64_t, const TaskSet& tasks, const LearnerSettings& settings,
                                       base::Monitor& monitor) const override {
    SourceBasis basis = with_more_sources(*basis_, tasks, settings, monitor);
    return lambda_ ? make_ridge_model(std::move(basis), {}, *lambda_) : make_bayes_ridge_model(std::move(basis), {});
  }
  std::string_view kind() const override { return lambda_ ? "ridge" : "bayes-ridge"; }
  base::Arrays state() const override {
    base::Arrays out = BasisModel::state();
    if (lambda_) out.attributes["lambda"] = fmt::format("{}", *lambda_);
    put_values(out, "covariance", std::vector<float>(covariance_.begin(), covariance_.end()));
    return out;
  }

 private:
  std::optional<double> lambda_;
  std::vector<double> covariance_;  // of the weights; empty: unknown
};

BasisGroup chosen(const BasisGroup& group, const std::vector<std::int64_t>& rows) {
  BasisGroup out{base::Matrix(0, group.basis.columns), {}};
  for (const std::int64_t r : rows) {
    const auto row = group.basis.row(r);
    out.basis.values.insert(out.basis.values.end(), row.begin(), row.end());
    out.log_seconds.push_back(group.log_seconds[std::size_t(r)]);
  }
  out.basis.rows = std::int64_t(rows.size());
  return out;
}

// Each trusted source platform takes the role of the target in turn, with the others as its basis; no network has seen
// the platform that it is judged on.
double chosen_lambda(const SourceBasis& basis, const TaskSet& tasks, std::uint64_t seed) {
  // From most to least shrinkage; where times differ by a few per cent, the squares to which it is added are small, too.
  constexpr std::array<double, 13> lambdas = {10, 3, 1, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5};
  constexpr std::int64_t draws = 4;
  constexpr std::array<std::int64_t, 2> shots = {5, 20};
  std::array<double, lambdas.size()> sums{};
  const std::size_t sources = basis.sources.size();
  if (sources < 2) return 1;
  for (std::size_t target = 0; target < sources; ++target) {
    if (!basis.counts(target)) continue;
    std::vector<BasisGroup> groups;
    for (const Examples& group : tasks.groups) {
      if (group.platform != basis.sources[target].platform) continue;
      const base::Matrix all = basis.predict(group.features);
      BasisGroup others{base::Matrix(all.rows, all.columns - 1), group.log_seconds};
      for (std::int64_t r = 0; r < all.rows; ++r) {
        for (std::int64_t s = 0, to = 0; s < all.columns; ++s) {
          if (s != std::int64_t(target)) others.basis.at(r, to++) = all.at(r, s);
        }
      }
      groups.push_back(std::move(others));
    }
    const std::vector<double> shares = without(basis, target).equal_shares();
    for (const std::int64_t shot : shots) {
      for (std::int64_t draw = 0; draw < draws; ++draw) {
        base::Stream stream(seed, "shrinkage trial", std::uint64_t(draw));
        Episode<std::vector<BasisGroup>> episode;
        for (const BasisGroup& group : groups) {
          const auto rows = episode_of(stream.choose(group.basis.rows, group.basis.rows), shot);
          episode.support.push_back(chosen(group, rows.support));
          episode.query.push_back(chosen(group, rows.query));
        }
        for (std::size_t l = 0; l < lambdas.size(); ++l) {
          const std::vector<double> weights = ridge_weights(episode.support, shares, lambdas[l]);
          for (const BasisGroup& group : episode.query) {
            std::vector<float> scores;
            for (std::int64_t r = 0; r < group.basis.rows; ++r) {
              double score = 0;
              for (std::size_t s = 0; s < weights.size(); ++s)
                score += weights[s] * double(group.basis.at(r, std::int64_t(s)));
              scores.push_back(float(score));
            }
            sums[l] += rank_correlation(scores, group.log_seconds) / double(episode.query.size());
          }
        }
      }
    }
  }
  return lambdas[std::size_t(std::max_element(sums.begin(), sums.end()) - sums.begin())];
}

class RidgeLearner final : public Learner {
 public:
  std::unique_ptr<CostModel> train(const TaskSet& tasks, const LearnerSettings& settings,
                                   base::Monitor& monitor) const override {
    SourceBasis basis = train_basis(tasks, settings, monitor);
    const double lambda = chosen_lambda(basis, tasks, settings.seed);
    return make_ridge_model(std::move(basis), {}, lambda);
  }
};

class BayesRidgeLearner final : public Learner {
 public:
  std::unique_ptr<CostModel> train(const TaskSet& tasks, const LearnerSettings& settings,
                                   base::Monitor& monitor) const override {
    return make_bayes_ridge_model(train_basis(tasks, settings, monitor), {});
  }
};

}  // namespace

std::vector<double> ridge_weights(const std::vector<BasisGroup>& groups, const std::vector<double>& prior,
                                  double lambda) {
  const NormalEquations equations = normal_equations(groups, prior, lambda);
  if (equations.rows == 0) return prior;
  const auto sources = std::int64_t(prior.size());
  const Eigen::VectorXd weights =
      Eigen::Map<const Eigen::VectorXd>(prior.data(), sources) + equations.squares.ldlt().solve(equations.moments);
  return {weights.data(), weights.data() + sources};
}

std::vector<double> ridge_covariance(const std::vector<BasisGroup>& groups, const std::vector<double>& prior,
                                     double lambda) {
  const NormalEquations equations = normal_equations(groups, prior, lambda);
  if (equations.rows == 0) return {};
  // At the minimum the loss is r^T r - m^T A^-1 m: residuals from the prior r, moments m, normal matrix A.
  const Eigen::LDLT<Eigen::MatrixXd> factor = equations.squares.ldlt();
  const double least = equations.residual - equations.moments.dot(factor.solve(equations.moments));
  const Eigen::MatrixXd covariance =
      std::max(0.0, least) / double(equations.rows) *
      factor.solve(Eigen::MatrixXd::Identity(equations.squares.rows(), equations.squares.cols()));
  return {covariance.data(), covariance.data() + covariance.size()};
}

std::unique_ptr<CostModel> make_ridge_model(SourceBasis basis, std::vector<double> weights, double lambda) {
  if (weights.empty()) weights = basis.equal_shares();
  return std::make_unique<RidgeModel>(std::make_shared<const SourceBasis>(std::move(basis)), std::move(weights),
                                      lambda);
}

double likeliest_lambda(const std::vector<BasisGroup>& groups, const std::vector<double>& prior) {
  const NormalEquations equations = normal_equations(groups, prior, 0);
  if (equations.rows == 0) return 1;
  const auto sources = std::int64_t(prior.size());
  double best = 1, most = -std::numeric_limits<double>::infinity();
  for (double lambda = 30; lambda > 1e-4; lambda /= 1.7) {
    const double penalty = lambda * double(equations.rows);
    Eigen::MatrixXd squares = equations.squares;
    squares.diagonal().array() += penalty;
    const Eigen::LDLT<Eigen::MatrixXd> factor = squares.ldlt();
    // r^T (I + B B^T / penalty)^-1 r and the logarithm of that matrix's determinant, by the sources' dimensions.
    const double fit = equations.residual - equations.moments.dot(factor.solve(equations.moments));
    const double volume = factor.vectorD().array().max(1e-300).log().sum() - double(sources) * std::log(penalty);
    const double evidence = -0.5 * (double(equations.free) * std::log(std::max(fit, 1e-300)) + volume);
    if (evidence > most) {
      most = evidence;
      best = lambda;
    }
  }
  return best;
}

std::unique_ptr<CostModel> make_bayes_ridge_model(SourceBasis basis, std::vector<double> weights) {
  if (weights.empty()) weights = basis.equal_shares();
  return std::make_unique<RidgeModel>(std::make_shared<const SourceBasis>(std::move(basis)), std::move(weights),
                                      std::nullopt);
}

namespace {

std::unique_ptr<CostModel> ridge_from(const base::Arrays& state, std::optional<double> lambda) {
  SourceBasis basis = basis_from(state);
  std::vector<double> weights = weights_from(state, basis);
  const std::vector<float>& covariance = values_of(state, "covariance");
  if (!covariance.empty() && covariance.size() != weights.size() * weights.size())
    throw base::UserError("array 'covariance': not sources x sources");
  return std::make_unique<RidgeModel>(std::make_shared<const SourceBasis>(std::move(basis)), std::move(weights), lambda,
                                      std::vector<double>(covariance.begin(), covariance.end()));
}

}  // namespace

std::unique_ptr<CostModel> ridge_model_from(const base::Arrays& state) {
  const double lambda = number_of(state, "lambda");
  if (!(lambda > 0)) throw base::UserError("attribute 'lambda': expected a positive number");
  return ridge_from(state, lambda);
}

std::unique_ptr<CostModel> bayes_ridge_model_from(const base::Arrays& state) {
  return ridge_from(state, std::nullopt);
}

std::unique_ptr<Learner> make_ridge_learner() {
  return std::make_unique<RidgeLearner>();
}
std::unique_ptr<Learner> make_bayes_ridge_learner() {
  return std::make_unique<BayesRidgeLearner>();
}

}  // namespace graft::meta
