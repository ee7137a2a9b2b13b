#include "meta/methods/heads.h"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>
#include <numeric>

#include "base/error.h"

namespace graft::meta {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXd;
using ConstMap = Eigen::Map<const Matrix>;

constexpr std::string_view names[] = {
#define X(name) #name,
    GRAFT_HEADS(X)
#undef X
};

// Subtracts each group's mean from its rows.
template <class Rows>
void centre(Rows& rows, const std::vector<std::int64_t>& sizes) {
  Eigen::Index begin = 0;
  for (const std::int64_t size : sizes) {
    auto block = rows.middleRows(begin, size);
    block.rowwise() -= block.colwise().mean().eval();
    begin += size;
  }
}

Vector speeds_of(const Embedded& support) {
  Matrix out = -Eigen::Map<const Vector>(support.log_seconds.data(), support.rows());
  centre(out, support.sizes);
  return out.col(0);
}

std::vector<double> flat(const Matrix& matrix) {
  return {matrix.data(), matrix.data() + matrix.size()};
}
std::vector<double> flat(const Vector& vector) {
  return {vector.data(), vector.data() + vector.size()};
}

// Everything of the posterior that its derivatives need, too. P: centred embeddings.
struct Posterior {
  Matrix p;
  Vector left;                // y - P m
  Matrix to_weights;          // C P^T
  Eigen::LLT<Matrix> factor;  // of P C P^T + s I
  Vector weights;
};
Posterior posterior_of(const Head& prior, const Embedded& support) {
  const std::int64_t width = prior.width();
  const Eigen::Map<const Vector> mean(prior.mean.data(), width);
  const ConstMap covariance(prior.covariance.data(), width, width);
  Posterior out;
  out.p = ConstMap(support.values.data(), support.rows(), width);
  centre(out.p, support.sizes);
  out.left = speeds_of(support) - out.p * mean;
  out.to_weights = covariance * out.p.transpose();
  Matrix inner = out.p * out.to_weights;
  inner.diagonal().array() += prior.noise;
  out.factor.compute(inner);
  out.weights = mean + out.to_weights * out.factor.solve(out.left);
  return out;
}

// Classes of the support's rows for prototypes: a row each for matching, thirds of each group otherwise.
struct Classes {
  std::vector<std::int64_t> of_row;
  std::vector<double> counts, labels;
  Matrix places;
};
Classes classes_of(HeadKind kind, const Embedded& support) {
  constexpr std::int64_t most = 3;
  const Vector speeds = speeds_of(support);
  Classes out;
  out.of_row.resize(std::size_t(support.rows()));
  std::int64_t count = support.rows();
  if (kind == HeadKind::matching) {
    std::iota(out.of_row.begin(), out.of_row.end(), 0);
  } else {
    // Halves if no group has three rows: an empty set has no mean.
    count = std::min(most, *std::max_element(support.sizes.begin(), support.sizes.end()));
    std::int64_t begin = 0;
    for (const std::int64_t size : support.sizes) {
      std::vector<std::int64_t> order(std::size_t(size), 0);
      std::iota(order.begin(), order.end(), begin);
      std::stable_sort(order.begin(), order.end(),
                       [&](std::int64_t a, std::int64_t b) { return speeds[a] > speeds[b]; });
      for (std::int64_t i = 0; i < size; ++i) out.of_row[std::size_t(order[std::size_t(i)])] = i * count / size;
      begin += size;
    }
  }
  out.counts.assign(std::size_t(count), 0);
  out.labels.assign(std::size_t(count), 0);
  out.places = Matrix::Zero(count, support.width);
  const ConstMap rows(support.values.data(), support.rows(), support.width);
  for (std::int64_t r = 0; r < support.rows(); ++r) {
    const std::int64_t c = out.of_row[std::size_t(r)];
    out.counts[std::size_t(c)] += 1;
    out.labels[std::size_t(c)] += speeds[r];
    out.places.row(c) += rows.row(r);
  }
  for (std::int64_t c = 0; c < count; ++c) {
    out.places.row(c) /= out.counts[std::size_t(c)];
    out.labels[std::size_t(c)] /= out.counts[std::size_t(c)];
  }
  return out;
}

// How much each place counts for each query: softmax over the places, which begin at `places`.
Matrix shares_of(const Matrix& places, const ConstMap& query, double sharpness) {
  Matrix shares(query.rows(), places.rows());
  for (Eigen::Index q = 0; q < query.rows(); ++q) {
    Eigen::ArrayXd logits = -sharpness * (places.rowwise() - query.row(q)).rowwise().squaredNorm().array();
    logits = (logits - logits.maxCoeff()).exp();
    shares.row(q) = (logits / logits.sum()).matrix().transpose();
  }
  return shares;
}

bool informs(const Embedded& support) {
  return std::any_of(support.sizes.begin(), support.sizes.end(), [](std::int64_t size) { return size > 1; });
}

// Without the groups of one row, of which nothing is left once they are centred.
Embedded of_groups(const Embedded& support) {
  if (std::all_of(support.sizes.begin(), support.sizes.end(), [](std::int64_t size) { return size > 1; }))
    return support;
  Embedded out;
  out.width = support.width;
  std::int64_t begin = 0;
  for (const std::int64_t size : support.sizes) {
    if (size > 1) {
      out.sizes.push_back(size);
      out.values.insert(out.values.end(), support.values.begin() + begin * support.width,
                        support.values.begin() + (begin + size) * support.width);
      out.log_seconds.insert(out.log_seconds.end(), support.log_seconds.begin() + begin,
                             support.log_seconds.begin() + begin + size);
    }
    begin += size;
  }
  return out;
}

}  // namespace

