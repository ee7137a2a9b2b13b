// Learners whose adaptation is a formula: one network per source platform, then a regression on their scores or the
// choice of the nearest platform.
#include <algorithm>
#include <array>

#include "base/parallel.h"
#include "meta/learners/learners.h"
#include "meta/learners/training.h"
#include "meta/metrics.h"
#include "meta/models/models.h"

namespace graft::meta {
namespace {

constexpr std::int64_t default_steps = 400;

// Says nothing of progress, passes the wish to stop on: training in parallel must not report from several threads.
class Quiet final : public base::Monitor {
 public:
  explicit Quiet(base::Monitor& to) : to_(to) {}
  bool stop_requested() override { return to_.stop_requested(); }

 private:
  base::Monitor& to_;
};

SourceBasis train_basis(const TaskSet& tasks, const LearnerSettings& settings, base::Monitor& monitor) {
  require_groups(tasks);
  SourceBasis basis;
  basis.platforms = platforms(tasks);
  basis.normalisation = fit_normalisation(tasks.groups);
  basis.shape = network_shape(tasks, settings);
  basis.thetas.assign(basis.platforms.size(), initial_parameters(basis.shape, settings.seed));
  const std::vector<PreparedGroup> groups = prepared(basis.normalisation, tasks.groups);
  const auto network = make_network(basis.shape, settings.backend);
  Quiet quiet(monitor);
  base::parallel_for(std::int64_t(basis.platforms.size()), settings.threads, [&](std::int64_t s) {
    std::vector<PreparedGroup> own;
    for (const PreparedGroup& group : groups) {
      if (group.platform == basis.platforms[std::size_t(s)]) own.push_back(group);
    }
    PooledSettings pooled;
    pooled.loss = Loss::squared;
    pooled.steps = settings.steps > 0 ? settings.steps : default_steps;
    train_pooled(*network, basis.thetas[std::size_t(s)], own, pooled, settings.seed,
                 "training for " + basis.platforms[std::size_t(s)], quiet);
  });
  monitor.progress("source platforms", std::int64_t(basis.platforms.size()), std::int64_t(basis.platforms.size()));
  return basis;
}

// Each source platform in turn plays the target with the others as its basis; no network has seen the platform it is
// judged on.
double chosen_lambda(const SourceBasis& basis, const TaskSet& tasks, std::uint64_t seed) {
  constexpr std::array<double, 7> lambdas = {10, 3, 1, 0.3, 0.1, 0.03, 0.01};  // from most to least shrinkage
  constexpr std::int64_t draws = 4;
  constexpr std::array<std::int64_t, 2> shots = {5, 20};
  std::array<double, lambdas.size()> sums{};
  const std::size_t sources = basis.platforms.size();
  if (sources < 2) return 1;
  for (std::size_t target = 0; target < sources; ++target) {
    std::vector<BasisGroup> groups;
    for (const Examples& group : tasks.groups) {
      if (group.platform != basis.platforms[target]) continue;
      const base::Matrix all = basis.predict(group.features);
      BasisGroup others{base::Matrix(all.rows, all.columns - 1), group.log_seconds};
      for (std::int64_t r = 0; r < all.rows; ++r) {
        for (std::int64_t s = 0, to = 0; s < all.columns; ++s) {
          if (s != std::int64_t(target)) others.basis.at(r, to++) = all.at(r, s);
        }
      }
      groups.push_back(std::move(others));
    }
    const std::vector<double> shares(sources - 1, 1.0 / double(sources - 1));
    for (const std::int64_t shot : shots) {
      for (std::int64_t draw = 0; draw < draws; ++draw) {
        base::Stream stream(seed, "shrinkage trial", std::uint64_t(draw));
        std::vector<BasisGroup> support, query;
        for (const BasisGroup& group : groups) {
          const std::vector<std::int64_t> rows = stream.choose(group.basis.rows, group.basis.rows);
          const std::size_t cut = std::min<std::size_t>(std::size_t(shot), rows.size() / 2);
          BasisGroup part[2];
          for (std::size_t i = 0; i < rows.size(); ++i) {
            BasisGroup& to = part[i < cut ? 0 : 1];
            const auto row = group.basis.row(rows[i]);
            to.basis.values.insert(to.basis.values.end(), row.begin(), row.end());
            to.log_seconds.push_back(group.log_seconds[std::size_t(rows[i])]);
          }
          for (BasisGroup& made : part) {
            made.basis.rows = std::int64_t(made.log_seconds.size());
            made.basis.columns = group.basis.columns;
          }
          support.push_back(std::move(part[0]));
          query.push_back(std::move(part[1]));
        }
        for (std::size_t l = 0; l < lambdas.size(); ++l) {
          const std::vector<double> weights = ridge_weights(support, shares, lambdas[l]);
          for (const BasisGroup& group : query) {
            std::vector<float> scores;
            for (std::int64_t r = 0; r < group.basis.rows; ++r) {
              double score = 0;
              for (std::size_t s = 0; s < weights.size(); ++s)
                score += weights[s] * double(group.basis.at(r, std::int64_t(s)));
              scores.push_back(float(score));
            }
            sums[l] += rank_correlation(scores, group.log_seconds) / double(query.size());
          }
        }
      }
    }
  }
  return lambdas[std::size_t(std::max_element(sums.begin(), sums.end()) - sums.begin())];
}

class RidgeLearner final : public Learner {
 public:
  std::unique_ptr<CostModel> train(const TaskSet& tasks, const LearnerSettings& settings,
                                   base::Monitor& monitor) const override {
    SourceBasis basis = train_basis(tasks, settings, monitor);
    const double lambda = chosen_lambda(basis, tasks, settings.seed);
    return make_ridge_model(std::move(basis), {}, lambda);
  }
};

class ResidualLearner final : public Learner {
 public:
  std::unique_ptr<CostModel> train(const TaskSet& tasks, const LearnerSettings& settings,
                                   base::Monitor& monitor) const override {
    return make_residual_model(train_basis(tasks, settings, monitor));
  }
};

class NearestLearner final : public Learner {
 public:
  std::unique_ptr<CostModel> train(const TaskSet& tasks, const LearnerSettings& settings,
                                   base::Monitor& monitor) const override {
    return make_nearest_model(train_basis(tasks, settings, monitor));
  }
};

}  // namespace

std::unique_ptr<Learner> make_ridge_learner() {
  return std::make_unique<RidgeLearner>();
}
std::unique_ptr<Learner> make_residual_learner() {
  return std::make_unique<ResidualLearner>();
}
std::unique_ptr<Learner> make_nearest_learner() {
  return std::make_unique<NearestLearner>();
}

}  // namespace graft::meta
