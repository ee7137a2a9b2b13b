#include "search/explorers/compared/bayesian.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "search/chances.h"

namespace graft::search {
Bayesian::Bayesian(const codegen::Space& space, std::uint64_t seed, const BayesianSettings& settings,
                   const SelectionSettings& selection)
    : space_(space), settings_(settings), selection_(selection), stream_(seed, "bayesian") {}

Bayesian::Density Bayesian::density(std::span<const Measured> measured) const {
  const std::vector<codegen::SketchSpace>& sketches = space_.sketches();
  Density result;
  result.sketches.assign(sketches.size(), settings_.prior_weight / double(sketches.size()));
  for (const Measured& one : measured) result.sketches[one.at.sketch] += 1;
  normalise(result.sketches);
  for (std::size_t s = 0; s < sketches.size(); ++s) {
    std::vector<std::vector<double>> of_domains;
    for (std::size_t d = 0; d < sketches[s].domains.size(); ++d) {
      const codegen::Domain& domain = sketches[s].domains[d];
      const std::size_t count = domain.values.size();
      std::vector<double> times(count, 0), density(count, settings_.prior_weight / double(count)), kernel(count);
      for (const Measured& one : measured) {
        if (one.at.sketch == s) times[one.at.rows[d]] += 1;
      }
      for (std::size_t centre = 0; centre < count; ++centre) {
        if (times[centre] == 0) continue;
        for (std::size_t row = 0; row < count; ++row)
          kernel[row] = std::exp(-distance(sketches[s], domain, centre, row) / settings_.bandwidth);
        normalise(kernel);
        for (std::size_t row = 0; row < count; ++row) density[row] += times[centre] * kernel[row];
      }
      normalise(density);
      of_domains.push_back(std::move(density));
    }
    result.rows.push_back(std::move(of_domains));
  }
  return result;
}

Proposal Bayesian::proposal(int count, Scorer& scorer) {
  Proposal found;
  const auto is_new = [&](const codegen::Candidate& candidate) { return proposed_.take(candidate, scorer); };
  if (int(measured_.size()) >= settings_.first) {
    const std::size_t fast = std::size_t(std::ceil(settings_.good_share * double(measured_.size())));
    const Density good = density(std::span(measured_).first(fast)),
                  others = density(std::span(measured_).subspan(fast));
    std::vector<std::pair<double, Point>> drawn_points;  // with the logarithm of the ratio of densities
    for (int draw = 0; draw < settings_.draws * count; ++draw) {
      Point point{drawn(good.sketches, stream_), {}};
      double ratio = std::log(good.sketches[point.sketch] / others.sketches[point.sketch]);
      for (std::size_t d = 0; d < good.rows[point.sketch].size(); ++d) {
        const std::vector<double>& rows = good.rows[point.sketch][d];
        point.rows.push_back(drawn(rows, stream_));
        ratio += std::log(rows[point.rows.back()] / others.rows[point.sketch][d][point.rows.back()]);
      }
      drawn_points.emplace_back(ratio, std::move(point));
    }
    std::stable_sort(drawn_points.begin(), drawn_points.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    const int random = random_of(count, selection_, proposed_.size());
    for (const auto& [ratio, point] : drawn_points) {
      if (int(found.others.size()) == count - random) break;
      const base::Result<codegen::Candidate> candidate = space_.admitted(candidate_at(point, space_), scorer.judge());
      if (candidate && is_new(*candidate)) found.others.push_back(*candidate);
    }
  }
  fill_at_random(found.others, count, space_, stream_, scorer.judge(), is_new);
  return found;
}

void Bayesian::told(std::span<const datasets::Trial> trials) {
  proposed_.add(trials);
  for (const datasets::Trial& trial : trials) {
    std::optional<Point> point = point_of(trial.candidate, space_);
    const bool ok = trial.measurement.status == datasets::Status::ok;
    const double seconds = ok ? datasets::seconds_of(trial.measurement) : std::numeric_limits<double>::infinity();
    if (point) measured_.push_back({std::move(*point), seconds});
  }
  std::stable_sort(measured_.begin(), measured_.end(),
                   [](const Measured& a, const Measured& b) { return a.seconds < b.seconds; });
}

}  // namespace graft::search
