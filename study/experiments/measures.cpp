#include "study/experiments/measures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "base/error.h"

namespace graft::study {
namespace {

using search::Searched;
using Place = std::pair<std::string, std::string>;  // workload, platform

constexpr std::uint64_t interval_seed = 1;

double best_after(const Searched& search, std::int64_t trials) {
  if (search.best_seconds.empty()) return std::numeric_limits<double>::infinity();
  const std::size_t all = search.best_seconds.size();
  return search.best_seconds[trials == 0 ? all - 1 : std::min(std::size_t(trials), all) - 1];
}

bool is_among(const std::string& name, const std::vector<std::string>& only) {
  return only.empty() || std::find(only.begin(), only.end(), name) != only.end();
}

std::vector<const Searched*> searches_of(const std::vector<Searched>& searches, const std::string& method,
                                         const std::vector<std::string>& only = {}) {
  std::vector<const Searched*> own;
  for (const Searched& search : searches) {
    if (search.method == method && is_among(search.workload, only)) own.push_back(&search);
  }
  return own;
}

// The search of the other method with the same workload, platform and seed; null: it has none (yet).
const Searched* partner(const std::vector<Searched>& searches, const Searched& search, const std::string& other) {
  for (const Searched& each : searches) {
    if (each.method == other && each.workload == search.workload && each.platform == search.platform &&
        each.seed == search.seed)
      return &each;
  }
  return nullptr;
}

base::Interval factor(const std::vector<double>& logarithms) {
  return base::bootstrap_geometric_mean(logarithms, 0.95, interval_seed);
}

double log_speed(double reference, double seconds) {
  return std::log(std::max(reference / seconds, search::least_speed));
}

// `seconds` may be a mean of logarithms, which rounds.
std::int64_t trials_until(const Searched& search, double seconds) {
  constexpr double rounding = 1 + 1e-9;
  const auto there = std::find_if(search.best_seconds.begin(), search.best_seconds.end(),
                                  [&](double best) { return best <= seconds * rounding; });
  return there - search.best_seconds.begin() + 1;
}

// The time that `share` of the speed of the method to reach takes, by workload and platform: of the mean speed over its
// seeds.
std::map<Place, double> times_to_reach(const Claim& claim, const std::vector<Searched>& searches) {
  std::map<Place, std::vector<double>> logs;
  const std::string& reached = claim.reach.empty() ? claim.other : claim.reach;
  for (const Searched* const search : searches_of(searches, reached, claim.only)) {
    const double best = best_after(*search, claim.other_at);
    if (std::isfinite(best)) logs[{search->workload, search->platform}].push_back(std::log(best));
  }
  std::map<Place, double> times;
  for (const auto& [place, all] : logs) times[place] = std::exp(base::mean(all)) / claim.share;
  return times;
}

Finding speed(const Claim& claim, const std::vector<Searched>& searches) {
  Finding found;
  std::vector<double> logs;
  for (const Searched* const search : searches_of(searches, claim.method, claim.only)) {
    const Searched* const other = partner(searches, *search, claim.other);
    if (other == nullptr) continue;
    const double reference = best_after(*other, claim.other_at);
    if (std::isfinite(reference)) logs.push_back(log_speed(reference, best_after(*search, claim.at)));
  }
  found.of = std::int64_t(logs.size());
  found.value = factor(logs);
  return found;
}

std::vector<std::string> workloads_of(const std::vector<const Searched*>& searches) {
  std::vector<std::string> workloads;
  for (const Searched* const search : searches) {
    if (std::find(workloads.begin(), workloads.end(), search->workload) == workloads.end())
      workloads.push_back(search->workload);
  }
  return workloads;
}

Finding speed_of_workload(const Claim& claim, const std::vector<Searched>& searches, const std::string& workload) {
  Claim of_one = claim;
  of_one.only = {workload};
  return speed(of_one, searches);
}

Finding least_speed_of(const Claim& claim, const std::vector<Searched>& searches) {
  Finding found;
  found.value = {std::numeric_limits<double>::infinity(), NAN, NAN};
  for (const std::string& workload : workloads_of(searches_of(searches, claim.method, claim.only))) {
    const Finding one = speed_of_workload(claim, searches, workload);
    found.of += one.of;
    if (!(one.value.mean < found.value.mean)) continue;
    found.value.mean = one.value.mean;
    found.where = workload;
  }
  return found;
}

Finding wins(const Claim& claim, const std::vector<Searched>& searches) {
  Finding found;
  found.value = {0, NAN, NAN};
  for (const std::string& workload : workloads_of(searches_of(searches, claim.method, claim.only))) {
    const Finding one = speed_of_workload(claim, searches, workload);
    found.of += one.of;
    found.value.mean += one.of > 0 && one.value.mean >= 1;
  }
  return found;
}

Finding sum(const Claim& claim, const std::vector<Searched>& searches) {
  std::map<std::int64_t, std::pair<double, double>> sums;  // by timing: of the method and of the other
  Finding found;
  for (const Searched* const search : searches_of(searches, claim.method, claim.only)) {
    const Searched* const other = partner(searches, *search, claim.other);
    if (other == nullptr) continue;
    const auto known = claim.weights.find(search->workload);
    const double weight = known == claim.weights.end() ? 1 : known->second;
    auto& [own, theirs] = sums[search->seed];
    own += weight * best_after(*search, claim.at);
    theirs += weight * best_after(*other, claim.other_at);
    ++found.of;
  }
  std::vector<double> logs;
  for (const auto& [timing, both] : sums) logs.push_back(std::log(both.second / both.first));
  found.value = factor(logs);
  return found;
}

// For searches that have a time to reach: the geometric mean of `value` of a search, that time and its trials until
// then.
template <class Value>
Finding until_reached(const Claim& claim, const std::vector<Searched>& searches, const Value& value) {
  const std::map<Place, double> wanted = times_to_reach(claim, searches);
  Finding found;
  std::vector<double> logs;
  for (const Searched* const search : searches_of(searches, claim.method, claim.only)) {
    const auto time = wanted.find({search->workload, search->platform});
    if (time == wanted.end()) continue;
    const std::int64_t count = trials_until(*search, time->second);
    const std::optional<double> known = value(*search, time->second, count);
    if (!known) continue;
    found.never += count > std::int64_t(search->best_seconds.size());
    logs.push_back(std::log(*known));
  }
  found.of = std::int64_t(logs.size());
  found.value = factor(logs);
  return found;
}

Finding trials(const Claim& claim, const std::vector<Searched>& searches) {
  return until_reached(claim, searches, [](const Searched&, double, std::int64_t count) {
    return std::optional<double>(double(count));
  });
}

Finding times_fewer(const Claim& claim, const std::vector<Searched>& searches) {
  return until_reached(claim, searches,
                       [&](const Searched& search, double seconds, std::int64_t count) -> std::optional<double> {
                         const Searched* const other = partner(searches, search, claim.other);
                         if (other == nullptr) return std::nullopt;
                         return double(trials_until(*other, seconds)) / double(count);
                       });
}

// A row of an evaluation or of its searches: the value of each of its draws, or seeds. `number` says which of shots and
// trials it has.
struct Draws {
  std::string place, target;
  std::int64_t number = 0;
  std::vector<double> values;
};

std::vector<Draws> draws_of(const Claim& claim, const base::Document& evaluation, const std::string& method) {
  const bool of_searches = claim.metric.empty();
  std::vector<Draws> out;
  const base::Document* const rows = evaluation.find(of_searches ? "searches" : "rows");
  if (rows == nullptr) return out;
  for (const base::Document& row : rows->as_list()) {
    if (row.at("method").as_string() != method || !is_among(row.at("target").as_string(), claim.only)) continue;
    Draws& draws = out.emplace_back();
    draws.place = row.place();
    draws.target = row.at("target").as_string();
    draws.number = row.at(of_searches ? "trials" : "shots").as_integer();
    const base::Document& values = of_searches ? row.at("by_seed") : row.at("by_draw").at(claim.metric);
    for (const base::Document& value : values.as_list())
      draws.values.push_back(value.is_null() ? 0 : value.as_number());
  }
  return out;
}

// By draw, the mean over targets of a method's values at that number; of searches the geometric one.
std::vector<double> means_of(const Claim& claim, const base::Document& evaluation, const std::string& method,
                             std::int64_t number, std::int64_t& targets) {
  const bool geometric = claim.metric.empty();
  std::vector<double> sums;
  targets = 0;
  for (const Draws& draws : draws_of(claim, evaluation, method)) {
    if (draws.number != number) continue;
    if (targets++ == 0) sums.resize(draws.values.size(), 0.0);
    if (draws.values.size() != sums.size())
      throw base::UserError(draws.place, "targets differ in their number of draws");
    for (std::size_t d = 0; d < sums.size(); ++d) sums[d] += geometric ? std::log(draws.values[d]) : draws.values[d];
  }
  for (double& sum : sums) {
    sum /= double(std::max<std::int64_t>(targets, 1));
    if (geometric) sum = std::exp(sum);
  }
  return sums;
}

Finding least_found_gain(const Claim& claim, const base::Document& evaluation) {
  Finding found;
  found.value = {std::numeric_limits<double>::infinity(), NAN, NAN};
  const std::vector<Draws> others = draws_of(claim, evaluation, claim.other);
  for (const Draws& own : draws_of(claim, evaluation, claim.method)) {
    if (claim.at > 0 && own.number != claim.at) continue;
    const auto other = std::find_if(others.begin(), others.end(), [&](const Draws& each) {
      return each.target == own.target && each.number == own.number;
    });
    if (other == others.end()) continue;
    ++found.of;
    const double gain = base::mean(own.values) - base::mean(other->values);
    if (!(gain < found.value.mean)) continue;
    found.value.mean = gain;
    found.where = fmt::format("{} after {}", own.target, own.number);
  }
  return found;
}

Finding scored(const Claim& claim, const base::Document& evaluation) {
  Finding found;
  if (evaluation.is_null()) return found;  // interrupted
  if (claim.measure == "least-found-gain") return least_found_gain(claim, evaluation);
  const std::vector<double> own = means_of(claim, evaluation, claim.method, claim.at, found.of);
  if (claim.measure == "score" || claim.measure == "found") {
    found.value = base::bootstrap_mean(own, 0.95, interval_seed);
    return found;
  }
  std::int64_t targets = 0;
  const std::vector<double> other = means_of(claim, evaluation, claim.other, claim.other_at, targets);
  found.of = std::min(found.of, targets);
  if (own.size() == other.size()) {
    found.value = base::bootstrap_paired_difference(own, other, 0.95, interval_seed);
  } else {  // one of them has a single draw, being scored without support
    found.value = {base::mean(own) - base::mean(other), NAN, NAN};
  }
  return found;
}

}  // namespace

base::Interval speed_of_fastest(const std::vector<Searched>& searches, const std::string& method, std::int64_t trials) {
  std::map<Place, double> fastest;
  for (const Searched& search : searches) {
    double& least = fastest.emplace(Place{search.workload, search.platform}, best_after(search, 0)).first->second;
    for (const double best : search.best_seconds) least = std::min(least, best);
  }
  std::vector<double> logs;
  for (const Searched* const search : searches_of(searches, method)) {
    const double least = fastest.at({search->workload, search->platform});
    if (std::isfinite(least)) logs.push_back(log_speed(least, best_after(*search, trials)));
  }
  return factor(logs);
}

Finding finding(const Claim& claim, const ExperimentResults& results) {
  Finding found = claim.measure == "speed"         ? speed(claim, results.searches)
                  : claim.measure == "least-speed" ? least_speed_of(claim, results.searches)
                  : claim.measure == "wins"        ? wins(claim, results.searches)
                  : claim.measure == "sum"         ? sum(claim, results.searches)
                  : claim.measure == "trials"      ? trials(claim, results.searches)
                  : claim.measure == "times-fewer" ? times_fewer(claim, results.searches)
                                                   : scored(claim, results.evaluation);
  if (found.of == 0 || !std::isfinite(found.value.mean)) return found;
  const bool at_least = claim.at_least.has_value();
  const double bound = at_least ? *claim.at_least : *claim.at_most;
  const double outside = at_least ? bound - found.value.mean : found.value.mean - bound;
  found.short_by = std::max(outside, 0.0);
  if (outside <= 0) {
    found.verdict = Finding::Verdict::reproduced;
  } else {
    const double nearest = at_least ? found.value.high : found.value.low;
    const bool all_outside = std::isfinite(nearest) && (at_least ? nearest < bound : nearest > bound);
    found.verdict = all_outside ? Finding::Verdict::contradicted : Finding::Verdict::open;
  }
  return found;
}

std::string_view name_of(Finding::Verdict verdict) {
  switch (verdict) {
    case Finding::Verdict::reproduced:
      return "reproduced";
    case Finding::Verdict::open:
      return "not reproduced";
    case Finding::Verdict::contradicted:
      return "contradicted";
  }
  return "";
}

}  // namespace graft::study
