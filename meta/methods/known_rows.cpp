#include "meta/methods/known_rows.h"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "meta/methods/parts.h"
#include "meta/methods/ridge.h"
#include "meta/metrics.h"
#include "meta/normalisation.h"
#include "meta/state.h"

namespace graft::meta {
namespace {

constexpr float none = std::numeric_limits<float>::quiet_NaN();

// The rows of a group whose identity is one row's alone: identity -> -log seconds.
std::map<std::uint64_t, double> speeds_of(const Examples& group) {
  std::map<std::uint64_t, double> speeds;
  std::set<std::uint64_t> ambiguous;
  const std::vector<std::uint64_t>& identities = group.features.identities;
  for (std::size_t p = 0; p < identities.size(); ++p) {
    if (identities[p] == 0) continue;
    if (!speeds.emplace(identities[p], -group.log_seconds[p]).second) ambiguous.insert(identities[p]);
  }
  for (const std::uint64_t identity : ambiguous) speeds.erase(identity);
  return speeds;
}

// One source's rows of one workload.
struct Part {
  std::size_t source = 0;
  std::map<std::uint64_t, double> speeds;
};

// Each part about the mean of the rows that it has in common with others, so that a source that lacks the slow rows is
// not taken for a slower one: speeds are a row's plus a part's, found in turn.
void centre(std::vector<Part>& parts) {
  constexpr int rounds = 8;
  std::vector<double> offsets(parts.size(), 0.0);
  for (std::size_t p = 0; p < parts.size(); ++p) {
    for (const auto& [row, speed] : parts[p].speeds) offsets[p] += speed / double(parts[p].speeds.size());
  }
  for (int round = 0; round < rounds; ++round) {
    std::unordered_map<std::uint64_t, std::pair<double, int>> rows;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      for (const auto& [row, speed] : parts[p].speeds) {
        auto& [sum, count] = rows[row];
        sum += speed - offsets[p], ++count;
      }
    }
    for (std::size_t p = 0; p < parts.size(); ++p) {
      double change = 0, common = 0;
      for (const auto& [row, speed] : parts[p].speeds) {
        const auto& [sum, count] = rows.at(row);
        if (count < 2) continue;
        change += speed - offsets[p] - sum / count;
        ++common;
      }
      if (common > 0) offsets[p] += change / common;
    }
  }
  for (std::size_t p = 0; p < parts.size(); ++p) {
    for (auto& [row, speed] : parts[p].speeds) speed -= offsets[p];
  }
}

// Correlations of the sources over the rows that two have in common; 0 for fewer than 3.
Eigen::MatrixXd correlations(const std::vector<KnownRows::Source>& sources) {
  const auto count = Eigen::Index(sources.size());
  Eigen::MatrixXd out = Eigen::MatrixXd::Identity(count, count);
  for (Eigen::Index a = 0; a < count; ++a) {
    for (Eigen::Index b = 0; b < a; ++b) {
      double n = 0, sa = 0, sb = 0, saa = 0, sbb = 0, sab = 0;
      const auto& other = sources[std::size_t(b)].speeds;
      for (const auto& [row, x] : sources[std::size_t(a)].speeds) {
        const auto there = other.find(row);
        if (there == other.end()) continue;
        const double y = double(there->second);
        n += 1, sa += double(x), sb += y, saa += double(x) * double(x), sbb += y * y, sab += double(x) * y;
      }
      if (n < 3) continue;
      const double square = (saa - sa * sa / n) * (sbb - sb * sb / n);
      if (square > 0) out(a, b) = out(b, a) = std::clamp((sab - sa * sb / n) / std::sqrt(square), -1.0, 1.0);
    }
  }
  return out;
}

// Weights that sum to 1.
std::vector<double> in_all(std::vector<double> weights) {
  double sum = 0;
  for (const double weight : weights) sum += weight;
  for (double& weight : weights) weight = sum > 0 ? weight / sum : 1 / double(weights.size());
  return weights;
}

// The shares of Bartlett's scores of a factor, found by principal axes (Harman 1976, "Modern Factor Analysis"): a
// source with loading l counts l / (1 - l^2). No source is trusted beyond a share of its own variance.
std::vector<double> factor_shares(const Eigen::MatrixXd& correlations) {
  constexpr int rounds = 100;
  constexpr double least_own = 0.02;
  const Eigen::Index count = correlations.rows();
  if (count < 3) return in_all(std::vector<double>(std::size_t(count), 1.0));
  Eigen::MatrixXd reduced = correlations;
  Eigen::VectorXd loadings = Eigen::VectorXd::Zero(count);
  reduced.diagonal().setZero();
  reduced.diagonal() = reduced.cwiseAbs().rowwise().maxCoeff().eval();
  for (int round = 0; round < rounds; ++round) {
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(reduced);
    loadings = solver.eigenvectors().col(count - 1) * std::sqrt(std::max(0.0, solver.eigenvalues()[count - 1]));
    if (loadings.sum() < 0) loadings = -loadings;
    reduced.diagonal() = loadings.array().square().min(1 - least_own);
  }
  std::vector<double> weights;
  for (const double loading : loadings) {
    const double l = std::clamp(loading, 0.0, std::sqrt(1 - least_own));
    weights.push_back(l / (1 - l * l));
  }
  return in_all(std::move(weights));
}

// The part of the correlations between all but one source.
Eigen::MatrixXd without(const Eigen::MatrixXd& all, Eigen::Index source) {
  Eigen::MatrixXd out(all.rows() - 1, all.cols() - 1);
  for (Eigen::Index a = 0, to = 0; a < all.rows(); ++a) {
    if (a == source) continue;
    for (Eigen::Index b = 0, at = 0; b < all.cols(); ++b) {
      if (b != source) out(to, at++) = all(a, b);
    }
    ++to;
  }
  return out;
}

double mean_of(std::span<const double> shares, std::span<const float> speeds) {
  double sum = 0, total = 0, plain = 0, known = 0;
  for (std::size_t s = 0; s < speeds.size(); ++s) {
    if (std::isnan(speeds[s])) continue;
    sum += shares[s] * double(speeds[s]), total += shares[s];
    plain += double(speeds[s]), ++known;
  }
  if (known == 0) return double(none);
  return total > 0 ? sum / total : plain / known;
}

// Mean rank correlation of the source's rows, by group, with the others' mean by these shares.
double held_out_quality(const std::vector<KnownRows::Source>& sources, std::size_t held, std::vector<double> shares,
                        std::span<const Examples> groups) {
  KnownRows others{sources};
  others.sources.erase(others.sources.begin() + std::ptrdiff_t(held));
  for (std::size_t s = 0; s < shares.size(); ++s) others.sources[s].share = shares[s];
  double sum = 0, count = 0;
  for (const Examples& group : groups) {
    if (group.platform != sources[held].platform) continue;
    const base::Matrix speeds = others.speeds(group.features);
    std::vector<float> scores;
    std::vector<double> labels;
    for (std::int64_t p = 0; p < speeds.rows; ++p) {
      const double score = mean_of(shares, speeds.row(p));
      if (std::isnan(score)) continue;
      scores.push_back(float(score));
      labels.push_back(group.log_seconds[std::size_t(p)]);
    }
    if (scores.size() < 2) continue;
    sum += rank_correlation(scores, labels), ++count;
  }
  return count > 0 ? sum / count : double(none);
}

void weigh(KnownRows& known, std::span<const Examples> groups) {
  const Eigen::MatrixXd all = correlations(known.sources);
  const std::vector<double> equal(known.sources.size(), 1.0);
  std::vector<double> shares = factor_shares(all);
  if (known.sources.size() > 3) {
    double by_factor = 0, by_mean = 0;
    for (std::size_t s = 0; s < known.sources.size(); ++s) {
      const double factor = held_out_quality(known.sources, s, factor_shares(without(all, Eigen::Index(s))), groups);
      const double mean = held_out_quality(known.sources, s, in_all({equal.begin() + 1, equal.end()}), groups);
      if (std::isnan(factor) || std::isnan(mean)) continue;
      by_factor += factor, by_mean += mean;
    }
    if (by_mean > by_factor) shares = in_all(equal);
  }
  for (std::size_t s = 0; s < shares.size(); ++s) known.sources[s].share = shares[s];
}

// How far the regression is trusted, against the model's scores alone (the last column, by this slope): by the squares
// of what each leaves over of rows that it has not seen, each row of the support left out in turn, to the power of half
// the rows (as stacking.h has it: residuals of neighbouring rows are not independent).
double share_of_regression(const std::vector<BasisGroup>& groups, const std::vector<double>& prior,
                           const std::vector<double>& weights, double lambda, double slope) {
  using Floats = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const auto columns = Eigen::Index(prior.size());
  const Eigen::Map<const Eigen::VectorXd> at(weights.data(), columns);
  std::vector<Eigen::MatrixXd> rows;
  Eigen::MatrixXd squares = Eigen::MatrixXd::Zero(columns, columns);
  double count = 0;
  for (const BasisGroup& group : groups) {
    Eigen::MatrixXd own =
        Eigen::Map<const Floats>(group.basis.values.data(), group.basis.rows, group.basis.columns).cast<double>();
    own.rowwise() -= own.colwise().mean().eval();
    squares += own.transpose() * own;
    count += double(group.basis.rows);
    rows.push_back(std::move(own));
  }
  squares.diagonal().array() += lambda * count;
  const Eigen::LDLT<Eigen::MatrixXd> factor(squares);
  double of_regression = 0, of_model = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto size = Eigen::Index(groups[g].log_seconds.size());
    Eigen::VectorXd speeds = -Eigen::Map<const Eigen::VectorXd>(groups[g].log_seconds.data(), size);
    speeds.array() -= speeds.mean();
    const Eigen::VectorXd left = speeds - rows[g] * at, alone = speeds - slope * rows[g].col(columns - 1);
    const Eigen::MatrixXd solved = factor.solve(rows[g].transpose());
    for (Eigen::Index i = 0; i < size; ++i) {
      const double leverage = rows[g].row(i).dot(solved.col(i)) + 1 / double(size);
      const double left_out = left[i] / std::max(0.05, 1 - leverage), apart = alone[i] / (1 - 1 / double(size));
      of_regression += left_out * left_out, of_model += apart * apart;
    }
  }
  if (!(of_regression > 0)) return 1;
  return 1 / (1 + std::pow(of_regression / std::max(1e-300, of_model), count / 4));
}

