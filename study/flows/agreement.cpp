#include "study/flows/agreement.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include "base/statistics.h"

namespace graft::study {
namespace {

// Positions, the smallest value first.
std::vector<std::size_t> ascending(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  return order;
}

}  // namespace

Agreement agreement(std::span<const double> modelled, std::span<const double> measured) {
  assert(modelled.size() == measured.size());
  Agreement result;
  result.programs = measured.size();
  if (measured.size() < 2) return result;
  const auto [fastest, slowest] = std::minmax_element(measured.begin(), measured.end());
  result.spread = *slowest / *fastest;
  result.spearman = base::spearman(modelled, measured);
  result.kendall = base::kendall(modelled, measured);

  std::vector<double> modelled_best, measured_best;
  const std::vector<std::size_t> by_measured = ascending(measured);
  for (std::size_t i = 0; i < (3 * measured.size() + 9) / 10; ++i) {
    modelled_best.push_back(modelled[by_measured[i]]);
    measured_best.push_back(measured[by_measured[i]]);
  }
  result.spearman_of_best = base::spearman(modelled_best, measured_best);

  const std::vector<std::size_t> by_modelled = ascending(modelled);
  result.top1_regret = measured[by_modelled[0]] / *fastest;
  double best_of_five = measured[by_modelled[0]];
  for (std::size_t i = 1; i < std::min<std::size_t>(5, measured.size()); ++i)
    best_of_five = std::min(best_of_five, measured[by_modelled[i]]);
  result.top5_regret = best_of_five / *fastest;

  double squares = 0;
  for (const double ratio : centred_log_ratios(modelled, measured)) squares += ratio * ratio;
  result.rms = std::sqrt(squares / double(measured.size()));
  return result;
}

std::vector<double> centred_log_ratios(std::span<const double> modelled, std::span<const double> measured) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < measured.size(); ++i) ratios.push_back(std::log(modelled[i] / measured[i]));
  const double mean = base::mean(ratios);
  for (double& ratio : ratios) ratio -= mean;
  return ratios;
}

}  // namespace graft::study
