// Learners whose adaptation is a formula: one network per source platform, then a regression on their scores or the
// choice of the nearest platform.
#include <algorithm>
#include <array>

#include "base/random.h"
#include "meta/learners/learners.h"
#include "meta/learners/source_basis.h"
#include "meta/metrics.h"
#include "meta/models/models.h"

namespace graft::meta {
namespace {

// Each source platform in turn plays the target with the others as its basis; no network has seen the platform it is
// judged on.
double chosen_lambda(const SourceBasis& basis, const TaskSet& tasks, std::uint64_t seed) {
  // From most to least shrinkage; where times differ by a few per cent, so do the squares that it stands beside.
  constexpr std::array<double, 13> lambdas = {10, 3, 1, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5};
  constexpr std::int64_t draws = 4;
  constexpr std::array<std::int64_t, 2> shots = {5, 20};
  std::array<double, lambdas.size()> sums{};
  const std::size_t sources = basis.sources.size();
  if (sources < 2) return 1;
  for (std::size_t target = 0; target < sources; ++target) {
    std::vector<BasisGroup> groups;
    for (const Examples& group : tasks.groups) {
      if (group.platform != basis.sources[target].platform) continue;
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

class BayesRidgeLearner final : public Learner {
 public:
  std::unique_ptr<CostModel> train(const TaskSet& tasks, const LearnerSettings& settings,
                                   base::Monitor& monitor) const override {
    return make_bayes_ridge_model(train_basis(tasks, settings, monitor), {});
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
std::unique_ptr<Learner> make_bayes_ridge_learner() {
  return std::make_unique<BayesRidgeLearner>();
}
std::unique_ptr<Learner> make_residual_learner() {
  return std::make_unique<ResidualLearner>();
}
std::unique_ptr<Learner> make_nearest_learner() {
  return std::make_unique<NearestLearner>();
}

}  // namespace graft::meta
