#include "meta/support.h"

#include <fmt/format.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <string>

#include "base/error.h"
#include "meta/networks/gemm.h"

namespace graft::meta {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXf;

constexpr std::string_view names[] = {
#define X(name) #name,
    GRAFT_SUPPORT_CHOICES(X)
#undef X
};

// The columns that vary, with mean 0 and variance 1 / their number.
Matrix scaled(const features::Encoded& programs) {
  const base::Matrix sums = features::summed(programs);
  Matrix out = Eigen::Map<const Matrix>(sums.values.data(), sums.rows, sums.columns);
  Eigen::Index varying = 0;
  for (Eigen::Index c = 0; c < out.cols(); ++c) {
    Vector column = out.col(c);
    for (float& value : column) {
      if (!std::isfinite(value)) value = 0;
    }
    column.array() -= column.mean();
    const float deviation = std::sqrt(column.squaredNorm() / float(out.rows()));
    if (deviation > 1e-6f) out.col(varying++) = column / deviation;
  }
  return out.leftCols(varying) / std::sqrt(float(std::max<Eigen::Index>(varying, 1)));
}

// Pivoted Cholesky: the row of largest variance given those chosen, again and again; ties by chance.
std::vector<std::int64_t> most_uncertain(const Matrix& x, bool gaussian, std::int64_t count, base::Stream& stream) {
  constexpr float noise = 0.01f;
  const Vector norms = x.rowwise().squaredNorm();
  const auto with = [&](Eigen::Index r) -> Vector {
    const Vector dots = x * x.row(r).transpose();
    if (!gaussian) return dots;
    return ((dots * 2 - norms).array() - norms[r]).exp();  // exp(-|a - b|^2)
  };
  Vector variance = gaussian ? Vector::Ones(x.rows()) : norms;
  const std::vector<std::int64_t> order = stream.choose(x.rows(), x.rows());
  Matrix factor(count, x.rows());
  std::vector<std::int64_t> out;
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t best = *std::max_element(
        order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return variance[a] < variance[b]; });
    out.push_back(best);
    Vector row = with(best);
    if (k > 0) row -= factor.topRows(k).transpose() * factor.col(best).head(k);
    row /= std::sqrt(std::max(variance[best], 0.0f) + noise);
    factor.row(k) = row.transpose();
    variance -= row.cwiseAbs2();
    for (const std::int64_t chosen : out) variance[chosen] = -std::numeric_limits<float>::infinity();
  }
  return out;
}

std::vector<std::int64_t> cluster_centres(const Matrix& x, std::int64_t count, base::Stream& stream) {
  const auto distances = [&](const auto& point) -> Vector { return (x.rowwise() - point).rowwise().squaredNorm(); };
  Matrix centres(count, x.cols());
  Vector nearest = Vector::Constant(x.rows(), std::numeric_limits<float>::infinity());
  for (std::int64_t k = 0; k < count; ++k) {  // seeds by their squared distance from those there are
    std::int64_t seed = stream.below(x.rows());
    if (k > 0) {
      double left = stream.uniform() * double(nearest.sum());
      for (seed = 0; seed + 1 < x.rows() && left >= double(nearest[seed]); ++seed) left -= double(nearest[seed]);
    }
    centres.row(k) = x.row(seed);
    nearest = nearest.cwiseMin(distances(centres.row(k)));
  }
  Matrix products(x.rows(), count);
  for (int iteration = 0; iteration < 20; ++iteration) {
    gemm(Transposed::no, Transposed::yes, x.rows(), count, x.cols(), x.data(), x.cols(), centres.data(), x.cols(), 0.0f,
         products.data(), count);
    // |x - c|^2 - |x|^2
    const Matrix apart = (-2 * products).rowwise() + centres.rowwise().squaredNorm().transpose();
    Matrix sums = Matrix::Zero(count, x.cols());
    Vector sizes = Vector::Zero(count);
    for (Eigen::Index r = 0; r < x.rows(); ++r) {
      Eigen::Index k = 0;
      apart.row(r).minCoeff(&k);
      sums.row(k) += x.row(r);
      sizes[k] += 1;
    }
    for (std::int64_t k = 0; k < count; ++k) {
      if (sizes[k] > 0) centres.row(k) = sums.row(k) / sizes[k];
    }
  }
  std::vector<std::int64_t> out;
  for (std::int64_t k = 0; k < count; ++k) {
    Vector from = distances(centres.row(k));
    for (const std::int64_t chosen : out) from[chosen] = std::numeric_limits<float>::infinity();
    Eigen::Index best = 0;
    from.minCoeff(&best);
    out.push_back(best);
  }
  return out;
}

}  // namespace

std::string_view name_of(SupportChoice choice) {
  return names[std::size_t(choice)];
}

SupportChoice support_choice_named(std::string_view name) {
  for (std::size_t c = 0; c < std::size(names); ++c) {
    if (names[c] == name) return SupportChoice(c);
  }
  const std::vector<std::string> known(std::begin(names), std::end(names));
  throw base::UserError(fmt::format("unknown choice of support '{}'{}", name, base::did_you_mean(name, known)));
}

std::vector<std::int64_t> chosen_support(SupportChoice choice, const features::Encoded& programs, std::int64_t count,
                                         base::Stream stream) {
  count = std::min(count, programs.programs());
  if (choice == SupportChoice::random || count == 0) return stream.choose(programs.programs(), count);
  const Matrix x = scaled(programs);
  if (x.cols() == 0) return stream.choose(programs.programs(), count);  // all alike
  if (choice == SupportChoice::kmeans) return cluster_centres(x, count, stream);
  return most_uncertain(x, choice == SupportChoice::uncertain, count, stream);
}

}  // namespace graft::meta