// --- the model

// What a support says.
struct Fit {
  std::unique_ptr<CostModel> model;  // adapted
  std::vector<double> weights;       // of the sources' speeds, and last of the model's scores
  double known_offset = 0;           // so that known and unknown rows are on one scale
  double slope = 1, offset = 0;      // of the model's scores for unknown rows
};

struct Line {
  double slope = 1, offset = 0;
};

// y = slope x + offset by least squares, never falling: the model keeps its order.
Line line_through(std::span<const double> x, std::span<const double> y) {
  constexpr double flat = 1e-6;
  double sx = 0, sy = 0, sxx = 0, sxy = 0;
  const double n = double(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) sx += x[i] / n, sy += y[i] / n;
  for (std::size_t i = 0; i < x.size(); ++i) sxx += (x[i] - sx) * (x[i] - sx), sxy += (x[i] - sx) * (y[i] - sy);
  const double slope = sxx > 0 ? std::max(flat, sxy / sxx) : 1;
  return x.empty() ? Line{} : Line{slope, sy - slope * sx};
}

void centre(std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  for (double& value : values) value -= sum / double(std::max<std::size_t>(1, values.size()));
}

class KnownRowsModel final : public CostModel {
 public:
  KnownRowsModel(std::shared_ptr<const CostModel> model, std::shared_ptr<const KnownRows> known, Line unknown,
                 std::shared_ptr<const Fit> fit = nullptr)
      : model_(std::move(model)), known_(std::move(known)), unknown_(unknown), fit_(std::move(fit)) {}

