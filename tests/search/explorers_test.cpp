// What is special to each explorer; what holds for all is in search_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <vector>

#include "codegen/schedule/candidate_program.h"
#include "search/explorer.h"
#include "search/explorers/compared/grid.h"
#include "search/explorers/compared/policy.h"
#include "search/explorers/genetic.h"
#include "search/point.h"
#include "tests/search/support.h"
#include "tests/support/judged_space.h"
#include "tests/support/refusal.h"

namespace graft::search {
namespace {

std::vector<datasets::Trial> measured(const std::vector<codegen::Candidate>& batch) {
  std::vector<datasets::Trial> trials;
  FakeMeasurer measurer;
  base::Monitor monitor;
  measurer.measure(
      batch,
      [&](const tasks::Measured& one) {
        trials.push_back({0, batch[std::size_t(one.position)], one.program_hash, one.measurement});
      },
      monitor);
  return trials;
}

struct Searched {
  std::vector<std::uint64_t> candidates;
  std::vector<double> seconds;  // of each trial
  double best() const { return *std::min_element(seconds.begin(), seconds.end()); }
};

// Rounds of 20.
Searched searched(Explorer& explorer, const meta::CostModel* model, int trials, int threads = 1) {
  Scorer scorer(shared_programs(), threads);
  scorer.use(model);
  Searched run;
  while (int(run.seconds.size()) < trials) {
    const std::vector<codegen::Candidate> batch = explorer.propose(20, scorer);
    if (batch.empty()) break;
    const std::vector<datasets::Trial> told = measured(batch);
    explorer.told(told);
    for (const datasets::Trial& trial : told) {
      run.candidates.push_back(codegen::hash(trial.candidate));
      run.seconds.push_back(datasets::seconds_of(trial.measurement));
    }
  }
  return run;
}

TEST(Points, GoToCandidatesAndBack) {
  base::Stream stream(1, "points");
  for (int i = 0; i < 20; ++i) {
    const codegen::Candidate candidate = space_of_two_sketches().sample(stream);
    const std::optional<Point> point = point_of(candidate, space_of_two_sketches());
    ASSERT_TRUE(point);
    EXPECT_EQ(codegen::hash(candidate_at(*point, space_of_two_sketches())), codegen::hash(candidate));
    EXPECT_FALSE(point_of(candidate, space()));
    codegen::Candidate other = candidate;
    other.arguments.front() = 12345;
    EXPECT_FALSE(point_of(other, space_of_two_sketches()));
  }
}

TEST(Points, RowsAreAsFarApartAsTheirNumbers) {
  const codegen::SketchSpace& part = space().sketches().front();
  for (const codegen::Domain& domain : part.domains) {
    for (std::size_t row = 0; row < domain.values.size(); ++row) {
      EXPECT_EQ(distance(part, domain, row, row), 0);
      if (row > 0) {
        EXPECT_GT(distance(part, domain, 0, row), 0) << domain.name;
      }
      EXPECT_DOUBLE_EQ(distance(part, domain, 0, row), distance(part, domain, row, 0));
    }
  }
}

// With 200 trials, of geometric means over seeds.
TEST(Explorers, EachFindsAtLeastAsGoodAProgramAsRandom) {
  const Oracle model;
  const codegen::JudgedSpace small =
      codegen::judged_space(codegen::parse_workload("matmul(m=4,n=6,k=2)"), small_target());
  const auto mean_log_best = [&](const ExplorerEntry& entry, const codegen::JudgedSpace& where) {
    double sum = 0;
    for (const std::uint64_t seed : {1, 2, 3}) {
      const auto explorer = entry.make(where, seed, {});
      sum += std::log(searched(*explorer, entry.asks_model ? &model : nullptr, 200).best());
    }
    return sum / 3;
  };
  for (const codegen::JudgedSpace* const where : {&space(), &small}) {
    const double random = mean_log_best(explorer_named("random"), *where);
    for (const ExplorerEntry& entry : explorers()) {
      // One looks for what tells most, not for what is fast; the other pays where it can go through all.
      if (entry.name == "support" || (entry.name == "grid" && where != &small)) continue;
      EXPECT_LE(mean_log_best(entry, *where), random + 1e-12) << entry.name << " " << where->workload().text();
    }
  }
}

TEST(Explorers, ThoseForComparisonAreKnownAndNotOffered) {
  for (const char* const name : {"swarm", "policy", "grid", "bayesian"}) {
    EXPECT_TRUE(explorer_named(name).for_comparison) << name;
    for (const ExplorerEntry& entry : offered_explorers()) EXPECT_NE(entry.name, name);
  }
  EXPECT_EQ(offered_explorers().size() + 4, explorers().size());
  EXPECT_EQ(codegen::refusal([] { return explorer_named("swam").name; }),
            "unknown explorer 'swam'; known: evolution, annealing, support, random, genetic");
  EXPECT_EQ(codegen::refusal([] { return explorer_named("genetik").name; }),
            "unknown explorer 'genetik'; did you mean 'genetic'?");
}

TEST(Explorers, ThreadsChangeNothing) {
  const Oracle model;
  for (const ExplorerEntry& entry : explorers()) {
    const auto one = entry.make(space_of_two_sketches(), 7, {}), two = entry.make(space_of_two_sketches(), 7, {});
    EXPECT_EQ(searched(*one, &model, 100, 1).candidates, searched(*two, &model, 100, 2).candidates) << entry.name;
  }
}

// What makes model-free ones a baseline.
TEST(Explorers, ThoseThatAskNoModelProposeTheSameWithAndWithoutOne) {
  const Oracle model;
  for (const ExplorerEntry& entry : explorers()) {
    if (entry.asks_model) continue;
    const auto with = entry.make(space(), 2, {}), without = entry.make(space(), 2, {});
    EXPECT_EQ(searched(*with, &model, 120).candidates, searched(*without, nullptr, 120).candidates) << entry.name;
  }
}

// A search in which nothing is ok, or everything fails for a while, still proposes.
TEST(Explorers, GoOnWhereEverythingFailed) {
  const Oracle model;
  for (const ExplorerEntry& entry : explorers()) {
    const auto explorer = entry.make(space_of_two_sketches(), 1, {});
    Scorer scorer(shared_programs(), 1);
    scorer.use(&model);
    for (int round = 0; round < 6; ++round) {
      const std::vector<codegen::Candidate> batch = explorer->propose(20, scorer);
      EXPECT_EQ(batch.size(), 20u) << entry.name << " round " << round;
      std::vector<datasets::Trial> trials = measured(batch);
      for (datasets::Trial& trial : trials) {
        trial.measurement.status = datasets::Status::crashed;
        trial.measurement.seconds.clear();
      }
      explorer->told(trials);
    }
  }
}

std::set<std::uint64_t> programs_of(const codegen::JudgedSpace& small) {
  std::set<std::uint64_t> programs;
  for (std::size_t s = 0; s < small.sketches().size(); ++s) {
    const std::vector<codegen::Domain>& domains = small.sketches()[s].domains;
    for (Point point{s, std::vector<std::size_t>(domains.size())};;) {
      const codegen::Candidate candidate = candidate_at(point, small);
      if (small.valid(candidate)) programs.insert(codegen::hash(*codegen::program(candidate, small.target())));
      std::size_t d = 0;
      while (d < domains.size() && ++point.rows[d] == domains[d].values.size()) point.rows[d++] = 0;
      if (d == domains.size()) break;
    }
  }
  return programs;
}

TEST(Grid, GoesThroughAllOfASmallSpaceOnce) {
  const codegen::JudgedSpace small =
      codegen::judged_space(codegen::parse_workload("matmul(m=2,n=3,k=2)"), small_target());
  const std::set<std::uint64_t> all = programs_of(small);
  ASSERT_GT(all.size(), 10u);
  for (const double stride : {GridSettings{}.stride, 0.0}) {
    Grid grid(small, 3, {.stride = stride, .most_refused = 1 << 30});
    Scorer scorer(shared_programs(), 1);
    std::set<std::uint64_t> seen;
    std::size_t proposed = 0;
    for (std::size_t size = 7; size == 7;) {
      const std::vector<codegen::Candidate> batch = grid.propose(7, scorer);
      size = batch.size();
      proposed += size;
      for (const std::uint64_t program : scorer.programs(batch)) seen.insert(program);
    }
    EXPECT_EQ(seen, all) << stride;
    EXPECT_EQ(proposed, all.size()) << stride;
    EXPECT_TRUE(grid.propose(7, scorer).empty());
  }
}

// The first points represent the space: a domain's rows occur about equally often.
TEST(Grid, SpreadsItsFirstPoints) {
  Grid grid(space(), 1, {});
  Scorer scorer(shared_programs(), 1);
  const std::vector<codegen::Candidate> batch = grid.propose(60, scorer);
  ASSERT_EQ(batch.size(), 60u);
  for (std::size_t d = 0; d < space().sketches().front().domains.size(); ++d) {
    std::set<std::size_t> rows;
    for (const codegen::Candidate& candidate : batch) {
      const std::optional<Point> point = point_of(candidate, space());
      if (point->sketch == 0) rows.insert(point->rows[d]);
    }
    const std::size_t all = space().sketches().front().domains[d].values.size();
    EXPECT_GE(rows.size(), std::min<std::size_t>(all, 8) / 2) << d;
  }
}

TEST(Genetic, KeepsItsElitesAndBreedsFromThem) {
  Genetic genetic(space(), 5, {.population = 20, .elites = 4});
  Scorer scorer(shared_programs(), 1);
  std::vector<double> all, first;
  for (int round = 0; round < 8; ++round) {
    std::vector<datasets::Trial> trials = measured(genetic.propose(20, scorer));
    genetic.told(trials);
    for (const datasets::Trial& trial : trials) all.push_back(datasets::seconds_of(trial.measurement));
    if (round == 0) first = all;
    std::vector<double> sorted = all;
    std::sort(sorted.begin(), sorted.end());
    ASSERT_EQ(genetic.elites().size(), 4u);
    for (std::size_t i = 0; i < 4; ++i)
      EXPECT_EQ(datasets::seconds_of(genetic.elites()[i].measurement), sorted[i]) << round;
  }
  const auto mean = [](auto begin, auto end) {
    double sum = 0;
    for (auto at = begin; at != end; ++at) sum += std::log(*at);
    return sum / double(end - begin);
  };
  EXPECT_LT(mean(all.end() - 40, all.end()), mean(first.begin(), first.end()));
}

// Later measurements are faster on the whole than the first, random ones: each learns without a model.
void expect_learns(const char* name) {
  for (const std::uint64_t seed : {1, 2}) {
    const auto explorer = make_explorer(name, space(), seed);
    const Searched run = searched(*explorer, nullptr, 240);
    ASSERT_EQ(run.seconds.size(), 240u);
    const auto middle = [](std::vector<double> seconds) {
      std::nth_element(seconds.begin(), seconds.begin() + std::ptrdiff_t(seconds.size() / 2), seconds.end());
      return seconds[seconds.size() / 2];
    };
    const double early = middle({run.seconds.begin(), run.seconds.begin() + 40});
    EXPECT_LT(middle({run.seconds.end() - 80, run.seconds.end()}), early) << seed;
  }
}

TEST(Swarm, GetsFaster) {
  expect_learns("swarm");
}

TEST(Bayesian, GetsFaster) {
  expect_learns("bayesian");
}

TEST(Policy, GetsFaster) {
  expect_learns("policy");
}

// More than changing the fastest at random: the same with a learning rate of 0.
TEST(Policy, LearnsWhichChangesPay) {
  double with = 0, without = 0;
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    for (const bool learns : {true, false}) {
      PolicySettings settings;
      if (!learns) settings.learning_rate = 0;
      Policy policy(space(), seed, settings, {});
      const Searched run = searched(policy, nullptr, 240);
      double sum = 0;
      for (std::size_t i = run.seconds.size() - 100; i < run.seconds.size(); ++i) sum += std::log(run.seconds[i]);
      (learns ? with : without) += sum / 100;
    }
  }
  EXPECT_LT(with, without);
}

}  // namespace
}  // namespace graft::search
