#include "meta/methods/residual.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/monitor.h"
#include "base/random.h"
#include "base/team.h"
#include "meta/gradient/training.h"
#include "meta/methods/kernel_model.h"
#include "meta/metrics.h"
#include "meta/sources/training.h"

namespace graft::meta {
namespace {

// The programs with `share` of them, drawn at random, permuted among themselves.
std::vector<std::int64_t> partly_permuted(std::int64_t count, double share, base::Stream& stream) {
  std::vector<std::int64_t> out(std::size_t(count), 0);
  std::iota(out.begin(), out.end(), std::int64_t(0));
  const std::vector<std::int64_t> drawn = stream.choose(count, std::llround(share * double(count)));
  std::vector<std::int64_t> places = drawn;
  std::sort(places.begin(), places.end());
  for (std::size_t i = 0; i < places.size(); ++i) out[std::size_t(places[i])] = drawn[i];
  return out;
}

// How well a regression is tried: support sizes, and what share of a source's programs it takes for others.
constexpr std::array<std::int64_t, 5> tried_shots = {4, 8, 16, 32, 64};
struct Regime {
  double permuted;  // share of the programs
  float probability;
};

// The mean moments of what regressions on the sources leave over of rows of these groups, by regime and shots.
std::vector<float> moments_left(const StackingMoments& of_others, const std::vector<const Examples*>& groups,
                                const std::vector<Regime>& regimes, std::size_t moments, base::Stream& stream,
                                base::Monitor& monitor) {
  constexpr std::int64_t draws = 8, query_rows = 100;
  std::vector<float> out(regimes.size() * tried_shots.size() * moments);
  for (std::int64_t draw = 0; draw < draws; ++draw) {
    base::check_stop(monitor);
    const Examples& group = *groups[std::size_t(stream.below(std::int64_t(groups.size())))];
    const std::int64_t most = std::min(group.size(), tried_shots.back() + query_rows);
    std::vector<StackingTrial> trials;  // by regime and shots
    for (const Regime& regime : regimes) {
      for (const std::int64_t shot : tried_shots) {
        const std::int64_t support = std::min(shot, group.size() / 2);
        const std::int64_t rows = std::min(most, support + query_rows);
        trials.push_back({support, partly_permuted(rows, regime.permuted, stream)});
      }
    }
    const auto left = of_others.of(chosen(group, stream.choose(group.size(), most)), trials);
    auto to = out.begin();
    for (const std::vector<double>& each : left) {
      for (const double moment : each) *to++ += float(moment / double(draws));
    }
  }
  return out;
}

// Over those that are not empty; empty if all are.
std::vector<float> mean_of(const std::vector<std::vector<float>>& all) {
  float count = 0;
  std::vector<float> mean;
  for (const std::vector<float>& each : all) {
    if (each.empty()) continue;
    ++count;
    mean.resize(each.size());
    for (std::size_t i = 0; i < each.size(); ++i) mean[i] += each[i];
  }
  for (float& value : mean) value /= count;
  return mean;
}

// The residuals of residual's regressions on the sources, each of which takes the role of the target in turn, with rows
// of one workload: the hardest case, and that of a search. In four regimes: sources that take each program for what it
// is, and such that take a quarter, a half or all programs for others. The only source there is cannot tell what an
// honest one is worth; the others are then tried with itself as its source.
// trunks: of platforms without the one that is named, for each trusted source; none: the model has none.
using TrunksWithout = std::map<std::string, std::shared_ptr<const Trunk>>;
StackingPrior stacking_prior(const SourceBasis& basis, const TrunksWithout& trunks, float trunk_share,
                             const TaskSet& tasks, const LearnerSettings& settings, base::Monitor& monitor) {
  constexpr std::array<Regime, 4> all = {{{0, 0.8f}, {0.25, 0.1f}, {0.5, 0.05f}, {1, 0.05f}}};
  const auto sources = std::int64_t(basis.sources.size());
  const std::vector<Regime> regimes(all.begin() + (sources < 2 ? 1 : 0), all.end());
  const std::int64_t moments = triangle(stacking_regressions(basis, !trunks.empty()));
  base::SharedMonitor shared(monitor);
  // By source: regimes x shots x moments. None of one that is down-weighted, or without workloads of enough rows.
  const auto learnt = base::divided(team_of(settings), sources, settings.threads, [&](std::int64_t target) {
    std::vector<const Examples*> groups;
    for (const Examples& group : tasks.groups) {
      if (basis.counts(std::size_t(target)) && group.platform == basis.sources[std::size_t(target)].platform &&
          group.size() >= 2 * tried_shots.front())
        groups.push_back(&group);
    }
    if (groups.empty()) return std::vector<float>();
    std::optional<SharedTrunk> trunk;
    if (!trunks.empty()) trunk = SharedTrunk{*trunks.at(basis.sources[std::size_t(target)].platform), trunk_share};
    const StackingMoments of_others(sources < 2 ? basis : without(basis, std::size_t(target)), std::move(trunk));
    base::Stream stream(settings.seed, "regression trials", std::uint64_t(target));
    return moments_left(of_others, groups, regimes, std::size_t(moments), stream, shared);
  });
  const std::vector<float> mean = mean_of(learnt);
  if (mean.empty()) return {};
  StackingPrior prior;
  prior.rows.assign(tried_shots.begin(), tried_shots.end());
  prior.regressions = stacking_regressions(basis, !trunks.empty());
  const auto each = std::ptrdiff_t(tried_shots.size()) * moments;
  for (std::size_t r = 0; r < regimes.size(); ++r) {
    const auto first = mean.begin() + std::ptrdiff_t(r) * each;
    prior.regimes.push_back({regimes[r].probability, {first, first + each}});
  }
  return prior;
}

// Each is of the tasks' platforms without a fifth of them, or without one of fewer than five.
TrunksWithout trunks_without(const TaskSet& tasks, const LearnerSettings& settings, base::Monitor& monitor) {
  const std::vector<std::string> names = platforms(tasks);
  const std::size_t folds = std::min<std::size_t>(names.size(), 5);
  TrunksWithout out;
  for (std::size_t f = 0; f < folds; ++f) {
    std::vector<std::string> left_out, others;
    for (std::size_t s = 0; s < names.size(); ++s) (s % folds == f ? left_out : others).push_back(names[s]);
    const auto trunk = std::make_shared<const Trunk>(train_trunk(
        only_platforms(tasks, others), settings, fmt::format("shared layers, part {} left out", f), 2, monitor));
    for (const std::string& name : left_out) out[name] = trunk;
  }
  return out;
}

// The share of the trunks' scores in a mean with the other sources' that has the least squared error on the source left
// out, summed over the trusted sources, in units of each one's spread: 0 to 1.
float share_of_trunk(const SourceBasis& basis, const TrunksWithout& trunks, const TaskSet& tasks) {
  double along = 0, squares = 0;
  for (std::size_t s = 0; s < basis.sources.size(); ++s) {
    const SourceBasis::Source& source = basis.sources[s];
    if (!basis.counts(s) || source.spread == 0) continue;
    const SourceBasis others = without(basis, s);
    const Trunk& trunk = *trunks.at(source.platform);
    const std::vector<float> head = trunk.head();
    const double unit = double(others.usual_spread()) / double(source.spread);  // both predict in that of the others
    for (const Examples& group : tasks.groups) {
      if (group.platform != source.platform || group.size() < 2) continue;
      const base::Matrix scores = others.predict(group.features), shares = others.shares(group.features),
                         hidden = trunk.of(group.features);
      const auto count = std::size_t(group.size());
      std::vector<double> theirs(count), apart(count), speed(count);
      for (std::size_t p = 0; p < count; ++p) {
        const auto row = std::int64_t(p);
        const auto dot = [](std::span<const float> a, std::span<const float> b) {
          return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
        };
        theirs[p] = dot(scores.row(row), shares.row(row));
        apart[p] = dot(hidden.row(row), head) - theirs[p];
        speed[p] = -group.log_seconds[p] * unit;
      }
      for (std::vector<double>* const values : {&theirs, &apart, &speed}) {
        const double mean = std::accumulate(values->begin(), values->end(), 0.0) / double(count);
        for (double& value : *values) value -= mean;
      }
      for (std::size_t p = 0; p < count; ++p) {
        along += apart[p] * (speed[p] - theirs[p]);
        squares += apart[p] * apart[p];
      }
    }
  }
  return squares > 0 ? float(std::clamp(along / squares, 0.0, 1.0)) : 0.0f;
}

class ResidualLearner final : public Learner {
 public:
  std::unique_ptr<CostModel> train(const TaskSet& tasks, const LearnerSettings& settings,
                                   base::Monitor& monitor) const override {
    SourceBasis basis = train_basis(tasks, settings, monitor);
    // Only together with forests: networks, for tables, are few columns' own; and a trunk of one platform adds nothing.
    std::vector<std::string> trusted;
    for (std::size_t s = 0; s < basis.sources.size(); ++s) {
      if (basis.counts(s)) trusted.push_back(basis.sources[s].platform);
    }
    std::optional<SharedTrunk> trunk;
    TrunksWithout without_each;
    if (settings.trees && trusted.size() > 1 && tasks.encoding->shape != features::Shape::tree) {
      const TaskSet known = only_platforms(tasks, trusted);
      without_each = trunks_without(known, settings, monitor);
      trunk = SharedTrunk{train_trunk(known, settings, "shared layers", 1, monitor),
                          share_of_trunk(basis, without_each, tasks)};
    }
    StackingPrior prior = stacking_prior(basis, without_each, trunk ? trunk->share : 0.0f, tasks, settings, monitor);
    return make_residual_model(std::move(basis), std::move(trunk), std::move(prior));
  }
};

}  // namespace

std::unique_ptr<Learner> make_residual_learner() {
  return std::make_unique<ResidualLearner>();
}

}  // namespace graft::meta