  Scores score(const features::Encoded& programs) const override { return joined(programs, inner().score(programs)); }
  Scores score_with_spread(const features::Encoded& programs) const override {
    return joined(programs, inner().score_with_spread(programs));
  }

  std::unique_ptr<CostModel> fitted(std::span<const Examples> support) const override {
    std::vector<Examples> groups;
    for (const Examples& group : support) {
      if (group.size() >= 2) groups.push_back(group);
    }
    if (groups.empty()) return clone();
    auto fit = std::make_shared<Fit>();
    fit->model = inner().fitted(groups);
    fit_weights(groups, *fit);
    fit_offsets(groups, *fit);
    return std::make_unique<KnownRowsModel>(model_, known_, unknown_, std::move(fit));
  }

  std::unique_ptr<CostModel> clone() const override { return std::make_unique<KnownRowsModel>(*this); }
  bool is_informed() const override { return true; }
  bool takes(const features::Encoding& encoding) const override { return model_->takes(encoding); }
  std::string_view kind() const override { return known_rows_kind; }
  bool can_continue() const override { return model_->can_continue(); }
  std::unique_ptr<CostModel> continued(std::int64_t known, const TaskSet& tasks, const LearnerSettings& settings,
                                       base::Monitor& monitor) const override {
    KnownRows more = *known_;
    add(more, tasks.groups);
    return make_known_rows_model(model_->continued(known, tasks, settings, monitor), std::move(more), tasks.groups);
  }

