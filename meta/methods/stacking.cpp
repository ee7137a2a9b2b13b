#include "meta/methods/stacking.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>
#include <numeric>
#include <span>

#include "base/error.h"
#include "meta/state.h"

namespace graft::meta {
namespace {

constexpr double rows_of_prior = 32, rows_without_prior = 4;
constexpr double least_error = 1e-3;  // of a regime: no source is assumed to predict everything

// A regime's moments after `rows` rows: interpolated logarithmically between the tried numbers, outside of them those
// of the nearest. As a full square.
std::vector<double> moments_after(const StackingPrior& prior, const StackingPrior::Regime& regime, std::int64_t rows) {
  const auto above = std::size_t(std::lower_bound(prior.rows.begin(), prior.rows.end(), rows) - prior.rows.begin());
  const std::size_t high = std::min(above, prior.rows.size() - 1), low = above == 0 ? 0 : above - 1;
  const auto from = double(prior.rows[low]), to = double(prior.rows[high]);
  const double share = high == low ? 0 : std::log(double(rows) / from) / std::log(to / from);
  const std::int64_t size = prior.regressions;
  const float* first = regime.moments.data() + std::ptrdiff_t(low) * triangle(size);
  const float* second = regime.moments.data() + std::ptrdiff_t(high) * triangle(size);
  std::vector<double> out(std::size_t(size * size));
  for (std::int64_t a = 0; a < size; ++a) {
    for (std::int64_t b = a; b < size; ++b, ++first, ++second) {
      const double moment = (1 - share) * double(*first) + share * double(*second);
      out[std::size_t(a * size + b)] = out[std::size_t(b * size + a)] = moment;
    }
  }
  return out;
}

}  // namespace

std::vector<double> least_mixture(const std::vector<double>& q, std::int64_t size) {
  assert(size > 0 && std::int64_t(q.size()) == size * size);
  constexpr int most_steps = 1000;
  const auto at = [&](std::int64_t a, std::int64_t b) { return q[std::size_t(a * size + b)]; };
  std::int64_t best = 0;
  double trace = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    trace += at(i, i);
    if (at(i, i) < at(best, best)) best = i;
  }
  std::vector<double> weights(std::size_t(size), 0.0), slope(std::size_t(size), 0.0);
  weights[std::size_t(best)] = 1;
  for (std::int64_t i = 0; i < size; ++i) slope[std::size_t(i)] = at(i, best);
  for (int step = 0; step < most_steps; ++step) {
    std::int64_t to = 0, from = -1;
    for (std::int64_t i = 0; i < size; ++i) {
      if (slope[std::size_t(i)] < slope[std::size_t(to)]) to = i;
      if (weights[std::size_t(i)] > 0 && (from < 0 || slope[std::size_t(i)] > slope[std::size_t(from)])) from = i;
    }
    const double gain = slope[std::size_t(from)] - slope[std::size_t(to)];
    if (!(gain > 1e-9 * trace / double(size))) break;
    const double curvature = at(to, to) - 2 * at(to, from) + at(from, from);
    const double moved = std::min(weights[std::size_t(from)], gain / std::max(curvature, 1e-12 * trace));
    weights[std::size_t(to)] += moved;
    weights[std::size_t(from)] -= moved;
    for (std::int64_t i = 0; i < size; ++i) slope[std::size_t(i)] += moved * (at(i, to) - at(i, from));
  }
  return weights;
}

