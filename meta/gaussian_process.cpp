#include "meta/gaussian_process.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <utility>

#include "base/statistics.h"

namespace graft::meta {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

enum Size { amplitude, width, noise, of_kind, of_group, sizes };
using Sizes = std::array<double, sizes>;
constexpr Sizes usual = {0.6, 1.5, 0.25, 0.3, 0.15};
constexpr double usual_spread = 0.7;  // of their logarithms
constexpr double step = 1.6;          // of the search for better ones
constexpr int rounds = 3;
constexpr double inside_90 = 1.6449;            // of a normal distribution, in standard deviations
constexpr std::size_t least_for_widening = 10;  // observations

double squared(double value) {
  return value * value;
}

double distance_squared(const Place& a, const Place& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.at.size(); ++i) sum += squared(a.at[i] - b.at[i]);
  return sum;
}

}  // namespace

struct GaussianProcess::Fit {
  std::vector<Observation> observations;
  Prior prior;
  std::vector<std::vector<Eigen::Index>> blocks;  // observations that are left out together
  Matrix distances;                               // squared, between observations
  Vector values;                                  // less the prior's mean
  Sizes chosen = usual;
  Eigen::LLT<Matrix> factor;
  std::vector<LeftOut> left_out;
  double coverage = 1, widening = 1;

  // The covariance of what two places have in common besides their group.
  double common(const Sizes& by, double distance, const Place& a, const Place& b) const {
    return squared(by[amplitude]) * std::exp(-distance / (2 * squared(by[width]))) + squared(prior.deviation) +
           (a.kind == b.kind ? squared(by[of_kind]) : 0);
  }

  Matrix covariance(const Sizes& by) const {
    const Eigen::Index count = values.size();
    Matrix out(count, count);
    for (Eigen::Index i = 0; i < count; ++i) {
      for (Eigen::Index j = 0; j <= i; ++j) {
        const Observation &a = observations[std::size_t(i)], &b = observations[std::size_t(j)];
        out(i, j) = common(by, distances(i, j), a.place, b.place) + (a.group == b.group ? squared(by[of_group]) : 0) +
                    (i == j ? squared(by[noise]) : 0);
        out(j, i) = out(i, j);
      }
    }
    return out;
  }

  // The logarithm of the probability of each block given the others, summed, and what each one's prediction was
  // (Rasmussen and Williams, section 5.4.2, for blocks).
  double probability(const Sizes& by, std::vector<LeftOut>* left) const {
    const Eigen::LLT<Matrix> of_all(covariance(by));
    if (of_all.info() != Eigen::Success) return -std::numeric_limits<double>::infinity();
    const Matrix inverse = of_all.solve(Matrix::Identity(values.size(), values.size()));
    const Vector weights = inverse * values;
    double sum = 0;
    for (const std::vector<Eigen::Index>& block : blocks) {
      const Eigen::LLT<Matrix> precision(Matrix(inverse(block, block)));
      const Vector of_block = weights(block);
      const Vector errors = precision.solve(of_block);
      sum += Matrix(precision.matrixL()).diagonal().array().log().sum() - 0.5 * of_block.dot(errors) -
             0.5 * double(block.size()) * std::log(2 * std::numbers::pi);
      if (left == nullptr) continue;
      const Matrix spread = precision.solve(Matrix::Identity(errors.size(), errors.size()));
      for (Eigen::Index i = 0; i < errors.size(); ++i)
        (*left)[std::size_t(block[std::size_t(i)])] = {errors(i), std::sqrt(spread(i, i))};
    }
    for (int s = 0; s < sizes; ++s) {
      const double off = std::log(by[std::size_t(s)] / usual[std::size_t(s)]) / usual_spread;
      sum -= 0.5 * off * off;
    }
    return sum;
  }