  base::Arrays state() const override {
    base::Arrays out;
    put_part(*model_, "by_parameters", out);
    std::vector<std::string> platforms;
    std::vector<float> spreads, shares;
    for (std::size_t s = 0; s < known_->sources.size(); ++s) {
      const KnownRows::Source& source = known_->sources[s];
      platforms.push_back(source.platform);
      spreads.push_back(source.spread), shares.push_back(float(source.share));
      const std::map<std::uint64_t, float> sorted(source.speeds.begin(), source.speeds.end());
      std::vector<std::uint64_t> rows;
      std::vector<float> speeds;
      for (const auto& [row, speed] : sorted) rows.push_back(row), speeds.push_back(speed);
      put_hashes(out, fmt::format("known{}/rows", s), rows);
      put_values(out, fmt::format("known{}/speeds", s), speeds);
    }
    out.attributes["platforms"] = base::join(platforms, "\n");
    put_values(out, "spreads", spreads);
    put_values(out, "shares", shares);
    put_values(out, "unknown", {float(unknown_.slope), float(unknown_.offset)});
    put_values(out, "of_model", {float(known_->of_model)});
    return out;
  }

 private:
  const CostModel& inner() const { return fit_ != nullptr ? *fit_->model : *model_; }
  std::vector<double> shares() const {
    std::vector<double> out;
    for (const KnownRows::Source& source : known_->sources) out.push_back(source.share);
    return out;
  }
  // The mean of the others in place of a source that lacks the row.
  std::vector<float> filled(std::span<const float> speeds) const {
    std::vector<float> out(speeds.begin(), speeds.end());
    const auto mean = float(mean_speed(*known_, speeds));
    for (float& speed : out) speed = std::isnan(speed) ? mean : speed;
    return out;
  }
  double weighted(const Fit& fit, std::span<const float> speeds, float score) const {
    const std::vector<float> row = filled(speeds);
    double sum = fit.weights.back() * double(score);
    for (std::size_t s = 0; s < row.size(); ++s) sum += fit.weights[s] * double(row[s]);
    return sum;
  }

  Scores joined(const features::Encoded& programs, Scores scores) const {
    const base::Matrix speeds = known_->speeds(programs);
    const std::vector<char> has = known_->has(programs);
    const double slope = fit_ != nullptr ? fit_->slope : unknown_.slope,
                 offset = fit_ != nullptr ? fit_->offset : unknown_.offset;
    for (std::size_t p = 0; p < scores.mean.size(); ++p) {
      const float score = scores.mean[p];
      if (has[p] == 0) {
        scores.mean[p] = float(slope * double(score) + offset);
        scores.spread[p] *= float(slope);
      } else if (fit_ == nullptr) {
        scores.mean[p] = float((1 - known_->of_model) * mean_speed(*known_, speeds.row(std::int64_t(p))) +
                               known_->of_model * (slope * double(score) + offset));
        scores.spread[p] *= float(known_->of_model * slope);
      } else {
        scores.mean[p] = float(weighted(*fit_, speeds.row(std::int64_t(p)), score) + fit_->known_offset);
        scores.spread[p] *= float(std::abs(fit_->weights.back()));
      }
    }
    return scores;
  }

