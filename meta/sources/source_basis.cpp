#include "meta/sources/source_basis.h"

#include <fmt/format.h>

#include <Eigen/Core>
#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "meta/forests/boosting.h"
#include "meta/gradient/adaptation.h"
#include "meta/learner.h"
#include "meta/metrics.h"
#include "meta/state.h"

namespace graft::meta {
namespace {

// programs x sources, summing to 1; weights: of the sources, one at least above 0.
base::Matrix likeness_of(const SourceBasis& basis, const features::Encoded& programs,
                         const std::vector<float>& weights) {
  const std::size_t sources = basis.sources.size();
  base::Matrix out(programs.programs(), std::int64_t(sources));
  const base::Matrix rows = basis.target_columns.empty() ? base::Matrix() : features::summed(programs);
  std::vector<float> distances(sources);
  for (std::int64_t r = 0; r < out.rows; ++r) {
    float nearest = std::numeric_limits<float>::infinity();  // so that one at least counts
    for (std::size_t s = 0; s < sources; ++s) {
      distances[s] = 0;
      for (std::size_t c = 0; c < basis.target_columns.size(); ++c) {
        const float apart = rows.at(r, basis.target_columns[c]) - basis.sources[s].target[c];
        distances[s] += apart * apart;
      }
      if (weights[s] > 0) nearest = std::min(nearest, distances[s]);
    }
    float sum = 0;
    for (std::size_t s = 0; s < sources; ++s)
      sum += out.at(r, std::int64_t(s)) = weights[s] > 0 ? weights[s] * std::exp((nearest - distances[s]) / 2) : 0.0f;
    for (float& share : out.row(r)) share /= sum;
  }
  return out;
}

}  // namespace

base::Matrix SourceBasis::predict(const features::Encoded& programs) const {
  base::Matrix out(programs.programs(), std::int64_t(sources.size()));
  if (out.rows == 0) return out;
  std::vector<float> scores(std::size_t(out.rows), 0.0f);
  const auto put_column = [&](std::size_t s) {
    const float scale = this->scale(s);
    for (std::int64_t p = 0; p < out.rows; ++p) out.at(p, std::int64_t(s)) = scale * scores[std::size_t(p)];
  };
  if (!forests.empty()) {
    const base::Matrix rows = tree_rows(programs);
    for (std::size_t s = 0; s < scorers.size(); ++s) {
      scorers[s]->score(rows, scores);
      put_column(s);
    }
    return out;
  }
  const features::Encoded x = normalisation.apply(programs);
  const auto network = make_network(shape);
  for (std::size_t s = 0; s < thetas.size(); ++s) {
    network->score(thetas[s], inputs_of(x), scores);
    put_column(s);
  }
  return out;
}

float SourceBasis::usual_spread() const {
  float sum = 0;
  for (const Source& each : sources) sum += each.spread;
  return sum / float(sources.size());
}

float SourceBasis::scale(std::size_t source) const {
  return sources[source].spread == 0 ? 1 : usual_spread() / sources[source].spread;
}

base::Matrix SourceBasis::shares(const features::Encoded& programs) const {
  std::vector<float> weights;
  for (std::size_t s = 0; s < sources.size(); ++s) weights.push_back(counts(s) ? sources[s].weight : 0.0f);
  return likeness_of(*this, programs, weights);
}

base::Matrix SourceBasis::likeness(const features::Encoded& programs) const {
  return likeness_of(*this, programs, std::vector<float>(sources.size(), 1.0f));
}

std::vector<double> SourceBasis::equal_shares() const {
  std::vector<double> out;
  for (std::size_t s = 0; s < sources.size(); ++s) out.push_back(counts(s) ? double(sources[s].weight) : 0.0);
  const double count = std::accumulate(out.begin(), out.end(), 0.0);
  for (double& share : out) share /= count;
  return out;
}

bool SourceBasis::takes(const features::Encoding& encoding) const {
  return forests.empty() ? meta::takes(shape, encoding)
                         : forests.front().features == std::int64_t(encoding.features.size());
}

bool SourceBasis::counts(std::size_t source) const {
  return !sources[source].doubted ||
         std::all_of(sources.begin(), sources.end(), [](const Source& each) { return each.doubted; });
}

void doubt_contrary_sources(SourceBasis& basis, std::span<const Examples> groups) {
  constexpr std::int64_t rows_in_all = 4096, least_rows = 16;
  const std::size_t sources = basis.sources.size();
  for (SourceBasis::Source& source : basis.sources) source.doubted = false;
  if (sources < 3) return;
  Eigen::MatrixXd agreement = Eigen::MatrixXd::Zero(Eigen::Index(sources), Eigen::Index(sources));
  for (const Examples& group : groups) {
    const std::int64_t most = std::max(least_rows, rows_in_all / std::int64_t(groups.size())),
                       count = std::min(most, group.size());
    std::vector<std::int64_t> some;
    for (std::int64_t i = 0; i < count; ++i) some.push_back(i * group.size() / count);
    const base::Matrix predicted = basis.predict(features::chosen(group.features, some));
    std::vector<std::vector<float>> scores(sources);
    for (std::int64_t r = 0; r < count; ++r) {
      for (std::size_t s = 0; s < sources; ++s) scores[s].push_back(predicted.at(r, std::int64_t(s)));
    }
    for (std::size_t a = 0; a < sources; ++a) {
      std::vector<double> seconds;
      for (const float score : scores[a]) seconds.push_back(-double(score));
      for (std::size_t b = 0; b < sources; ++b) {
        if (b != a) agreement(Eigen::Index(a), Eigen::Index(b)) += rank_correlation(scores[b], seconds);
      }
    }
  }
  // Removed one at a time: a single contradictory source also lowers the agreement of the others.
  for (std::size_t believed = sources; believed >= 3; --believed) {
    Eigen::Index worst = 0;
    Eigen::VectorXd with_others = agreement.rowwise().sum();
    for (std::size_t s = 0; s < sources; ++s) {
      if (basis.sources[s].doubted) with_others[Eigen::Index(s)] = std::numeric_limits<double>::infinity();
    }
    if (with_others.minCoeff(&worst) >= 0) return;
    basis.sources[std::size_t(worst)].doubted = true;
    agreement.col(worst).setZero();
  }
}

std::optional<std::size_t> source_of(const SourceBasis& basis, std::string_view platform) {
  for (std::size_t s = 0; s < basis.sources.size(); ++s) {
    if (basis.sources[s].platform == platform) return s;
  }
  return std::nullopt;
}

namespace {

template <class T>
void put_at(std::vector<T>& all, std::size_t place, T value) {
  if (place == all.size()) all.emplace_back();
  all[place] = std::move(value);
}

// The position of the source.
std::size_t place_of(SourceBasis& basis, const SourceBasis::Source& source) {
  assert(source.target.size() == basis.target_columns.size());
  const std::size_t place = source_of(basis, source.platform).value_or(basis.sources.size());
  put_at(basis.sources, place, source);
  return place;
}

}  // namespace

void add(SourceBasis& basis, const SourceBasis::Source& source, std::vector<float> theta) {
  assert(basis.forests.empty());
  put_at(basis.thetas, place_of(basis, source), std::move(theta));
}

void add(SourceBasis& basis, const SourceBasis::Source& source, DecisionForest forest) {
  assert(basis.thetas.empty());
  const std::size_t place = place_of(basis, source);
  put_at(basis.scorers, place, std::shared_ptr<const ForestScorer>(std::make_shared<ForestScorer>(forest)));
  put_at(basis.forests, place, std::move(forest));
}

SourceBasis without(SourceBasis basis, std::size_t source) {
  const auto erase = [&](auto& of_sources) {
    if (!of_sources.empty()) of_sources.erase(of_sources.begin() + std::ptrdiff_t(source));
  };
  erase(basis.sources), erase(basis.thetas), erase(basis.forests), erase(basis.scorers);
  return basis;
}

SourceBasis only(const SourceBasis& basis, std::size_t source) {
  SourceBasis out = basis;
  for (std::size_t s = basis.sources.size(); s-- > 0;) {
    if (s != source) out = without(std::move(out), s);
  }
  return out;
}

void put(const SourceBasis& basis, base::Arrays& arrays) {
  put(basis.normalisation, arrays);
  put(basis.shape, arrays);
  std::vector<std::string> platforms;
  std::vector<float> spreads, targets, weights;
  for (const SourceBasis::Source& source : basis.sources) {
    weights.push_back(source.weight);
    platforms.push_back(source.platform);
    spreads.push_back(source.spread);
    targets.insert(targets.end(), source.target.begin(), source.target.end());
  }
  arrays.attributes["platforms"] = base::join(platforms, "\n");
  put_values(arrays, "source_spreads", spreads);
  put_values(arrays, "source_targets", targets);
  if (std::any_of(weights.begin(), weights.end(), [](float weight) { return weight != 1; }))
    put_values(arrays, "source_weights", weights);
  put_integers(arrays, "target_columns", basis.target_columns);
  std::vector<std::int64_t> doubted;
  for (std::size_t s = 0; s < basis.sources.size(); ++s) {
    if (basis.sources[s].doubted) doubted.push_back(std::int64_t(s));
  }
  if (!doubted.empty()) put_integers(arrays, "doubted_sources", doubted);
  for (std::size_t s = 0; s < basis.thetas.size(); ++s) put_values(arrays, fmt::format("theta/{}", s), basis.thetas[s]);
  if (basis.forests.empty()) return;
  DecisionForest all;  // one platform's trees after the other's
  all.features = basis.forests.front().features;
  std::vector<std::int64_t> trees;
  for (const DecisionForest& forest : basis.forests) {
    append(all, forest);
    trees.push_back(forest.trees());
  }
  put(all, arrays);
  put_integers(arrays, "source_trees", trees);
  std::vector<std::int64_t> settled;
  bool grown = false;
  for (std::size_t s = 0; s < basis.sources.size(); ++s) {
    const std::int64_t first = basis.sources[s].settled_trees;
    grown |= first >= 0;
    settled.push_back(first >= 0 ? first : trees[s]);
  }
  if (grown) put_integers(arrays, "settled_trees", settled);
}

namespace {

// The sources of the platforms, as they were trained.
void read_sources(const base::Arrays& arrays, const std::vector<std::string_view>& platforms, SourceBasis& basis) {
  const bool of_trees = arrays.attributes.contains("source_trees");
  const DecisionForest all = of_trees ? forest_from(arrays) : DecisionForest{};
  std::vector<std::int64_t> ends;  // of each platform's trees
  if (of_trees) {
    ends = integers_of(arrays, "source_trees", 0);
    for (const std::int64_t count : ends) {
      if (count > all.trees()) throw base::UserError("attribute 'source_trees': more than there are");
    }
    std::partial_sum(ends.begin(), ends.end(), ends.begin());
    if (ends.size() != platforms.size() || ends.back() != all.trees() || all.features != basis.normalisation.features())
      throw base::UserError("attribute 'source_trees': not of these platforms and trees");
  }
  basis.target_columns = integers_of(arrays, "target_columns", 0);
  for (const std::int64_t column : basis.target_columns) {
    if (column >= basis.normalisation.features())
      throw base::UserError("attribute 'target_columns': not of these features");
  }
  const auto of_each = std::ptrdiff_t(basis.target_columns.size());
  const std::vector<float>&spreads = values_of(arrays, "source_spreads", std::int64_t(platforms.size())),
        &targets = values_of(arrays, "source_targets", std::int64_t(platforms.size()) * of_each);
  for (std::size_t s = 0; s < platforms.size(); ++s) {
    if (!(spreads[s] >= 0)) throw base::UserError("array 'source_spreads': not standard deviations");
    const auto first = targets.begin() + std::ptrdiff_t(s) * of_each;
    const SourceBasis::Source source{std::string(platforms[s]), spreads[s], {first, first + of_each}, false, -1, 1};
    if (of_trees) {
      add(basis, source, part(all, s == 0 ? 0 : ends[s - 1], ends[s]));
    } else {
      add(basis, source, values_of(arrays, fmt::format("theta/{}", s), parameter_count(basis.shape)));
    }
  }
}

// What was found out of them afterwards, as far as it is there.
void read_findings(const base::Arrays& arrays, SourceBasis& basis) {
  if (arrays.arrays.contains("source_weights")) {
    const std::vector<float>& weights = values_of(arrays, "source_weights", std::int64_t(basis.sources.size()));
    for (std::size_t s = 0; s < weights.size(); ++s) {
      if (!(weights[s] > 0 && weights[s] <= 1)) throw base::UserError("array 'source_weights': not within 0 .. 1");
      basis.sources[s].weight = weights[s];
    }
  }
  if (arrays.attributes.contains("source_trees") && arrays.attributes.contains("settled_trees")) {
    const std::vector<std::int64_t> settled = integers_of(arrays, "settled_trees", 0);
    if (settled.size() != basis.sources.size())
      throw base::UserError("attribute 'settled_trees': not of these platforms");
    for (std::size_t s = 0; s < settled.size(); ++s) {
      if (settled[s] > basis.forests[s].trees())
        throw base::UserError("attribute 'settled_trees': more than the platform has");
      if (settled[s] < basis.forests[s].trees()) basis.sources[s].settled_trees = settled[s];
    }
  }
  if (arrays.attributes.contains("doubted_sources")) {
    for (const std::int64_t s : integers_of(arrays, "doubted_sources", 0)) {
      if (s >= std::int64_t(basis.sources.size())) throw base::UserError("attribute 'doubted_sources': no such source");
      basis.sources[std::size_t(s)].doubted = true;
    }
  }
}

}  // namespace

SourceBasis basis_from(const base::Arrays& arrays) {
  SourceBasis basis;
  basis.normalisation = normalisation_from(arrays);
  basis.shape = scoring_shape_from(arrays, basis.normalisation.features());
  const std::vector<std::string_view> platforms = base::split(attribute_of(arrays, "platforms"), '\n');
  read_sources(arrays, platforms, basis);
  if (basis.sources.size() != platforms.size()) throw base::UserError("attribute 'platforms': one is named twice");
  read_findings(arrays, basis);
  return basis;
}

}  // namespace graft::meta
