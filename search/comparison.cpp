#include "search/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/shortened.h"
#include "base/statistics.h"
#include "search/explorer.h"

namespace graft::search {
namespace {

using Place = std::pair<std::string, std::string>;                    // workload, platform
using Question = std::tuple<std::string, std::string, std::int64_t>;  // and seed

std::string text_of(const Question& question) {
  return fmt::format("{} on {}, seed {}", base::shortened(std::get<0>(question)), std::get<1>(question),
                     std::get<2>(question));
}

// By method in order of their first search, then by question.
std::vector<std::pair<std::string, std::map<Question, const Searched*>>> by_method(
    const std::vector<Searched>& searches) {
  std::vector<std::pair<std::string, std::map<Question, const Searched*>>> out;
  std::set<Question> asked;
  for (const Searched& search : searches) {
    auto own = std::find_if(out.begin(), out.end(), [&](const auto& each) { return each.first == search.method; });
    if (own == out.end()) own = out.insert(out.end(), {search.method, {}});
    const Question question{search.workload, search.platform, search.seed};
    asked.insert(question);
    if (!own->second.emplace(question, &search).second)
      throw base::UserError(search.method, "has two searches of " + text_of(question));
  }
  for (const auto& [method, own] : out) {
    for (const Question& question : asked) {
      if (!own.contains(question))
        throw base::UserError(method, fmt::format("has no search of {}, which another method has", text_of(question)));
    }
  }
  return out;
}

// The mean of logarithms and its interval, back as a factor.
base::Interval factor(const std::vector<double>& logarithms, std::uint64_t seed) {
  const base::Interval mean = base::bootstrap_mean(logarithms, 0.95, seed);
  return {std::exp(mean.mean), std::exp(mean.low), std::exp(mean.high)};
}

std::int64_t trials_to(const Searched& search, double seconds) {
  const auto near = std::find_if(search.best_seconds.begin(), search.best_seconds.end(),
                                 [&](double best) { return best <= seconds; });
  return near - search.best_seconds.begin() + 1;
}

// The least of their times, from the search or measured again; infinity without any.
double best_of(const std::vector<datasets::Trial>& trials, const Retimed* retimed) {
  double least = std::numeric_limits<double>::infinity();
  for (const datasets::Trial& trial : trials) {
    least = std::min(least, retimed == nullptr ? datasets::seconds_of(trial.measurement)
                                               : retimed->at(codegen::hash(trial.candidate)));
  }
  return least;
}

}  // namespace

Searched searched(std::string method, std::string platform, std::int64_t seed,
                  const std::vector<datasets::Trial>& trials, const Retimed* retimed) {
  Searched out{std::move(method), "", std::move(platform), seed, {}};
  std::vector<datasets::Trial> fastest;
  for (const datasets::Trial& trial : trials) {
    const std::string& workload = trial.candidate.workload.text();
    if (out.workload.empty()) out.workload = workload;
    if (out.workload != workload)
      throw base::UserError(out.method, fmt::format("a run of several workloads ({}, {}) is not a search",
                                                    base::shortened(out.workload), base::shortened(workload)));
    keep_fastest(fastest, {&trial, 1}, finalist_count);
    out.best_seconds.push_back(best_of(fastest, retimed));
  }
  return out;
}

std::vector<codegen::Candidate> finalists(const std::vector<datasets::Trial>& trials) {
  std::vector<codegen::Candidate> out;
  std::vector<datasets::Trial> fastest;
  std::set<std::uint64_t> known;  // candidates
  for (const datasets::Trial& trial : trials) {
    keep_fastest(fastest, {&trial, 1}, finalist_count);
    for (const datasets::Trial& one : fastest) {
      if (known.insert(codegen::hash(one.candidate)).second) out.push_back(one.candidate);
    }
  }
  return out;
}

std::vector<MethodSearched> compare_searches(const std::vector<Searched>& searches,
                                             const std::vector<std::int64_t>& counts, const std::string& against,
                                             double near, std::uint64_t seed) {
  const auto methods = by_method(searches);
  const auto base =
      std::find_if(methods.begin(), methods.end(), [&](const auto& each) { return each.first == against; });
  if (base == methods.end()) throw base::UserError(against, "is the method of none of these searches");
  std::map<Place, double> fastest;
  for (const Searched& search : searches) {
    const auto least_of = std::min_element(search.best_seconds.begin(), search.best_seconds.end());
    if (least_of == search.best_seconds.end() || !std::isfinite(*least_of))
      throw base::UserError(search.method, fmt::format("no trial of {} was ok",
                                                       text_of({search.workload, search.platform, search.seed})));
    if (std::int64_t(search.best_seconds.size()) < counts.back())
      throw base::UserError(search.method, fmt::format("{} has {} trials of the {} that are asked for",
                                                       text_of({search.workload, search.platform, search.seed}),
                                                       search.best_seconds.size(), counts.back()));
    double& least = fastest.emplace(Place{search.workload, search.platform}, *least_of).first->second;
    least = std::min(least, *least_of);
  }

  std::vector<MethodSearched> out;
  for (const auto& [method, own] : methods) {
    MethodSearched row;
    row.method = method;
    row.searches = std::int64_t(own.size());
    std::vector<double> to_near, fewer;
    for (const auto& [question, search] : own) {
      const double wanted = fastest.at({search->workload, search->platform}) / near;
      const std::int64_t trials = trials_to(*search, wanted);
      row.never += trials > std::int64_t(search->best_seconds.size());
      to_near.push_back(std::log(double(trials)));
      fewer.push_back(std::log(double(trials_to(*base->second.at(question), wanted))) - to_near.back());
    }
    row.trials_to_near = factor(to_near, seed);
    row.times_fewer = factor(fewer, seed);
    for (const std::int64_t count : counts) {
      std::vector<double> speed, slower;
      for (const auto& [question, search] : own) {
        // Without an ok trial so far there is no speed; a hundredth keeps means finite.
        const double least = fastest.at({search->workload, search->platform});
        const auto after = [&](const Searched& one) {
          return std::log(std::max(least / one.best_seconds[std::size_t(count - 1)], least_speed));
        };
        speed.push_back(after(*search));
        slower.push_back(after(*base->second.at(question)) - speed.back());
      }
      row.speed.push_back(factor(speed, seed));
      const base::Interval ratio = factor(slower, seed);
      row.slower.push_back({ratio.mean - 1, ratio.low - 1, ratio.high - 1});
    }
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace graft::search