  // The regression on what sources measured of the rows and on what the model says of rows that it has not seen.
  void fit_weights(const std::vector<Examples>& groups, Fit& fit) const {
    const std::vector<std::vector<double>> scores = left_out_scores(groups);
    // The model's scores in the unit of speeds.
    const double unit = spread_ratio(groups, scores);
    std::vector<BasisGroup> basis;
    std::vector<double> all_scores, all_speeds;
    const auto sources = std::int64_t(known_->sources.size());
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const base::Matrix speeds = known_->speeds(groups[g].features);
      const std::vector<char> has = known_->has(groups[g].features);
      BasisGroup own{base::Matrix(0, sources + 1), {}};
      std::vector<double> labels = groups[g].log_seconds, own_scores = scores[g];
      for (double& label : labels) label = -label;
      centre(labels), centre(own_scores);
      all_scores.insert(all_scores.end(), own_scores.begin(), own_scores.end());
      all_speeds.insert(all_speeds.end(), labels.begin(), labels.end());
      for (std::int64_t p = 0; p < speeds.rows; ++p) {
        if (has[std::size_t(p)] == 0) continue;
        const std::vector<float> row = filled(speeds.row(p));
        own.basis.values.insert(own.basis.values.end(), row.begin(), row.end());
        own.basis.values.push_back(float(unit * scores[g][std::size_t(p)]));
        own.log_seconds.push_back(groups[g].log_seconds[std::size_t(p)]);
        ++own.basis.rows;
      }
      if (own.basis.rows > 1) basis.push_back(std::move(own));
    }
    std::vector<double> prior = shares();
    for (double& share : prior) share *= 1 - known_->of_model;
    prior.push_back(known_->of_model);
    fit.slope = line_through(all_scores, all_speeds).slope;
    fit.weights = prior;
    if (!basis.empty()) {
      const double lambda = likeliest_lambda(basis, prior);
      fit.weights = ridge_weights(basis, prior, lambda);
      const double share = share_of_regression(basis, prior, fit.weights, lambda, fit.slope / unit);
      for (double& weight : fit.weights) weight *= share;
      fit.weights.back() += (1 - share) * fit.slope / unit;
    }
    fit.weights.back() *= unit;
  }

  // The scales of known and unknown rows, about their means over the support.
  void fit_offsets(const std::vector<Examples>& groups, Fit& fit) const {
    double known_sum = 0, unknown_sum = 0, known_count = 0, count = 0;
    for (const Examples& group : groups) {
      const std::vector<float> now = fit.model->score(group.features).mean;
      const base::Matrix speeds = known_->speeds(group.features);
      const std::vector<char> has = known_->has(group.features);
      for (std::size_t p = 0; p < now.size(); ++p) {
        unknown_sum += fit.slope * double(now[p]), ++count;
        if (has[p] != 0) known_sum += weighted(fit, speeds.row(std::int64_t(p)), now[p]), ++known_count;
      }
    }
    fit.offset = -unknown_sum / count;
    fit.known_offset = known_count > 0 ? -known_sum / known_count : 0;
  }

  // For each row of the support, the score of the model adapted to the other folds, about that model's mean: what it
  // says of a row that it has not seen. The fewer rows, the more folds: few of them would leave the model too few rows.
  std::vector<std::vector<double>> left_out_scores(const std::vector<Examples>& groups) const {
    constexpr std::int64_t least_folds = 3, most_folds = 10, rows_in_all = 100;
    std::vector<std::vector<double>> out;
    std::int64_t most_rows = 0;  // of a group
    for (const Examples& group : groups) {
      out.emplace_back(std::size_t(group.size()), 0.0);
      most_rows = std::max(most_rows, group.size());
    }
    const std::int64_t folds = std::clamp(rows_in_all / most_rows, least_folds, most_folds);
    for (std::int64_t fold = 0; fold < folds; ++fold) {
      std::vector<Examples> others;
      for (const Examples& group : groups) {
        std::vector<std::int64_t> rows;
        for (std::int64_t r = 0; r < group.size(); ++r) {
          if (r % folds != fold) rows.push_back(r);
        }
        others.push_back(chosen(group, rows));
      }
      const auto model = inner().fitted(others);
      for (std::size_t g = 0; g < groups.size(); ++g) {
        const std::vector<float> scores = model->score(groups[g].features).mean;
        std::vector<double> centred(scores.begin(), scores.end());
        centre(centred);
        for (std::int64_t r = fold; r < groups[g].size(); r += folds) out[g][std::size_t(r)] = centred[std::size_t(r)];
      }
    }
    return out;
  }

  // The mean spread of the sources over that of the scores within groups.
  double spread_ratio(const std::vector<Examples>& groups, const std::vector<std::vector<double>>& scores) const {
    double squares = 0, count = 0, spread = 0;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      std::vector<double> own = scores[g];
      centre(own);
      for (const double score : own) squares += score * score, ++count;
    }
    for (const KnownRows::Source& source : known_->sources) spread += double(source.spread);
    spread /= double(known_->sources.size());
    return squares > 0 ? spread / std::sqrt(squares / count) : 1;
  }

  std::shared_ptr<const CostModel> model_;
  std::shared_ptr<const KnownRows> known_;
  Line unknown_;
  std::shared_ptr<const Fit> fit_;
};