std::vector<double> stacking_weights(const base::Matrix& residuals, double variance, const std::vector<char>& trusts,
                                     const StackingPrior& prior) {
  const std::int64_t size = residuals.rows, rows = residuals.columns;
  assert(size > 0 && rows > 0 && std::int64_t(trusts.size()) == size);
  const double unit = variance > 0 ? 1 / variance : 1;
  std::vector<double> q(std::size_t(size * size));  // n S
  for (std::int64_t a = 0; a < size; ++a) {
    for (std::int64_t b = a; b < size; ++b) {
      const auto left = residuals.row(a), right = residuals.row(b);
      const double sum = std::inner_product(left.begin(), left.end(), right.begin(), 0.0);
      q[std::size_t(a * size + b)] = q[std::size_t(b * size + a)] = unit * sum;
    }
  }
  const auto diagonal = [&](std::int64_t i) -> double& { return q[std::size_t(i * size + i)]; };
  double trace = 0;
  if (prior.regimes.empty()) {
    for (std::int64_t i = 0; i < size; ++i) diagonal(i) *= 1 + rows_without_prior / double(rows);
  } else {
    assert(prior.regressions == size);
    std::vector<std::vector<double>> moments;
    std::vector<double> evidence;  // log of the posterior probability, but for a constant
    for (const StackingPrior::Regime& regime : prior.regimes) {
      moments.push_back(moments_after(prior, regime, rows));
      double likelihood = 0, count = 0;
      for (std::int64_t i = 0; i < size; ++i) {
        if (trusts[std::size_t(i)] == 0) continue;
        const double expected = std::max(least_error, moments.back()[std::size_t(i * size + i)]);
        likelihood -= double(rows) / 4 * std::log(expected) + diagonal(i) / 4 / expected;
        ++count;
      }
      evidence.push_back(std::log(double(regime.probability)) + likelihood / std::max(1.0, count));
    }
    const double most = *std::max_element(evidence.begin(), evidence.end());
    double sum = 0;
    for (double& each : evidence) sum += each = std::exp(each - most);
    for (std::size_t r = 0; r < moments.size(); ++r) {
      for (std::size_t i = 0; i < q.size(); ++i) q[i] += rows_of_prior * evidence[r] / sum * moments[r][i];
    }
  }
  for (std::int64_t i = 0; i < size; ++i) trace += diagonal(i);
  for (std::int64_t i = 0; i < size; ++i) diagonal(i) += 1e-6 * trace / double(size);
  return least_mixture(q, size);
}

void put(const StackingPrior& prior, base::Arrays& arrays) {
  if (prior.regimes.empty()) return;
  put_integers(arrays, "stacking/rows", prior.rows);
  std::vector<float> probabilities, moments;
  for (const StackingPrior::Regime& regime : prior.regimes) {
    probabilities.push_back(regime.probability);
    moments.insert(moments.end(), regime.moments.begin(), regime.moments.end());
  }
  put_values(arrays, "stacking/probabilities", probabilities);
  put_values(arrays, "stacking/moments", moments);
}

StackingPrior stacking_prior_from(const base::Arrays& arrays, std::int64_t regressions) {
  StackingPrior out;
  if (!arrays.arrays.contains("stacking/moments")) return out;
  out.regressions = regressions;
  out.rows = integers_of(arrays, "stacking/rows", 1);
  if (std::adjacent_find(out.rows.begin(), out.rows.end(), std::greater_equal<>()) != out.rows.end())
    throw base::UserError("attribute 'stacking/rows': expected rising numbers");
  const std::vector<float>&probabilities = values_of(arrays, "stacking/probabilities"),
        &moments = values_of(arrays, "stacking/moments");
  const std::size_t each = out.rows.size() * std::size_t(triangle(regressions));
  if (out.rows.empty() || probabilities.empty() || moments.size() != probabilities.size() * each)
    throw base::UserError(fmt::format("array 'stacking/moments': not of {} regressions", regressions));
  for (std::size_t r = 0; r < probabilities.size(); ++r) {
    if (!(probabilities[r] > 0)) throw base::UserError("array 'stacking/probabilities': expected positive numbers");
    const auto first = moments.begin() + std::ptrdiff_t(r * each);
    out.regimes.push_back({probabilities[r], {first, first + std::ptrdiff_t(each)}});
  }
  if (!std::all_of(moments.begin(), moments.end(), [](float m) { return std::isfinite(m); }))
    throw base::UserError("array 'stacking/moments': not finite");
  return out;
}

}  // namespace graft::meta