std::string_view name_of(HeadKind kind) {
  return names[std::size_t(kind)];
}

HeadKind head_kind_named(std::string_view name) {
  for (std::size_t k = 0; k < std::size(names); ++k) {
    if (names[k] == name) return HeadKind(k);
  }
  throw base::UserError(fmt::format("unknown kind of head '{}'", name));
}

std::vector<double> Head::scores(std::span<const double> embedded) const {
  const ConstMap rows(embedded.data(), std::int64_t(embedded.size()) / width(), width());
  if (kind == HeadKind::ridge) return flat(Vector(rows * Eigen::Map<const Vector>(mean.data(), width())));
  if (labels.empty()) return std::vector<double>(std::size_t(rows.rows()), 0.0);
  const auto count = std::int64_t(labels.size());
  const Matrix shares = shares_of(ConstMap(places.data(), count, width()), rows, sharpness);
  return flat(Vector(shares * Eigen::Map<const Vector>(labels.data(), count)));
}

std::vector<double> Head::spread(std::span<const double> embedded) const {
  if (kind != HeadKind::ridge) return {};
  const ConstMap rows(embedded.data(), std::int64_t(embedded.size()) / width(), width());
  const Matrix scaled = rows * ConstMap(covariance.data(), width(), width());
  std::vector<double> out;
  for (Eigen::Index r = 0; r < rows.rows(); ++r)
    out.push_back(std::sqrt(std::max(0.0, scaled.row(r).dot(rows.row(r)))));
  return out;
}

Head adapted(const Head& prior, const Embedded& given) {
  if (!informs(given)) return prior;
  const Embedded support = of_groups(given);
  Head out = prior;
  if (prior.kind == HeadKind::ridge) {
    const Posterior posterior = posterior_of(prior, support);
    const ConstMap covariance(prior.covariance.data(), prior.width(), prior.width());
    const Matrix less = posterior.to_weights * posterior.factor.solve(posterior.to_weights.transpose());
    out.mean = flat(posterior.weights);
    out.covariance = flat(Matrix(covariance - less));
    return out;
  }
  const Classes classes = classes_of(prior.kind, support);
  out.places = flat(classes.places);
  out.labels = classes.labels;
  return out;
}

HeadGradient head_gradient(const Head& prior, const Embedded& support, std::span<const double> query_rows,
                           std::span<const double> by_scores) {
  assert(informs(support) && std::all_of(support.sizes.begin(), support.sizes.end(), [](auto s) { return s > 1; }));
  const std::int64_t width = prior.width();
  const ConstMap query(query_rows.data(), std::int64_t(by_scores.size()), width);
  const Eigen::Map<const Vector> g(by_scores.data(), std::int64_t(by_scores.size()));
  HeadGradient out;
  if (prior.kind == HeadKind::ridge) {
    // w = m + C P^T z, z = K^-1 r, K = P C P^T + s I, r = y - P m. With G = dL/dw, b = P C G and a = K^-1 b:
    // dL = G.dm + G.(C dP^T z) + a.(dr - dK z) and dr = -dP m - P dm, dK = dP C P^T + P C dP^T (+ log-scale: P C P^T).
    const Posterior posterior = posterior_of(prior, support);
    const Eigen::Map<const Vector> mean(prior.mean.data(), width);
    const ConstMap covariance(prior.covariance.data(), width, width);
    const Vector by_weights = query.transpose() * g, z = posterior.factor.solve(posterior.left),
                 spread_weights = covariance * by_weights, b = posterior.p * spread_weights,
                 a = posterior.factor.solve(b), shift = posterior.weights - mean;  // shift = C P^T z
    Matrix by_p = z * spread_weights.transpose() - a * mean.transpose() - a * shift.transpose() -
                  z * (posterior.to_weights * a).transpose();
    centre(by_p, support.sizes);
    out.support = flat(by_p);
    out.query = flat(Matrix(g * posterior.weights.transpose()));
    out.mean = flat(Vector(by_weights - posterior.p.transpose() * a));
    // C -> e^t C: dw = C P^T z - C P^T K^-1 (P C P^T) z.
    out.log_scale = by_weights.dot(shift) - a.dot(posterior.p * shift);
    return out;
  }
  const Classes classes = classes_of(prior.kind, support);
  const Matrix shares = shares_of(classes.places, query, prior.sharpness);
  const Eigen::Map<const Vector> labels(classes.labels.data(), std::int64_t(classes.labels.size()));
  const Vector scores = shares * labels;
  Matrix by_query = Matrix::Zero(query.rows(), width), by_places = Matrix::Zero(classes.places.rows(), width);
  for (Eigen::Index q = 0; q < query.rows(); ++q) {
    for (Eigen::Index c = 0; c < classes.places.rows(); ++c) {
      const double by_logit = g[q] * shares(q, c) * (labels[c] - scores[q]);
      const Eigen::RowVectorXd apart = query.row(q) - classes.places.row(c);
      by_query.row(q) -= 2 * prior.sharpness * by_logit * apart;
      by_places.row(c) += 2 * prior.sharpness * by_logit * apart;
      out.log_scale -= by_logit * prior.sharpness * apart.squaredNorm();
    }
  }
  Matrix by_support(support.rows(), width);
  for (std::int64_t r = 0; r < support.rows(); ++r) {
    const std::int64_t c = classes.of_row[std::size_t(r)];
    by_support.row(r) = by_places.row(c) / classes.counts[std::size_t(c)];
  }
  out.support = flat(by_support);
  out.query = flat(by_query);
  out.mean.assign(std::size_t(width), 0.0);
  return out;
}

}  // namespace graft::meta