// The model's scores in the unit of the sources' mean speeds, over rows of the sources.
Line unknown_line(const CostModel& model, const KnownRows& known, std::span<const Examples> groups) {
  constexpr std::int64_t most_rows = 4096;
  std::vector<double> scores, speeds;
  for (const Examples& group : groups) {
    const std::int64_t count = std::min(
        group.size(), std::max<std::int64_t>(2, most_rows / std::int64_t(std::max<std::size_t>(1, groups.size()))));
    std::vector<std::int64_t> some;
    for (std::int64_t i = 0; i < count; ++i) some.push_back(i * group.size() / count);
    const features::Encoded programs = features::chosen(group.features, some);
    const std::vector<float> of_model = model.score(programs).mean;
    const base::Matrix of_sources = known.speeds(programs);
    for (std::int64_t p = 0; p < of_sources.rows; ++p) {
      const double mean = mean_speed(known, of_sources.row(p));
      if (std::isnan(mean)) continue;
      scores.push_back(double(of_model[std::size_t(p)])), speeds.push_back(mean);
    }
  }
  return line_through(scores, speeds);
}

// Ranks a platform's rows by ridge regression on the others' features, of some rows.
double quality_by_features(std::span<const Examples> groups, const std::string& held) {
  constexpr std::int64_t most_rows = 1024;
  constexpr double penalty = 0.1;
  std::vector<Examples> others;
  std::int64_t platforms_rows = 0;
  for (const Examples& group : groups) platforms_rows += group.platform == held ? 0 : group.size();
  const std::int64_t step = std::max<std::int64_t>(1, platforms_rows / most_rows);
  features::Encoded together;
  std::vector<double> labels;
  for (const Examples& group : groups) {
    if (group.platform == held || group.size() < 2) continue;
    std::vector<std::int64_t> some;
    for (std::int64_t r = 0; r < group.size(); r += step) some.push_back(r);
    const Examples part = chosen(group, some);
    std::vector<double> own = part.log_seconds;
    centre(own);
    double squares = 0;
    for (const double label : own) squares += label * label / double(own.size());
    for (const double label : own) labels.push_back(squares > 0 ? -label / std::sqrt(squares) : 0);
    features::append(together, part.features);
    others.push_back(part);
  }
  if (others.empty()) return 0;
  const Normalisation normalisation = fit_normalisation(others);
  using Floats = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const auto rows_of = [&](const features::Encoded& programs) {
    const base::Matrix summed = features::summed(normalisation.apply(programs));
    return Floats(Eigen::Map<const Floats>(summed.values.data(), summed.rows, summed.columns));
  };
  const Floats rows = rows_of(together);
  Eigen::MatrixXd kernel = (rows * rows.transpose()).cast<double>();
  kernel.diagonal().array() += penalty * std::max(1e-6, kernel.trace() / double(kernel.rows()));
  const Eigen::VectorXd alpha =
      kernel.ldlt().solve(Eigen::Map<const Eigen::VectorXd>(labels.data(), Eigen::Index(labels.size())));
  const Eigen::VectorXf weights = rows.transpose() * alpha.cast<float>();
  double sum = 0, count = 0;
  for (const Examples& group : groups) {
    if (group.platform != held || group.size() < 2) continue;
    const Eigen::VectorXf scores = rows_of(group.features) * weights;
    sum += rank_correlation({scores.data(), std::size_t(scores.size())}, group.log_seconds), ++count;
  }
  return count > 0 ? sum / count : 0;
}

}  // namespace

