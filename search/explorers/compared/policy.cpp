#include "search/explorers/compared/policy.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/statistics.h"
#include "search/chances.h"

namespace graft::search {
namespace {

// By row: the numbers of its arguments (log2, as standard deviations from the domain's mean), and a 1 for the
// alternative of each choice among texts; scaled so that the description of a row is about 1 long.
std::vector<std::vector<double>> described(const codegen::SketchSpace& part, const codegen::Domain& domain) {
  std::vector<std::vector<double>> rows(domain.values.size());
  for (std::size_t i = 0; i < domain.arguments.size(); ++i) {
    const std::int64_t alternatives = part.sketch->arguments[std::size_t(domain.arguments[i])].alternatives;
    std::vector<double> numbers;
    for (const std::vector<std::int64_t>& row : domain.values) numbers.push_back(std::log2(double(1 + row[i])));
    const double mean = base::mean(numbers);
    double deviation = 0;
    for (const double number : numbers) deviation += (number - mean) * (number - mean) / double(numbers.size());
    deviation = deviation > 0 ? std::sqrt(deviation) : 1;
    for (std::size_t row = 0; row < rows.size(); ++row) {
      if (alternatives == 0) rows[row].push_back((numbers[row] - mean) / deviation);
      for (std::int64_t each = 0; each < alternatives; ++each)
        rows[row].push_back(domain.values[row][i] == each ? 1 : 0);
    }
  }
  for (std::vector<double>& row : rows) {
    for (double& number : row) number /= std::sqrt(double(domain.arguments.size()));
  }
  return rows;
}

template <class Numbers>
double product(const std::vector<double>& weights, const Numbers& numbers) {
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) sum += weights[i] * double(numbers[i]);
  return sum;
}

}  // namespace

Policy::Policy(const codegen::Space& space, std::uint64_t seed, const PolicySettings& settings,
               const SelectionSettings& selection)
    : space_(space), settings_(settings), selection_(selection), stream_(seed, "policy") {
  for (const codegen::SketchSpace& part : space.sketches()) {
    Weights weights;
    std::vector<std::vector<std::vector<double>>> of_domains;
    for (const codegen::Domain& domain : part.domains) {
      of_domains.push_back(described(part, domain));
      weights.domains.emplace_back();  // as long as a state once there is one
      weights.rows.emplace_back(of_domains.back().front().size(), 0.0);
    }
    described_.push_back(std::move(of_domains));
    weights_.push_back(std::move(weights));
  }
}

std::vector<double> Policy::domain_chances(const Weights& weights, const std::vector<float>& state,
                                           const codegen::SketchSpace& part) const {
  std::vector<double> logits;
  for (std::size_t d = 0; d < part.domains.size(); ++d) {
    const bool open = part.domains[d].values.size() > 1;
    logits.push_back(open ? product(weights.domains[d], state) : -std::numeric_limits<double>::infinity());
  }
  return chances_of(logits);
}

std::vector<double> Policy::row_chances(std::size_t sketch, std::size_t domain) const {
  std::vector<double> logits;
  for (const std::vector<double>& row : described_[sketch][domain])
    logits.push_back(product(weights_[sketch].rows[domain], row));
  return chances_of(logits);
}

std::vector<float> Policy::state_of(const codegen::Candidate& candidate, Scorer& scorer) {
  const base::Matrix rows = features::summed(scorer.encoded({&candidate, 1}));
  std::vector<float> state(rows.row(0).begin(), rows.row(0).end());
  state.push_back(1);
  double length = 0;
  for (const float number : state) length += double(number) * double(number);
  for (float& number : state) number = float(double(number) / std::sqrt(length));
  return state;
}

Proposal Policy::proposal(int count, Scorer& scorer) {
  Proposal found;
  const auto is_new = [&](const codegen::Candidate& candidate) { return proposed_.take(candidate, scorer); };
  const int wanted =
      int(fastest_.size()) < settings_.first ? 0 : count - random_of(count, selection_, proposed_.size());
  for (int tries = 0; int(found.others.size()) < wanted && tries < wanted * settings_.tries; ++tries) {
    const std::size_t parents = std::min(fastest_.size(), std::size_t(settings_.parents));
    const datasets::Trial& parent = fastest_[std::size_t(stream_.below(std::int64_t(parents)))];
    std::optional<Point> at = point_of(parent.candidate, space_);
    if (!at) continue;
    const codegen::SketchSpace& part = space_.sketches()[at->sketch];
    const auto is_open = [](const codegen::Domain& domain) { return domain.values.size() > 1; };
    if (std::none_of(part.domains.begin(), part.domains.end(), is_open)) continue;
    Episode episode{at->sketch, state_of(parent.candidate, scorer), {}, datasets::seconds_of(parent.measurement)};
    Weights& weights = weights_[at->sketch];
    for (std::vector<double>& of_domain : weights.domains) of_domain.resize(episode.state.size());
    for (int step = 0; step < settings_.steps; ++step) {
      const std::size_t domain = drawn(domain_chances(weights, episode.state, part), stream_);
      const std::size_t row = drawn(row_chances(at->sketch, domain), stream_);
      at->rows[domain] = row;
      episode.choices.push_back({domain, row});
    }
    const base::Result<codegen::Candidate> candidate = space_.admitted(candidate_at(*at, space_), scorer.judge());
    if (!candidate || !is_new(*candidate)) continue;
    in_flight_[codegen::hash(*candidate)] = std::move(episode);
    found.others.push_back(*candidate);
  }
  fill_at_random(found.others, count, space_, stream_, scorer.judge(), is_new);
  return found;
}

// The gradient of the logarithm of a softmax's chance: the choice minus its expectation.
void Policy::learn(const Episode& episode, double reward) {
  const double rate = settings_.learning_rate * (reward - baseline_);
  baseline_ += settings_.baseline_weight * (reward - baseline_);
  Weights& weights = weights_[episode.sketch];
  for (const Choice& choice : episode.choices) {
    const std::vector<double> domains = domain_chances(weights, episode.state, space_.sketches()[episode.sketch]);
    for (std::size_t d = 0; d < domains.size(); ++d) {
      for (std::size_t i = 0; i < episode.state.size(); ++i)
        weights.domains[d][i] += rate * ((d == choice.domain ? 1 : 0) - domains[d]) * double(episode.state[i]);
    }
    const std::vector<double> rows = row_chances(episode.sketch, choice.domain);
    const std::vector<std::vector<double>>& descriptions = described_[episode.sketch][choice.domain];
    std::vector<double>& of_rows = weights.rows[choice.domain];
    for (std::size_t row = 0; row < rows.size(); ++row) {
      for (std::size_t i = 0; i < of_rows.size(); ++i)
        of_rows[i] += rate * ((row == choice.row ? 1 : 0) - rows[row]) * descriptions[row][i];
    }
  }
}

void Policy::told(std::span<const datasets::Trial> trials) {
  proposed_.add(trials);
  for (const datasets::Trial& trial : trials) {
    const auto flight = in_flight_.find(codegen::hash(trial.candidate));
    if (flight == in_flight_.end()) continue;
    const bool ok = trial.measurement.status == datasets::Status::ok;
    const double gain =
        ok ? std::log(flight->second.seconds / datasets::seconds_of(trial.measurement)) : -settings_.most_reward;
    learn(flight->second, std::clamp(gain, -settings_.most_reward, settings_.most_reward));
    in_flight_.erase(flight);
  }
  keep_fastest(fastest_, trials, std::size_t(std::max(settings_.parents, settings_.first)));
}

}  // namespace graft::search
