#include "search/selection.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "base/statistics.h"
#include "search/point.h"

namespace graft::search {
namespace {

constexpr std::array<std::pair<std::string_view, Acquisition>, 4> acquisitions = {
    {{"mean", Acquisition::mean},
     {"ei", Acquisition::ei},
     {"ucb", Acquisition::ucb},
     {"thompson", Acquisition::thompson}}};
constexpr std::array<std::pair<std::string_view, Selection>, 2> selections = {
    {{"best", Selection::best}, {"diverse", Selection::diverse}}};

template <class List, class Value>
std::string_view name_in(const List& list, Value value) {
  return std::find_if(list.begin(), list.end(), [&](const auto& entry) { return entry.second == value; })->first;
}

template <class List>
auto named_in(const List& list, const char* what, std::string_view name) {
  std::vector<std::string> known;
  for (const auto& [each, value] : list) {
    if (each == name) return value;
    known.emplace_back(each);
  }
  throw base::UserError("unknown " + std::string(what) + " '" + std::string(name) + "'" +
                        base::did_you_mean(name, known));
}

// log(pdf(z) + z cdf(z)) of the normal distribution: if it is too small for the difference of the two, by the first
// term of the asymptotic series, so that even bad programs keep their order.
double log_improvement(double z) {
  constexpr double far = -6;
  const double log_density = -0.5 * z * z - 0.5 * std::log(2 * std::numbers::pi);
  if (z < far) return log_density - 2 * std::log(-z);
  return std::log(std::exp(log_density) + z * 0.5 * std::erfc(-z / std::numbers::sqrt2));
}

constexpr double least_spread = 1e-3;  // of the largest one: for ei, which divides by it

}  // namespace

std::string_view name_of(Acquisition acquisition) {
  return name_in(acquisitions, acquisition);
}

std::string_view name_of(Selection selection) {
  return name_in(selections, selection);
}

Acquisition acquisition_named(std::string_view name) {
  return named_in(acquisitions, "acquisition", name);
}

Selection selection_named(std::string_view name) {
  return named_in(selections, "selection", name);
}

int random_of(int count, const SelectionSettings& settings, std::int64_t before) {
  if (settings.random_share == 0) return 0;
  if (count == 1) return before % least_batch >= least_batch - random_of(least_batch, settings) ? 1 : 0;
  return std::clamp(int(std::lround(settings.random_share * count)), std::min(1, count), count);
}

std::vector<float> acquired(const meta::Scores& scores, std::span<const std::uint64_t> programs,
                            const AcquisitionContext& context, const SelectionSettings& settings) {
  const bool by_mean =
      settings.acquisition == Acquisition::mean || (settings.acquisition == Acquisition::ei && !context.incumbent);
  const double most = scores.spread.empty() ? 0 : *std::max_element(scores.spread.begin(), scores.spread.end());
  if (by_mean || !(most > 0)) return scores.mean;
  std::vector<float> result;
  for (std::size_t i = 0; i < scores.mean.size(); ++i) {
    const double mean = scores.mean[i], spread = scores.spread[i];
    if (settings.acquisition == Acquisition::ucb) {
      result.push_back(float(mean + settings.bound * spread));
    } else if (settings.acquisition == Acquisition::thompson) {
      base::Stream stream(context.round, "thompson", programs[i]);
      result.push_back(float(mean + stream.normal() * spread));
    } else {
      const double divisor = std::max(spread, least_spread * most);
      result.push_back(float(std::log(divisor) + log_improvement((mean - double(*context.incumbent)) / divisor)));
    }
  }
  return result;
}

double scale_of(std::span<const float> scores) {
  std::vector<double> finite;
  for (const float score : scores) {
    if (std::isfinite(score)) finite.push_back(double(score));
  }
  const double mean = base::mean(finite);
  double sum = 0;
  for (const double score : finite) sum += (score - mean) * (score - mean);
  const double deviation = finite.empty() ? 0 : std::sqrt(sum / double(finite.size()));
  return deviation > 0 ? deviation : 1;
}

std::size_t looked_at(std::size_t count, const SelectionSettings& settings) {
  if (settings.selection == Selection::best) return count;
  return std::max(count, std::size_t(std::ceil(settings.preselected * double(count))));
}

std::vector<std::size_t> selected(std::span<const Scored> pool, std::size_t count,
                                  std::span<const codegen::Candidate> given, const codegen::Space& space,
                                  const SelectionSettings& settings) {
  pool = pool.first(std::min(pool.size(), looked_at(count, settings)));
  std::vector<std::size_t> chosen;
  if (settings.selection == Selection::best) {
    for (std::size_t i = 0; i < pool.size(); ++i) chosen.push_back(i);
    return chosen;
  }
  using Part = std::tuple<std::size_t, std::size_t, std::size_t>;  // sketch, domain, row
  const auto parts_of = [&](const codegen::Candidate& candidate) {
    std::vector<Part> parts;
    if (const std::optional<Point> point = point_of(candidate, space)) {
      for (std::size_t d = 0; d < point->rows.size(); ++d) parts.emplace_back(point->sketch, d, point->rows[d]);
    }
    return parts;
  };
  std::set<Part> covered;
  for (const codegen::Candidate& candidate : given) {
    for (const Part& part : parts_of(candidate)) covered.insert(part);
  }
  std::vector<float> scores;
  std::vector<std::vector<Part>> parts;
  for (const Scored& one : pool) {
    scores.push_back(one.score);
    parts.push_back(parts_of(one.candidate));
  }
  const double scale = scale_of(scores);
  std::vector<bool> taken(pool.size(), false);
  while (chosen.size() < std::min(count, pool.size())) {
    std::optional<std::size_t> best;
    double most = 0;
    for (std::size_t i = 0; i < pool.size(); ++i) {
      if (taken[i]) continue;
      const auto more =
          std::count_if(parts[i].begin(), parts[i].end(), [&](const Part& part) { return !covered.contains(part); });
      const double gain = double(scores[i]) / scale + settings.diversity * double(more);
      if (!best || gain > most) best = i, most = gain;
    }
    taken[*best] = true;
    covered.insert(parts[*best].begin(), parts[*best].end());
    chosen.push_back(*best);
  }
  return chosen;
}

}  // namespace graft::search