base::Matrix KnownRows::speeds(const features::Encoded& programs) const {
  base::Matrix out(programs.programs(), std::int64_t(sources.size()));
  std::fill(out.values.begin(), out.values.end(), none);
  float spread = 0;
  for (const Source& source : sources) spread += source.spread / float(sources.size());
  for (std::size_t p = 0; p < programs.identities.size(); ++p) {
    if (programs.identities[p] == 0) continue;
    for (std::size_t s = 0; s < sources.size(); ++s) {
      const auto known = sources[s].speeds.find(programs.identities[p]);
      if (known != sources[s].speeds.end()) out.at(std::int64_t(p), std::int64_t(s)) = spread * known->second;
    }
  }
  return out;
}

std::vector<char> KnownRows::has(const features::Encoded& programs) const {
  std::vector<char> out(std::size_t(programs.programs()), 0);
  for (std::size_t p = 0; p < programs.identities.size(); ++p) {
    out[p] = char(programs.identities[p] != 0 && std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
                    return source.speeds.contains(programs.identities[p]);
                  }));
  }
  return out;
}

double mean_speed(const KnownRows& known, std::span<const float> speeds) {
  std::vector<double> shares;
  for (const KnownRows::Source& source : known.sources) shares.push_back(source.share);
  return mean_of(shares, speeds);
}

void add(KnownRows& known, std::span<const Examples> groups) {
  // By workload, whose name is part of the identities: parts with a row in common are of one.
  std::vector<Part> parts;
  const auto position_of = [&](const std::string& platform) {
    const auto found = std::find_if(known.sources.begin(), known.sources.end(),
                                    [&](const KnownRows::Source& source) { return source.platform == platform; });
    if (found != known.sources.end()) return std::size_t(found - known.sources.begin());
    known.sources.push_back({platform, 1, 0, {}});
    return known.sources.size() - 1;
  };
  std::set<std::size_t> fresh;
  for (const Examples& group : groups) {
    std::map<std::uint64_t, double> speeds = speeds_of(group);
    if (speeds.size() < 2) continue;
    const std::size_t source = position_of(group.platform);
    fresh.insert(source);
    parts.push_back({source, std::move(speeds)});
  }
  for (std::size_t s = 0; s < known.sources.size(); ++s) {
    if (fresh.contains(s)) continue;
    Part& old = parts.emplace_back();
    old.source = s;
    for (const auto& [row, speed] : known.sources[s].speeds)
      old.speeds.emplace(row, double(speed) * double(known.sources[s].spread));
  }
  centre(parts);
  for (const std::size_t s : fresh) known.sources[s].speeds.clear();
  for (const std::size_t s : fresh) {
    double squares = 0, count = 0;
    for (const Part& part : parts) {
      double mean = 0;
      for (const auto& [row, speed] : part.speeds) mean += speed / double(part.speeds.size());
      for (const auto& [row, speed] : part.speeds) {
        if (part.source == s) squares += (speed - mean) * (speed - mean), ++count;
      }
    }
    known.sources[s].spread = squares > 0 ? float(std::sqrt(squares / count)) : 1.0f;
    for (const Part& part : parts) {
      for (const auto& [row, speed] : part.speeds) {
        if (part.source == s) known.sources[s].speeds.emplace(row, float(speed / double(known.sources[s].spread)));
      }
    }
  }
  if (!known.sources.empty()) weigh(known, groups);
}

KnownRows known_rows(std::span<const Examples> groups) {
  KnownRows known;
  add(known, groups);
  return known;
}

KnownRowsQuality quality_of_known_rows(std::span<const Examples> groups) {
  const KnownRows known = known_rows(groups);
  const Eigen::MatrixXd all = correlations(known.sources);
  KnownRowsQuality out;
  double count = 0;
  for (std::size_t s = 0; s < known.sources.size() && known.sources.size() > 1; ++s) {
    const double by_times = held_out_quality(known.sources, s, factor_shares(without(all, Eigen::Index(s))), groups);
    if (std::isnan(by_times)) continue;
    out.by_times += by_times;
    out.by_features += quality_by_features(groups, known.sources[s].platform);
    ++count;
  }
  if (count > 0) out.by_times /= count, out.by_features /= count;
  return out;
}

