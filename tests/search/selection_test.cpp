#include "search/selection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "base/error.h"
#include "base/statistics.h"
#include "search/explorer.h"
#include "search/point.h"
#include "search/tuning.h"
#include "search/usual_selection.h"
#include "tests/search/support.h"

namespace graft::search {
namespace {

const meta::Scores scores{{1.0f, 2.0f, 1.5f, -3.0f}, {0.5f, 0.0f, 2.0f, 0.1f}};
const std::vector<std::uint64_t> programs{11, 22, 33, 44};

std::vector<float> by(Acquisition acquisition, std::optional<float> incumbent = std::nullopt, double bound = 1) {
  return acquired(scores, programs, {incumbent, 1}, {.acquisition = acquisition, .bound = bound});
}

TEST(Acquisitions, AreWhatTheirNamesSay) {
  EXPECT_EQ(by(Acquisition::mean, 2.0f), scores.mean);
  EXPECT_EQ(by(Acquisition::ucb, {}, 2), (std::vector<float>{2.0f, 2.0f, 5.5f, -2.8f}));
  EXPECT_EQ(by(Acquisition::ei), scores.mean) << "before anything was measured";
  // Against the integral: the expectation of max(0, x - 2) under the normal distribution.
  const std::vector<float> improvement = by(Acquisition::ei, 2.0f);
  for (const std::size_t i : {0u, 2u}) {
    double sum = 0;
    const double mean = scores.mean[i], spread = scores.spread[i], step = spread / 1000;
    for (double x = mean - 8 * spread; x < mean + 8 * spread; x += step)
      sum += std::max(0.0, x - 2) * std::exp(-0.5 * std::pow((x - mean) / spread, 2)) * step;
    EXPECT_NEAR(std::exp(improvement[i]), sum / (spread * std::sqrt(2 * M_PI)), 1e-4) << i;
  }
}

// The worse the mean at an equal spread, the less, down to where the improvement itself is 0 in doubles.
TEST(Acquisitions, ExpectedImprovementKeepsItsOrderFarFromTheBest) {
  meta::Scores line;
  for (int i = 0; i < 600; ++i) {
    line.mean.push_back(3.0f - 0.25f * float(i));
    line.spread.push_back(1);
  }
  const std::vector<std::uint64_t> any(line.mean.size(), 5);
  const std::vector<float> result = acquired(line, any, {0.0f, 1}, {.acquisition = Acquisition::ei});
  EXPECT_TRUE(std::is_sorted(result.begin(), result.end(), std::greater<>()));
  EXPECT_EQ(std::set<float>(result.begin(), result.end()).size(), result.size());
  EXPECT_TRUE(std::isfinite(result.back()));
}

TEST(Acquisitions, ThompsonDrawsOncePerProgramAndRound) {
  const SelectionSettings settings{.acquisition = Acquisition::thompson};
  meta::Scores many;
  std::vector<std::uint64_t> hashes;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    many.mean.push_back(2);
    many.spread.push_back(0.5);
    hashes.push_back(i + 1);
  }
  const std::vector<float> first = acquired(many, hashes, {std::nullopt, 1}, settings);
  EXPECT_EQ(first, acquired(many, hashes, {std::nullopt, 1}, settings));
  EXPECT_NE(first, acquired(many, hashes, {std::nullopt, 2}, settings));
  std::vector<double> drawn(first.begin(), first.end());
  EXPECT_NEAR(base::mean(drawn), 2, 0.05);
  EXPECT_NEAR(base::quantile(drawn, 0.841), 2.5, 0.05);
}

TEST(Acquisitions, AreTheMeanOfAModelWithoutSpreads) {
  const meta::Scores plain = meta::certain(scores.mean);
  for (const Acquisition each : {Acquisition::ei, Acquisition::ucb, Acquisition::thompson})
    EXPECT_EQ(acquired(plain, programs, {1.0f, 1}, {.acquisition = each}), scores.mean) << name_of(each);
}

TEST(Acquisitions, HaveNames) {
  for (const Acquisition each : {Acquisition::mean, Acquisition::ei, Acquisition::ucb, Acquisition::thompson})
    EXPECT_EQ(acquisition_named(name_of(each)), each);
  for (const Selection each : {Selection::best, Selection::diverse}) EXPECT_EQ(selection_named(name_of(each)), each);
  EXPECT_THROW(acquisition_named("eii"), base::UserError);
  EXPECT_THROW(selection_named("divers"), base::UserError);
}

TEST(RandomShare, IsAtLeastOneUnlessNoneIsWanted) {
  EXPECT_EQ(random_of(32, {.random_share = 0.05}), 2);
  EXPECT_EQ(random_of(8, {.random_share = 0.05}), 1);
  EXPECT_EQ(random_of(0, {.random_share = 0.05}), 0);
  EXPECT_EQ(random_of(32, {.random_share = 0}), 0);
  EXPECT_EQ(random_of(32, {.random_share = 1}), 32);
}

TEST(RandomShare, IsKeptByThoseWhoAskForOneAtATime) {
  const auto of_eight = [](double share) {
    int sum = 0;
    for (std::int64_t before = 0; before < 8; ++before) sum += random_of(1, {.random_share = share}, before);
    return sum;
  };
  EXPECT_EQ(of_eight(0), 0);
  EXPECT_EQ(of_eight(0.05), 2);
  EXPECT_EQ(of_eight(0.5), 4);
  EXPECT_EQ(of_eight(1), 8);
  EXPECT_EQ(random_of(1, {.random_share = 0.05}), 0);  // not the first one
}

// Forty variants of one program, all of them better than ten that are spread over the space.
std::vector<Scored> pool_of_one_kind() {
  base::Stream stream(2, "pool");
  std::vector<Scored> pool;
  const codegen::Candidate parent = space().sample(stream);
  while (pool.size() < 40) {
    if (auto mutant = space().mutate(parent, stream)) pool.push_back({*mutant, pool.size() + 1, 0});
  }
  while (pool.size() < 50) pool.push_back({space().sample(stream), pool.size() + 1, 0});
  for (std::size_t i = 0; i < pool.size(); ++i) pool[i].score = 10 - 0.01f * float(i);
  return pool;
}

std::size_t parts_of(const std::vector<Scored>& pool, const std::vector<std::size_t>& chosen) {
  std::set<std::vector<std::size_t>> parts;
  for (const std::size_t at : chosen) {
    const std::optional<Point> point = point_of(pool[at].candidate, space());
    for (std::size_t d = 0; d < point->rows.size(); ++d) parts.insert({point->sketch, d, point->rows[d]});
  }
  return parts.size();
}

TEST(Selected, AreTheBestOrADiverseSet) {
  const std::vector<Scored> pool = pool_of_one_kind();
  const std::vector<std::size_t> best = selected(pool, 5, {}, space(), {});
  EXPECT_EQ(best, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
  const SelectionSettings diverse{.selection = Selection::diverse, .diversity = 2, .preselected = 10};
  const std::vector<std::size_t> spread = selected(pool, 5, {}, space(), diverse);
  ASSERT_EQ(spread.size(), 5u);
  EXPECT_EQ(std::set<std::size_t>(spread.begin(), spread.end()).size(), 5u);
  EXPECT_GT(parts_of(pool, spread), parts_of(pool, best));
  // Where rows are worth nothing, the best; and none but the preselected ones.
  SelectionSettings settings = diverse;
  settings.diversity = 0;
  EXPECT_EQ(selected(pool, 5, {}, space(), settings), best);
  settings = diverse, settings.preselected = 2;
  for (const std::size_t at : selected(pool, 5, {}, space(), settings)) EXPECT_LT(at, 10u);
  settings.preselected = 1;
  std::vector<std::size_t> only = selected(pool, 5, {}, space(), settings);
  std::sort(only.begin(), only.end());
  EXPECT_EQ(only, best);
}

// Greedy: each step takes what adds most to the objective. Against all pairs, for two that are chosen.
TEST(Selected, EachStepAddsMost) {
  const std::vector<Scored> pool = pool_of_one_kind();
  const SelectionSettings settings{.selection = Selection::diverse, .diversity = 0.5, .preselected = 25};
  const std::vector<std::size_t> chosen = selected(pool, 2, {}, space(), settings);
  std::vector<float> all;
  for (const Scored& one : pool) all.push_back(one.score);
  const auto worth = [&](const std::vector<std::size_t>& set) {
    double sum = 0;
    for (const std::size_t at : set) sum += double(pool[at].score) / scale_of(all);
    return sum + settings.diversity * double(parts_of(pool, set));
  };
  for (std::size_t i = 0; i < pool.size(); ++i) {
    EXPECT_LE(worth({i}), worth({chosen[0]}) + 1e-9);
    if (i != chosen[0]) {
      EXPECT_LE(worth({chosen[0], i}), worth(chosen) + 1e-9);
    }
  }
  // What is given counts as covered: that program adds no row any more.
  const codegen::Candidate& given = pool[chosen[0]].candidate;
  EXPECT_NE(selected(pool, 1, std::span(&given, 1), space(), settings).front(), chosen[0]);
}

// Believes in a score by the oracle and in how wrong it is by chance; counts how often it is asked for the latter.
class Believer : public Oracle {
 public:
  meta::Scores score_with_spread(const features::Encoded& asked_for) const override {
    ++asked;
    meta::Scores result = score(asked_for);
    for (std::size_t i = 0; i < result.mean.size(); ++i) {
      base::Stream stream(3, "spread", i);
      result.spread[i] = float(std::abs(stream.normal()));
    }
    return result;
  }
  std::unique_ptr<CostModel> clone() const override { return std::make_unique<Believer>(*this); }
  mutable std::int64_t asked = 0;
};

TEST(Scorers, AskForSpreadsOnlyWhereTheAcquisitionLooksAtThem) {
  base::Stream stream(1, "asked");
  std::vector<codegen::Candidate> candidates;
  for (int i = 0; i < 10; ++i) candidates.push_back(space().sample(stream));
  std::vector<float> mean;
  for (const Acquisition each : {Acquisition::mean, Acquisition::ei, Acquisition::ucb, Acquisition::thompson}) {
    Believer model;
    Scorer scorer(shared_programs(), 1, {.acquisition = each}, 1);
    scorer.use(&model, std::span(candidates).first(3));
    const std::vector<float> result = scorer.scores(candidates);
    EXPECT_EQ(model.asked > 0, each != Acquisition::mean) << name_of(each);
    if (each == Acquisition::mean) mean = result;
    EXPECT_EQ(result == mean, each == Acquisition::mean) << name_of(each);
    EXPECT_EQ(result, scorer.scores(candidates)) << name_of(each);
  }
}

// Every combination searches, is deterministic, continues to the same end, and proposes distinct programs.
TEST(Selections, EachIsASearch) {
  const Believer prior;
  std::set<std::vector<std::uint64_t>> distinct;
  for (const char* const explorer : {"evolution", "annealing"}) {
    for (const Acquisition acquisition :
         {Acquisition::mean, Acquisition::ei, Acquisition::ucb, Acquisition::thompson}) {
      for (const Selection selection : {Selection::best, Selection::diverse}) {
        Folder folder;
        const auto searched = [&](const char* name, std::int64_t trials) {
          FakeMeasurer measurer;
          RunDirectory run(folder.path() / name, request(1), base::Document::map());
          TuningSettings settings;
          settings.explorer = explorer;
          settings.selection = {.acquisition = acquisition, .selection = selection, .diversity = 1};
          settings.trials = trials;
          settings.batch = 10;
          Tuning tuning({space_of_two_sketches(), shared_programs(), ""}, &prior, measurer, run, settings);
          base::Monitor monitor;
          while (tuning.step(monitor)) {
          }
          std::vector<std::uint64_t> found;
          for (const datasets::Trial& trial : tuning.trials()) found.push_back(trial.program_hash);
          return found;
        };
        const std::vector<std::uint64_t> whole = searched("whole", 20);
        EXPECT_EQ(whole.size(), 20u);
        EXPECT_EQ(std::set<std::uint64_t>(whole.begin(), whole.end()).size(), 20u);
        distinct.insert(whole);
        if (acquisition != Acquisition::thompson) continue;  // whose draws need the number of the round
        searched("grown", 4);
        EXPECT_EQ(searched("grown", 20), whole) << explorer << name_of(acquisition) << name_of(selection);
      }
    }
  }
  EXPECT_EQ(distinct.size(), 16u) << "each makes a difference";
}

TEST(Selection, IsByExpectedImprovementAmongRowsOfTables) {
  const codegen::Sketch sketch = codegen::parse_sketch("sketch t\ncolumns $tile $unroll\n", "sketch");
  const codegen::Space rows(
      codegen::Workload("table(name=t)"),
      {{std::make_shared<const codegen::Sketch>(sketch), {{"tile", {0}, {{1}, {2}}}, {"unroll", {1}, {{1}, {2}}}}}});
  EXPECT_EQ(selection_in(rows, false, {}).acquisition, Acquisition::ei);
  EXPECT_EQ(selection_in(rows, true, {}), SelectionSettings{});  // other devices taught the model
  EXPECT_EQ(selection_in(rows, false, {.random_share = 0.5}).acquisition, Acquisition::mean);  // as asked
  EXPECT_EQ(selection_in(space(), false, {}), SelectionSettings{});
}

}  // namespace
}  // namespace graft::search
