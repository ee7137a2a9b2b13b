#include "search/explorer.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <type_traits>

#include "base/error.h"
#include "search/explorers/annealing.h"
#include "search/explorers/compared/bayesian.h"
#include "search/explorers/compared/grid.h"
#include "search/explorers/compared/policy.h"
#include "search/explorers/compared/swarm.h"
#include "search/explorers/evolution.h"
#include "search/explorers/genetic.h"
#include "search/explorers/sampling.h"
#include "search/explorers/support.h"

namespace graft::search {
std::vector<codegen::Candidate> Explorer::propose(int count, Scorer& scorer) {
  Proposal found = proposal(count, scorer);
  const std::vector<float> scores = scorer.scores(found.chosen);
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  // Equal scores, as all are without a model, stay in the explorer's order.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  std::vector<codegen::Candidate> batch;
  batch.reserve(found.chosen.size() + found.others.size());
  for (const std::size_t at : order) batch.push_back(std::move(found.chosen[at]));
  std::move(found.others.begin(), found.others.end(), std::back_inserter(batch));
  return batch;
}

void fill_at_random(std::vector<codegen::Candidate>& batch, int count, const codegen::Space& space,
                    base::Stream& stream, codegen::Judge& judge,
                    const std::function<bool(const codegen::Candidate&)>& is_new) {
  for (int failures = 0; int(batch.size()) < count && failures < draws_per_candidate;) {
    codegen::Candidate candidate = space.sample(stream, judge);
    if (is_new(candidate)) {
      batch.push_back(std::move(candidate));
      failures = 0;
    } else {
      ++failures;
    }
  }
}

void fill_at_random(std::vector<codegen::Candidate>& batch, int count, const codegen::Space& space,
                    base::Stream& stream, codegen::Judge& judge, std::unordered_set<std::uint64_t>& proposed) {
  fill_at_random(batch, count, space, stream, judge,
                 [&](const codegen::Candidate& candidate) { return proposed.insert(codegen::hash(candidate)).second; });
}

void KnownPrograms::add(std::span<const datasets::Trial> trials) {
  for (const datasets::Trial& trial : trials) programs_.insert(trial.program_hash);
}

void keep_fastest(std::vector<datasets::Trial>& fastest, std::span<const datasets::Trial> trials, std::size_t most) {
  for (const datasets::Trial& trial : trials) {
    if (trial.measurement.status == datasets::Status::ok) fastest.push_back(trial);
  }
  std::stable_sort(fastest.begin(), fastest.end(), [](const datasets::Trial& a, const datasets::Trial& b) {
    return datasets::seconds_of(a.measurement) < datasets::seconds_of(b.measurement);
  });
  if (fastest.size() > most) fastest.resize(most);
}

namespace {

template <class Made, class Settings>
std::unique_ptr<Explorer> made(const codegen::Space& space, std::uint64_t seed, const SelectionSettings& selection) {
  if constexpr (std::is_constructible_v<Made, const codegen::Space&, std::uint64_t, const Settings&,
                                        const SelectionSettings&>) {
    return std::make_unique<Made>(space, seed, Settings{}, selection);
  } else {
    return std::make_unique<Made>(space, seed, Settings{});
  }
}

}  // namespace

const std::vector<ExplorerEntry>& explorers() {
  static const std::vector<ExplorerEntry> table = {
      {"evolution",
       "crossover and mutation of the fastest programs by the cost model, with restarts and a random share", true,
       made<Evolution, EvolutionSettings>},
      {"annealing", "parallel simulated annealing on the cost model, with a random share", true,
       made<Annealing, AnnealingSettings>},
      {"support", "few programs that represent the space, spread evenly over the model's predictions", true,
       made<Support, SupportSettings>},
      {"random", "uniform over the space, without a model", false,
       [](const codegen::Space& space, std::uint64_t seed, const SelectionSettings&) -> std::unique_ptr<Explorer> {
         return std::make_unique<Sampling>(space, seed);
       }},
      {"grid", "every point of the space once, evenly spread, without a model", false, made<Grid, GridSettings>, true},
      {"genetic", "generations of children of the fastest programs, without a model", false,
       made<Genetic, GeneticSettings>},
      {"swarm", "particles that are drawn to the fastest programs, without a model", false, made<Swarm, SwarmSettings>,
       true},
      {"bayesian", "Parzen densities of fast and slow programs' choices, without a model", false,
       made<Bayesian, BayesianSettings>, true},
      {"policy", "reinforcement learning of which choices to change, and how, without a model", false,
       made<Policy, PolicySettings>, true},
  };
  return table;
}

std::vector<ExplorerEntry> offered_explorers() {
  std::vector<ExplorerEntry> offered = explorers();
  std::erase_if(offered, [](const ExplorerEntry& entry) { return entry.for_comparison; });
  return offered;
}

const ExplorerEntry& explorer_named(std::string_view name) {
  std::vector<std::string> known;
  for (const ExplorerEntry& entry : explorers()) {
    if (entry.name == name) return entry;
    if (!entry.for_comparison) known.push_back(entry.name);
  }
  throw base::UserError("unknown explorer '" + std::string(name) + "'" + base::did_you_mean(name, known));
}

std::unique_ptr<Explorer> make_explorer(std::string_view name, const codegen::Space& space, std::uint64_t seed,
                                        const SelectionSettings& selection) {
  const ExplorerEntry& entry = explorer_named(name);
  const SelectionSettings usual;
  if (!entry.asks_model && (selection.acquisition != usual.acquisition || selection.selection != usual.selection))
    throw base::UserError(
        std::string(name),
        "this explorer uses no model, so `acquisition` and `selection` have no effect; leave them out, "
        "or take `explorer` evolution");
  return entry.make(space, seed, selection);
}

}  // namespace graft::search