  void choose() {
    double best = probability(chosen, nullptr);
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t s = 0; s < sizes; ++s) {
        for (const double by : {step, 1 / step}) {
          for (bool better = true; better;) {
            Sizes tried = chosen;
            tried[s] *= by;
            const double found = probability(tried, nullptr);
            better = found > best;
            if (better) chosen = tried, best = found;
          }
        }
      }
    }
  }

  void judge() {
    std::vector<double> off;
    std::size_t inside = 0;
    for (const LeftOut& each : left_out) {
      off.push_back(std::abs(each.error) / each.deviation);
      if (off.back() <= inside_90) ++inside;
    }
    coverage = double(inside) / double(off.size());
    if (off.size() >= least_for_widening) widening = std::max(1.0, base::quantile(off, 0.9) / inside_90);
  }
};

GaussianProcess::GaussianProcess(std::vector<Observation> observations, Prior prior) {
  auto fit = std::make_unique<Fit>();
  fit->observations = std::move(observations);
  fit->prior = prior;
  const auto count = Eigen::Index(fit->observations.size());
  fit->values.resize(count);
  fit->distances.resize(count, count);
  std::map<int, std::vector<Eigen::Index>> groups;
  for (Eigen::Index i = 0; i < count; ++i) {
    const Observation& own = fit->observations[std::size_t(i)];
    fit->values(i) = own.value - prior.mean;
    groups[own.group].push_back(i);
    for (Eigen::Index j = 0; j < count; ++j)
      fit->distances(i, j) = distance_squared(own.place, fit->observations[std::size_t(j)].place);
  }
  if (groups.size() > 1) {
    for (auto& [group, members] : groups) fit->blocks.push_back(std::move(members));
  } else {
    for (Eigen::Index i = 0; i < count; ++i) fit->blocks.push_back({i});
  }
  if (count > 0) {
    fit->choose();
    fit->left_out.resize(std::size_t(count));
    fit->probability(fit->chosen, &fit->left_out);
    fit->judge();
    fit->factor.compute(fit->covariance(fit->chosen));
  }
  fit_ = std::move(fit);
}

GaussianProcess::~GaussianProcess() = default;
GaussianProcess::GaussianProcess(GaussianProcess&&) noexcept = default;
GaussianProcess& GaussianProcess::operator=(GaussianProcess&&) noexcept = default;

const std::vector<GaussianProcess::LeftOut>& GaussianProcess::left_out() const {
  return fit_->left_out;
}

double GaussianProcess::coverage() const {
  return fit_->coverage;
}

std::vector<std::vector<double>> GaussianProcess::drawn(const std::vector<Place>& places, std::int64_t count,
                                                        base::Stream stream) const {
  const Fit& fit = *fit_;
  const auto size = Eigen::Index(places.size());
  const Sizes& by = fit.chosen;
  Matrix spread(size, size);
  for (Eigen::Index i = 0; i < size; ++i) {
    for (Eigen::Index j = 0; j < size; ++j) {
      const Place &a = places[std::size_t(i)], &b = places[std::size_t(j)];
      spread(i, j) =
          fit.common(by, distance_squared(a, b), a, b) + squared(by[of_group]) + (i == j ? squared(by[noise]) : 0);
    }
  }
  Vector mean = Vector::Constant(size, fit.prior.mean);
  if (fit.values.size() > 0) {
    Matrix across(fit.values.size(), size);
    for (Eigen::Index i = 0; i < across.rows(); ++i) {
      const Place& known = fit.observations[std::size_t(i)].place;
      for (Eigen::Index j = 0; j < size; ++j) {
        const Place& asked = places[std::size_t(j)];
        across(i, j) = fit.common(by, distance_squared(known, asked), known, asked);
      }
    }
    mean += across.transpose() * fit.factor.solve(fit.values);
    const Matrix half = fit.factor.matrixL().solve(across);
    spread -= half.transpose() * half;
  }
  const Matrix root = Eigen::LLT<Matrix>(spread).matrixL();
  std::vector<std::vector<double>> draws;
  Vector normals(size);
  for (std::int64_t d = 0; d < count; ++d) {
    for (Eigen::Index i = 0; i < size; ++i) normals(i) = stream.normal();
    const Vector draw = mean + fit.widening * (root * normals);
    draws.emplace_back(draw.begin(), draw.end());
  }
  return draws;
}

}  // namespace graft::meta