double share_of_model(const KnownRowsQuality& quality) {
  const double features = std::max(0.0, quality.by_features), times = std::max(0.0, quality.by_times);
  const double squares = features * features + times * times;
  return squares > 0 ? features * features / squares : 0.5;
}

std::unique_ptr<CostModel> make_known_rows_model(std::unique_ptr<CostModel> model, KnownRows known,
                                                 std::span<const Examples> groups) {
  const Line unknown = unknown_line(*model, known, groups);
  return std::make_unique<KnownRowsModel>(std::move(model), std::make_shared<const KnownRows>(std::move(known)),
                                          unknown);
}

std::unique_ptr<CostModel> known_rows_model_from(const base::Arrays& state) {
  std::unique_ptr<CostModel> model = part_from(state, "by_parameters", known_rows_kind);
  KnownRows known;
  const std::vector<std::string_view> platforms = base::split(attribute_of(state, "platforms"), '\n');
  const auto count = std::int64_t(platforms.size());
  const std::vector<float>&spreads = values_of(state, "spreads", count), &shares = values_of(state, "shares", count),
        &line = values_of(state, "unknown", 2), &of_model = values_of(state, "of_model", 1);
  if (!(of_model[0] >= 0 && of_model[0] <= 1)) throw base::UserError("array 'of_model': not a share");
  known.of_model = double(of_model[0]);
  for (std::size_t s = 0; s < platforms.size(); ++s) {
    if (!(spreads[s] > 0) || !(shares[s] >= 0))
      throw base::UserError("arrays 'spreads', 'shares': not those of sources");
    KnownRows::Source source{std::string(platforms[s]), spreads[s], double(shares[s]), {}};
    const std::vector<std::uint64_t> rows = hashes_of(state, fmt::format("known{}/rows", s));
    const std::vector<float>& speeds = values_of(state, fmt::format("known{}/speeds", s), std::int64_t(rows.size()));
    for (std::size_t r = 0; r < rows.size(); ++r) source.speeds.emplace(rows[r], speeds[r]);
    known.sources.push_back(std::move(source));
  }
  return std::make_unique<KnownRowsModel>(std::move(model), std::make_shared<const KnownRows>(std::move(known)),
                                          Line{double(line[0]), double(line[1])});
}

bool parameters_say_nothing(const KnownRowsQuality& quality) {
  constexpr double little = 0.1;
  return share_of_model(quality) < little;
}

std::vector<char> varying(std::span<const Examples> groups) {
  std::vector<char> out;
  for (const Examples& group : groups) {
    const base::Matrix& rows = group.features.rows;
    out.resize(std::size_t(rows.columns), 0);
    for (std::int64_t r = 1; r < rows.rows; ++r) {
      for (std::int64_t f = 0; f < rows.columns; ++f) out[std::size_t(f)] |= char(rows.at(r, f) != rows.at(0, f));
    }
  }
  return out;
}

bool uses_known_rows(const KnownRows& known, const TaskSet& tasks, KnownRowsUse use) {
  if (use == KnownRowsUse::no || known.sources.empty()) return false;
  if (use == KnownRowsUse::yes) return true;
  const KnownRowsQuality quality = quality_of_known_rows(tasks.groups);
  if (quality.by_times != 0 || quality.by_features != 0) return parameters_say_nothing(quality);
  const std::vector<char> varies = varying(tasks.groups);
  for (std::size_t f = 0; f < varies.size(); ++f)
    if (varies[f] != 0 && tasks.encoding->features[f].unit != features::hashed_unit) return false;
  return true;
}

std::unique_ptr<CostModel> with_known_rows(std::unique_ptr<CostModel> model, const TaskSet& tasks,
                                           const LearnerSettings& settings, base::Monitor& monitor) {
  if (!model->is_informed() || settings.known_rows == KnownRowsUse::no) return model;
  KnownRows known = known_rows(tasks.groups);
  if (known.sources.empty()) return model;
  if (uses_known_rows(known, tasks, settings.known_rows))
    return make_known_rows_model(std::move(model), std::move(known), tasks.groups);
  monitor.note(
      "the sources' times of the same rows are not used, since parameters say something about them, too (known rows: "
      "yes uses them)");
  return model;
}

}  // namespace graft::meta
