#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/statistics.h"
#include "codegen/expression/suites.h"
#include "codegen/schedule/candidate_program.h"
#include "search/explorer.h"
#include "search/explorers/breeding.h"
#include "search/explorers/listed.h"
#include "search/run_directory.h"
#include "search/tuning.h"
#include "tasks/platform.h"
#include "tests/search/support.h"
#include "tests/support/judged_space.h"

namespace graft::search {
namespace {

TEST(Explorers, ProposeDistinctCandidatesThatWereNotProposedBefore) {
  for (const ExplorerEntry& entry : explorers()) {
    const auto explorer = entry.make(space(), 3, {});
    Scorer scorer(shared_programs(), 1);
    NearestRow model;
    scorer.use(entry.asks_model ? &model : nullptr);
    std::set<std::uint64_t> seen;
    for (int round = 0; round < 3; ++round) {
      const auto batch = explorer->propose(10, scorer);
      EXPECT_EQ(batch.size(), 10u) << entry.name;
      for (const codegen::Candidate& candidate : batch) {
        EXPECT_TRUE(seen.insert(codegen::hash(candidate)).second) << entry.name << " round " << round;
        EXPECT_TRUE(space().valid(candidate)) << entry.name;
      }
    }
  }
}

// Many schedules of this space lower to the same program; a trial of a second one would have no information.
TEST(Explorers, AllButRandomProposeDistinctProgramsThatWereNotTold) {
  const codegen::JudgedSpace small =
      codegen::judged_space(codegen::parse_workload("matmul(m=8,n=8,k=4)"), small_target());
  for (const ExplorerEntry& entry : explorers()) {
    if (entry.name == "random") continue;
    const std::string& name = entry.name;
    const auto explorer = entry.make(small, 3, {});
    Scorer scorer(shared_programs(), 1);
    const Oracle model;
    scorer.use(&model);
    std::set<std::uint64_t> known;
    base::Stream stream(1, "told");
    std::vector<datasets::Trial> told;
    for (int i = 0; i < 16; ++i) {
      const codegen::Candidate candidate = small.sample(stream);
      const std::uint64_t program = codegen::hash(*codegen::program(candidate, small_target()));
      EXPECT_EQ(scorer.programs(std::span(&candidate, 1)).front(), program);
      known.insert(program);
      told.push_back({i, candidate, program, {}});
      told.back().measurement.seconds = {1e-3};
    }
    explorer->told(told);
    int schedules = 0;
    for (int round = 0; round < 4; ++round) {
      for (const codegen::Candidate& candidate : explorer->propose(16, scorer)) {
        ++schedules;
        EXPECT_TRUE(known.insert(codegen::hash(*codegen::program(candidate, small_target()))).second)
            << name << " round " << round;
      }
    }
    EXPECT_EQ(schedules, 64) << name;
  }
}

TEST(Explorers, EqualSeedsProposeEqualBatches) {
  for (const ExplorerEntry& entry : explorers()) {
    std::vector<std::uint64_t> hashes[2];
    for (auto& list : hashes) {
      const auto explorer = entry.make(space(), 5, {});
      Scorer scorer(shared_programs(), 2);
      for (const codegen::Candidate& candidate : explorer->propose(8, scorer)) list.push_back(codegen::hash(candidate));
    }
    EXPECT_EQ(hashes[0], hashes[1]) << entry.name;
  }
}

// What a search is told to start from is measured first, once, and the round's other trials are proposed.
TEST(Tuning, BeginsWithWhatItIsToldTo) {
  const Folder folder;
  base::Stream stream(8, "start");
  TuningSettings settings;
  settings.explorer = "random", settings.trials = 8, settings.batch = 8;
  settings.start = {space().sample(stream), space().sample(stream)};
  settings.start.push_back(settings.start.front());
  FakeMeasurer measurer;
  RunDirectory run(folder.path(), request(1), {});
  Tuning tuning({space(), shared_programs(), "fake"}, nullptr, measurer, run, settings);
  base::Monitor monitor;
  while (tuning.step(monitor)) {
  }
  ASSERT_EQ(tuning.trials().size(), 8u);
  EXPECT_EQ(codegen::hash(tuning.trials()[0].candidate), codegen::hash(settings.start[0]));
  EXPECT_EQ(codegen::hash(tuning.trials()[1].candidate), codegen::hash(settings.start[1]));
  std::set<std::uint64_t> distinct;
  for (const datasets::Trial& trial : tuning.trials()) distinct.insert(codegen::hash(trial.candidate));
  EXPECT_EQ(distinct.size(), 8u);
}

// Notes what it is fitted to: workload and number of programs of each group.
class Listener : public Oracle {
 public:
  using Groups = std::vector<std::pair<std::string, std::int64_t>>;
  explicit Listener(std::shared_ptr<std::vector<Groups>> heard) : heard_(std::move(heard)) {}
  std::unique_ptr<meta::CostModel> fitted(std::span<const meta::Examples> support) const override {
    Groups groups;
    for (const meta::Examples& group : support) groups.emplace_back(group.workload.text(), group.size());
    heard_->push_back(groups);
    return clone();
  }
  std::unique_ptr<meta::CostModel> clone() const override { return std::make_unique<Listener>(*this); }

 private:
  std::shared_ptr<std::vector<Groups>> heard_;
};

// Times of two machines are never compared: each earlier run is a separate group, next to the present measurements.
TEST(Tuning, EachEarlierRunIsAGroupOfItsOwn) {
  const Folder folder;
  base::Stream stream(8, "history");
  std::vector<std::vector<datasets::Trial>> runs(3);
  for (std::size_t r = 0; r < runs.size(); ++r) {
    for (std::size_t t = 0; t < 5 * r; ++t) {  // the first one has none
      datasets::Trial trial{std::int64_t(t), space().sample(stream), 100 * r + t + 1, {}};
      trial.measurement.seconds = {double(r) + 0.1 * double(t + 1)};
      runs[r].push_back(trial);
    }
  }
  const auto heard = std::make_shared<std::vector<Listener::Groups>>();
  const Listener prior(heard);
  TuningSettings settings;
  settings.trials = 16, settings.batch = 8;
  FakeMeasurer measurer;
  RunDirectory run(folder.path(), request(1), {});
  Tuning tuning({space(), shared_programs(), "fake"}, &prior, measurer, run, settings);
  tuning.remember(runs);
  ASSERT_EQ(heard->size(), 1u);
  ASSERT_EQ(heard->front().size(), 2u);
  EXPECT_NE(heard->front()[0].first, heard->front()[1].first);
  EXPECT_EQ(heard->front()[0].second, 5);
  EXPECT_EQ(heard->front()[1].second, 10);
  base::Monitor monitor;
  EXPECT_TRUE(tuning.step(monitor));
  ASSERT_EQ(heard->back().size(), 3u);
  EXPECT_EQ(heard->back()[2], std::pair(space().workload().text(), std::int64_t(8)));
}

// Ends at the end of the round in which the last `stop_after` trials gained less than 1 %.
TEST(Tuning, SettlesWhereNothingGetsFaster) {
  const Folder folder;
  TuningSettings settings;
  settings.explorer = "random", settings.trials = 10000, settings.batch = 4, settings.stop_after = 12;
  FakeMeasurer measurer;
  RunDirectory run(folder.path(), request(1), {});
  Tuning tuning({space(), shared_programs(), "fake"}, nullptr, measurer, run, settings);
  base::Monitor monitor;
  while (tuning.step(monitor)) EXPECT_FALSE(tuning.settled() && tuning.trials().size() <= 12);
  EXPECT_TRUE(tuning.settled());
  EXPECT_LT(tuning.trials().size(), 1000u);
  const auto count = std::ptrdiff_t(tuning.trials().size());
  double before = INFINITY, since = INFINITY;
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    double& best = i < count - 12 ? before : since;
    best = std::min(best, datasets::seconds_of(tuning.trials()[std::size_t(i)].measurement));
  }
  EXPECT_GT(since, 0.99 * before);
}

TEST(Tuning, EndsWhenItsTimeIsUp) {
  const Folder folder;
  TuningSettings settings;
  settings.explorer = "random", settings.trials = 1000000, settings.batch = 4, settings.budget_seconds = 0.05;
  FakeMeasurer measurer;
  RunDirectory run(folder.path(), request(1), {});
  Tuning tuning({space(), shared_programs(), "fake"}, nullptr, measurer, run, settings);
  EXPECT_FALSE(tuning.out_of_time());
  base::Monitor monitor;
  while (tuning.step(monitor)) {
  }
  EXPECT_TRUE(tuning.out_of_time());
  EXPECT_LT(tuning.trials().size(), 1000000u);
}

// The beginning of a batch is the best of it: of evolution's, which divides its batch among
// sketches, of annealing's, and of any other that asks a model.
TEST(Explorers, ThoseThatAskAModelProposeWhatItThinksFastestFirst) {
  const codegen::JudgedSpace& convolution = space_of_two_sketches();
  const Oracle model;
  for (const ExplorerEntry& entry : explorers()) {
    if (!entry.asks_model) continue;
    for (const std::uint64_t seed : {1, 2}) {
      Scorer scorer(shared_programs(), 1);
      scorer.use(&model);
      const auto explorer = entry.make(convolution, seed, {});
      for (int round = 0; round < 3; ++round) {
        const std::vector<float> scores = scorer.scores(explorer->propose(32, scorer));
        ASSERT_EQ(scores.size(), 32u) << entry.name;
        const auto chosen = entry.name == "support" ? scores.end() : scores.end() - 2;  // 0.05 of 32 are random
        EXPECT_TRUE(std::is_sorted(scores.begin(), chosen, std::greater<>())) << entry.name << " seed " << seed;
        EXPECT_EQ(scores.front(), *std::max_element(scores.begin(), scores.end())) << entry.name << " seed " << seed;
      }
    }
  }
}

// Bred programs, which no model chose, are put in order where there is one; listed and random ones stay as they are.
TEST(Explorers, OnlyWhatWasChosenIsPutInOrder) {
  Scorer scorer(shared_programs(), 1);
  const Oracle model;
  scorer.use(&model);
  base::Stream stream(3, "parents");
  std::vector<datasets::Trial> told;
  for (int i = 0; i < 16; ++i) {
    told.push_back({i, space().sample(stream), 1, {}});
    told.back().measurement.seconds = {1e-3};
  }
  Breeding breeding(space(), 1, {.share = 0.5});
  breeding.told(told);
  const std::vector<float> bred = scorer.scores(breeding.propose(16, scorer));
  EXPECT_TRUE(std::is_sorted(bred.begin(), bred.begin() + 8, std::greater<>()));
  EXPECT_FALSE(std::is_sorted(bred.begin(), bred.end(), std::greater<>()));

  std::vector<std::uint64_t> batches[2];
  for (auto& batch : batches) {
    for (const codegen::Candidate& candidate : make_explorer("random", space(), 1)->propose(16, scorer))
      batch.push_back(codegen::hash(candidate));
    scorer.use(nullptr);
  }
  EXPECT_EQ(batches[0], batches[1]);
}

int threads_of_this_process() {
  const std::filesystem::directory_iterator all("/proc/self/task");
  return int(std::distance(begin(all), end(all)));
}

// In a process of its own: threads that other tests asked for stay.
TEST(ExplorersDeathTest, UseTheThreadsOfTheirScorer) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto started = [](int threads) {
    const int before = threads_of_this_process();
    const Oracle model;
    for (const ExplorerEntry& entry : explorers()) {
      Scorer scorer(shared_programs(), threads);
      scorer.use(&model);
      entry.make(space(), 1, {})->propose(8, scorer);
    }
    return threads_of_this_process() - before;
  };
  EXPECT_EXIT(std::exit(started(1)), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(std::exit(started(3)), testing::ExitedWithCode(2), "");
}

TEST(Explorers, AnUnknownNameIsRefused) {
  try {
    make_explorer("aneling", space(), 1);
    FAIL();
  } catch (const base::UserError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'annealing'"), std::string::npos) << error.what();
  }
}

TEST(Explorers, SupportMeasuresNoProgramTwice) {
  const codegen::JudgedSpace tiny =
      codegen::judged_space(codegen::parse_workload("matmul(m=4,n=6,k=2)"), small_target());
  Scorer scorer(shared_programs(), 1);
  const Oracle model;
  for (const bool guided : {false, true}) {
    scorer.use(guided ? &model : nullptr);
    const auto explorer = make_explorer("support", tiny, 1);
    std::vector<std::uint64_t> programs;
    for (int round = 0; round < 4; ++round) {
      const std::vector<std::uint64_t> more = scorer.programs(explorer->propose(10, scorer));
      programs.insert(programs.end(), more.begin(), more.end());
    }
    EXPECT_GE(programs.size(), 20u);
    EXPECT_EQ(std::set<std::uint64_t>(programs.begin(), programs.end()).size(), programs.size()) << guided;
    EXPECT_EQ(std::count(programs.begin(), programs.end(), 0u), 0);
  }
}

TEST(Explorers, TheSmallestSpaceIsUsedUpWithoutEnd) {
  const codegen::JudgedSpace tiny =
      codegen::judged_space(codegen::parse_workload("matmul(m=1,n=2,k=1)"), small_target());
  const auto explorer = make_explorer("random", tiny, 1);
  Scorer scorer(shared_programs(), 1);
  std::size_t total = 0;
  for (int round = 0; round < 50; ++round) total += explorer->propose(20, scorer).size();
  EXPECT_GT(total, 0u);
  EXPECT_LE(double(total), tiny.size());
}

struct Outcome {
  std::vector<std::uint64_t> candidates;
  double best = 0;
};

Outcome tune(const std::filesystem::path& path, FakeMeasurer& measurer, const std::string& explorer,
             const meta::CostModel* prior, std::int64_t trials) {
  RunDirectory run(path, request(1), base::Document::map());
  TuningSettings settings;
  settings.explorer = explorer;
  settings.trials = trials;
  settings.batch = 12;
  Tuning tuning({space(), shared_programs(), ""}, prior, measurer, run, settings);
  base::Monitor monitor;
  while (tuning.step(monitor)) {
  }
  Outcome outcome;
  for (const datasets::Trial& trial : tuning.trials()) outcome.candidates.push_back(codegen::hash(trial.candidate));
  if (tuning.best()) outcome.best = datasets::seconds_of(tuning.best()->measurement);
  const auto curve = tuning.curve();
  EXPECT_FALSE(curve.empty());
  for (std::size_t i = 1; i < curve.size(); ++i) {
    EXPECT_LT(curve[i - 1].first, curve[i].first);
    EXPECT_GE(curve[i - 1].second, curve[i].second);
  }
  if (!curve.empty()) {
    EXPECT_EQ(curve.back().second, outcome.best);
  }
  return outcome;
}

// A model that is told nothing of one sketch, or thinks it slow, would never ask for it again.
TEST(Explorers, EvolutionKeepsAShareOfEveryBatchForEachSketch) {
  const codegen::JudgedSpace& convolution = space_of_two_sketches();
  // All trials told are of the first sketch, and the model takes whatever looks like it for fast.
  Scorer scorer(shared_programs(), 1);
  std::vector<codegen::Candidate> of[2];
  base::Stream stream(5, "one sketch");
  while (of[0].size() < 60 || of[1].size() < 60) {
    codegen::Candidate candidate = convolution.sample(stream);
    of[candidate.sketch == convolution.sketches()[0].sketch ? 0 : 1].push_back(std::move(candidate));
  }
  std::vector<datasets::Trial> trials;
  for (const codegen::Candidate& candidate : of[0]) {
    datasets::Trial trial{std::int64_t(trials.size()), candidate, 1, {}};
    trial.measurement.seconds = {1e-3};
    trials.push_back(std::move(trial));
  }
  NearestRow model;
  for (const int sketch : {0, 1}) {
    meta::Examples examples;
    examples.features = scorer.encoded(of[sketch]);
    examples.log_seconds.assign(of[sketch].size(), sketch == 0 ? -9 : 0);
    model.known.push_back(std::move(examples));
  }
  scorer.use(&model);
  const auto explorer = make_explorer("evolution", convolution, 3);
  explorer->told(trials);
  int of_second = 0;
  for (const codegen::Candidate& candidate : explorer->propose(20, scorer)) {
    of_second += candidate.sketch == convolution.sketches()[1].sketch;
  }
  EXPECT_GE(of_second, 4) << "0.4 of 20, for two sketches";
}

// In the batch after `known` trials of each of two sketches, whose best times are a second and `slower` seconds (0:
// none of the second sketch's is ok): the number of candidates of the second one. The model predicts it to be slower,
// too.
int of_second_sketch(int known, double slower) {
  const codegen::JudgedSpace& convolution = space_of_two_sketches();
  Scorer scorer(shared_programs(), 1);
  NearestRow model;
  base::Stream stream(5, "arms");
  std::vector<datasets::Trial> trials;
  for (const std::size_t sketch : {0u, 1u}) {
    std::vector<codegen::Candidate> candidates;
    while (int(candidates.size()) < known) {
      codegen::Candidate candidate = convolution.sample(stream);
      if (candidate.sketch == convolution.sketches()[sketch].sketch) candidates.push_back(std::move(candidate));
    }
    meta::Examples examples;
    examples.features = scorer.encoded(candidates);
    examples.log_seconds.assign(candidates.size(), sketch == 0 ? 0 : 1);
    model.known.push_back(std::move(examples));
    for (const codegen::Candidate& candidate : candidates) {
      datasets::Trial trial{std::int64_t(trials.size()), candidate, trials.size() + 1, {}};
      if (sketch == 1 && slower == 0) {
        trial.measurement.status = datasets::Status::crashed;
      } else {
        trial.measurement.seconds = {sketch == 0 ? 1 : slower};
      }
      trials.push_back(std::move(trial));
    }
  }
  scorer.use(&model);
  const auto explorer = make_explorer("evolution", convolution, 3);
  explorer->told(trials);
  int of_second = 0;
  for (const codegen::Candidate& candidate : explorer->propose(20, scorer)) {
    of_second += candidate.sketch == convolution.sketches()[1].sketch;
  }
  return of_second;
}

// Sketches are arms of a bandit: what was measured ends the share of one that is far from the fastest.
TEST(Explorers, EvolutionLeavesASketchThatIsFarFromTheFastest) {
  EXPECT_GE(of_second_sketch(2, 3), 4) << "two trials say little";
  EXPECT_GE(of_second_sketch(16, 1.1), 4) << "it is near";
  EXPECT_LE(of_second_sketch(16, 1.8), 2) << "a random one, at most, and one of those that start again";
  EXPECT_LE(of_second_sketch(16, 0), 2) << "nothing of it was ok";
}

// The more alike to one program, the faster.
class Likeness : public Oracle {
 public:
  explicit Likeness(features::Encoded program) : program_(std::move(program)) {}
  meta::Scores score(const features::Encoded& programs) const override {
    const base::Matrix& features = programs.rows;
    meta::Scores scores{std::vector<float>(std::size_t(features.rows)), std::vector<float>(std::size_t(features.rows))};
    for (std::int64_t r = 0; r < features.rows; ++r) {
      for (std::int64_t c = 0; c < features.columns; ++c)
        scores.mean[std::size_t(r)] -= std::abs(features.at(r, c) - program_.rows.at(0, c));
    }
    return scores;
  }

 private:
  features::Encoded program_;
};

// Else a model that prefers one kind of programs would never see another kind.
TEST(Explorers, EvolutionStartsAnewForAShareOfEveryBatch) {
  Scorer scorer(shared_programs(), 1);
  base::Stream stream(7, "one kind");
  std::vector<codegen::Candidate> kind = {space().sample(stream)};
  while (kind.size() < 40) {
    if (auto mutant = space().mutate(kind.front(), stream)) kind.push_back(std::move(mutant).value());
  }
  std::vector<datasets::Trial> trials;
  for (const codegen::Candidate& candidate : kind) {
    datasets::Trial trial{std::int64_t(trials.size()), candidate, 1, {}};
    trial.measurement.seconds = {1e-3 + 1e-6 * double(trials.size())};
    trials.push_back(std::move(trial));
  }
  const Likeness model(scorer.encoded(std::span(kind).first(1)));
  scorer.use(&model);
  const auto explorer = make_explorer("evolution", space(), 3);
  explorer->told(trials);
  for (int round = 0; round < 3; ++round) {
    const auto batch = explorer->propose(20, scorer);
    ASSERT_EQ(batch.size(), 20u);
    std::vector<codegen::Candidate> known(kind.begin(), kind.begin() + 8);
    int unlike = 0;
    for (std::size_t i = 0; i < 19; ++i) {  // the last one, 0.05 of 20, is random
      const bool differs = std::all_of(known.begin(), known.end(), [&](const codegen::Candidate& other) {
        return space().choices_apart(batch[i], other) >= 3;
      });
      if (!differs) continue;
      ++unlike;
      known.push_back(batch[i]);
    }
    EXPECT_GE(unlike, 6) << "0.3 of 20, in round " << round;
  }
}

TEST(Tuning, GuidedSearchBeatsRandomSearchOnAPlatformWithoutNoise) {
  Folder folder;
  FakeMeasurer a, b;
  Oracle prior;
  const Outcome random = tune(folder.path() / "random", a, "random", nullptr, 72);
  const Outcome guided = tune(folder.path() / "guided", b, "annealing", &prior, 72);
  EXPECT_EQ(guided.candidates.size(), 72u);
  EXPECT_LT(guided.best, 0.9 * random.best);
}

TEST(Tuning, EvolutionGetsCloserThanTheBestOfAsManyRandomOnes) {
  Folder folder;
  FakeMeasurer a, b;
  Oracle prior;
  const Outcome random = tune(folder.path() / "random", a, "random", nullptr, 72);
  const Outcome bred = tune(folder.path() / "bred", b, "evolution", &prior, 72);
  EXPECT_EQ(bred.candidates.size(), 72u);
  EXPECT_LT(bred.best, 0.9 * random.best);
}

// Few trials of a large batch are worth those of a small one.
TEST(Tuning, ABatchThatIsCutKeepsWhatTheModelThinksFastest) {
  const Oracle prior;
  for (const ExplorerEntry& entry : explorers()) {
    if (!entry.asks_model) continue;
    Folder folder;
    const auto seconds_of = [&](const char* name, std::int64_t trials) {
      FakeMeasurer measurer;
      RunDirectory run(folder.path() / name, request(1), base::Document::map());
      TuningSettings settings;
      settings.explorer = entry.name;
      settings.trials = trials;
      Tuning tuning({space_of_two_sketches(), shared_programs(), ""}, &prior, measurer, run, settings);
      base::Monitor monitor;
      while (tuning.step(monitor)) {
      }
      std::vector<double> seconds;
      for (const datasets::Trial& trial : tuning.trials()) seconds.push_back(datasets::seconds_of(trial.measurement));
      return seconds;
    };
    const std::vector<double> whole = seconds_of("whole", 32), cut = seconds_of("cut", 3);
    std::vector<double> best(whole);
    std::sort(best.begin(), best.end());
    best.resize(3);
    EXPECT_EQ(cut, best) << entry.name;
    // The run with more trials later finds these three recorded, where it has them itself.
    EXPECT_EQ(seconds_of("cut", 32), whole) << entry.name;
  }
}

// The loop that measures is asking and telling, in rounds of its batch.
TEST(AskTell, AsksForWhatATuningMeasures) {
  for (const char* const explorer : {"evolution", "random", "bayesian"}) {
    Folder folder;
    FakeMeasurer measurer;
    measurer.fail_every = 5;
    const NearestRow prior;
    RunDirectory run(folder.path() / "run", request(1), base::Document::map());
    base::Stream stream(3, "start");
    TuningSettings settings;
    settings.explorer = explorer;
    settings.trials = 40;
    settings.batch = 12;
    for (int i = 0; i < 3; ++i) settings.start.push_back(space_of_two_sketches().sample(stream));
    const meta::CostModel* const model = explorer_named(explorer).asks_model ? &prior : nullptr;
    Tuning tuning({space_of_two_sketches(), shared_programs(), ""}, model, measurer, run, settings);
    base::Monitor monitor;
    while (tuning.step(monitor)) {
    }
    ASSERT_EQ(tuning.trials().size(), 40u);
    AskTell search({space_of_two_sketches(), shared_programs(), ""}, model, settings);
    for (std::size_t told = 0; told < 36; told += 12) {
      const std::vector<codegen::Candidate> asked = search.ask(12);
      ASSERT_EQ(asked.size(), 12u);
      const std::vector<datasets::Trial> trials(tuning.trials().begin() + std::ptrdiff_t(told),
                                                tuning.trials().begin() + std::ptrdiff_t(told + 12));
      for (std::size_t i = 0; i < 12; ++i)
        EXPECT_EQ(codegen::hash(asked[i]), codegen::hash(trials[i].candidate)) << explorer << " " << told + i;
      search.tell(trials);
    }
    EXPECT_EQ(search.trials().size(), 36u);
  }
}

// One by one, some of them never told, and told what was not asked for.
TEST(AskTell, NeverAsksTwice) {
  const NearestRow prior;
  base::Stream stream(3, "start");
  AskTellSettings settings;
  const codegen::Candidate start = space_of_two_sketches().sample(stream);
  settings.start = {start, start};
  AskTell search({space_of_two_sketches(), shared_programs(), ""}, &prior, settings);
  std::set<std::uint64_t> asked;
  for (int i = 0; i < 40; ++i) {
    const std::vector<codegen::Candidate> one = search.ask(1);
    ASSERT_EQ(one.size(), 1u) << i;
    EXPECT_TRUE(asked.insert(codegen::hash(one[0])).second) << i;
    EXPECT_TRUE(i > 0 || codegen::hash(one[0]) == codegen::hash(start));
    if (i % 3 == 0) continue;
    datasets::Measurement measurement;
    measurement.seconds = {seconds_of_program(one[0])};
    search.tell({{0, one[0], codegen::hash(*codegen::program(one[0], small_target())), measurement}});
  }
  EXPECT_EQ(search.waiting(), 0);
  EXPECT_EQ(search.trials().back().index, std::int64_t(search.trials().size()) - 1);
}

// Programs that are known elsewhere take part in the first batch, where the model puts them, with a little credit.
TEST(AskTell, KnownProgramsCompeteWithProposals) {
  const Oracle oracle;
  base::Stream stream(3, "known");
  std::vector<codegen::Candidate> drawn;
  for (int i = 0; i < 60; ++i) drawn.push_back(space_of_two_sketches().sample(stream));
  const auto seconds = [](const codegen::Candidate& candidate) { return seconds_of_program(candidate); };
  std::sort(drawn.begin(), drawn.end(), [&](const auto& a, const auto& b) { return seconds(a) < seconds(b); });
  ASSERT_GT(std::log(seconds(drawn.back()) / seconds(drawn.front())), 0.5);
  AskTellSettings settings;
  settings.start = {drawn[30]};
  settings.known = {drawn[1], drawn[30], drawn[50]};
  settings.moved = {drawn.back(), drawn[0], drawn[1]};
  AskTell search({space_of_two_sketches(), shared_programs(), ""}, &oracle, settings);
  EXPECT_EQ(search.waiting(), 5);
  const std::vector<codegen::Candidate> batch = search.ask(12);
  EXPECT_EQ(search.waiting(), 0);
  ASSERT_EQ(batch.size(), 12u);
  const auto place = [&](const codegen::Candidate& wanted) {
    return std::find_if(batch.begin(), batch.end(),
                        [&](const auto& each) { return codegen::hash(each) == codegen::hash(wanted); }) -
           batch.begin();
  };
  EXPECT_EQ(place(drawn[30]), 0);      // to start with
  EXPECT_EQ(place(drawn.back()), 12);  // given up, as it is moved
  EXPECT_LT(place(drawn[50]), 12);
  EXPECT_LT(place(drawn[0]), place(drawn[1]));  // each once, by score
  EXPECT_LT(place(drawn[1]), 12);
  for (std::size_t i = 2; i < batch.size(); ++i) {
    const auto credited = [&](std::size_t at) {
      return -std::log(seconds(batch[at])) +
             (std::set<std::ptrdiff_t>{place(drawn[0]), place(drawn[1]), place(drawn[50])}.contains(std::ptrdiff_t(at))
                  ? 0.15
                  : 0);
    };
    EXPECT_GE(credited(i - 1), credited(i) - 1e-5) << i;
  }
  // Without a model there is nothing to compare them by: they come first, in their order.
  AskTell unguided({space_of_two_sketches(), shared_programs(), ""}, nullptr, settings);
  const std::vector<codegen::Candidate> first = unguided.ask(5);
  const std::size_t order[] = {30, 1, 50, 59, 0};
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(codegen::hash(first[i]), codegen::hash(drawn[order[i]])) << i;
}

// Whatever kind of model it is: what it knows guides the first round, and nothing known is a random round.
TEST(Tuning, AnInformedPriorGuidesTheFirstRound) {
  Folder folder;
  FakeMeasurer measurer;
  const Outcome random = tune(folder.path() / "random", measurer, "random", nullptr, 12);
  const NearestRow empty;
  EXPECT_EQ(tune(folder.path() / "empty", measurer, "annealing", &empty, 12).candidates, random.candidates);
  meta::Examples one;
  one.features = features::one_row_each(base::Matrix(1, std::int64_t(encoding().features.size())));
  one.log_seconds = {0};
  const auto adapted = empty.adapted({&one, 1});
  EXPECT_NE(tune(folder.path() / "adapted", measurer, "annealing", adapted.get(), 12).candidates, random.candidates);
}

TEST(Tuning, OnlyMeasuredTrialsCountForTheTimeSpent) {
  Folder folder;
  FakeMeasurer measurer;
  NearestRow prior;
  for (const std::int64_t expected : {24, 12}) {  // the second run finds 24 of 36 recorded
    RunDirectory run(folder.path() / "run", request(1), base::Document::map());
    TuningSettings settings;
    settings.trials = expected == 24 ? 24 : 36;
    settings.batch = 12;
    Tuning tuning({space(), shared_programs(), ""}, &prior, measurer, run, settings);
    base::Monitor monitor;
    while (tuning.step(monitor)) {
    }
    const TimeSpent& spent = tuning.time_spent();
    EXPECT_EQ(spent.measured, expected);
    EXPECT_GT(spent.proposing, 0);
    EXPECT_GT(spent.learning, 0);
    EXPECT_GT(spent.measuring, 0);
    EXPECT_EQ(spent.all(), spent.proposing + spent.learning + spent.measuring);
  }
}

TEST(Tuning, ARunThatWasInterruptedAnywhereContinuesToTheSameEnd) {
  Folder folder;
  NearestRow prior;
  FakeMeasurer whole;
  const Outcome expected = tune(folder.path() / "whole", whole, "evolution", &prior, 40);
  for (const std::int64_t stop : {1, 11, 12, 13, 25, 39}) {
    const auto path = folder.path() / std::to_string(stop);
    FakeMeasurer first;
    first.stop_after = stop;
    tune(path, first, "evolution", &prior, 40);
    EXPECT_EQ(first.measured, stop);
    FakeMeasurer second;
    const Outcome outcome = tune(path, second, "evolution", &prior, 40);
    EXPECT_EQ(outcome.candidates, expected.candidates) << "stopped after " << stop;
    EXPECT_EQ(first.measured + second.measured, 40) << "stopped after " << stop;
  }
}

TEST(Tuning, ARunThatGoesOnWithMoreTrialsIsTheRunThatHadThemFromTheStart) {
  Folder folder;
  NearestRow prior;
  FakeMeasurer whole, first, second;
  const Outcome expected = tune(folder.path() / "whole", whole, "annealing", &prior, 40);
  tune(folder.path() / "grown", first, "annealing", &prior, 17);
  const Outcome grown = tune(folder.path() / "grown", second, "annealing", &prior, 40);
  EXPECT_EQ(grown.candidates, expected.candidates);
  EXPECT_EQ(first.measured + second.measured, 40);
}

TEST(Tuning, FailedTrialsCountButAreNeitherBestNorLearntFrom) {
  Folder folder;
  FakeMeasurer measurer;
  measurer.fail_every = 2;
  NearestRow prior;
  const Outcome outcome = tune(folder.path() / "run", measurer, "annealing", &prior, 24);
  EXPECT_EQ(outcome.candidates.size(), 24u);
  EXPECT_GT(outcome.best, 0);
}

// With `trials` in rounds of `batch`, the first `failing` of which fail: how many are measured, and whether the search
// is judged hopeless.
std::pair<std::int64_t, bool> measured_with(const std::filesystem::path& path, std::int64_t trials, int batch,
                                            std::int64_t failing) {
  FakeMeasurer measurer;
  measurer.fail_first = failing;
  const Oracle prior;
  RunDirectory run(path, request(1), base::Document::map());
  TuningSettings settings;
  settings.trials = trials;
  settings.batch = batch;
  Tuning tuning({space(), shared_programs(), ""}, &prior, measurer, run, settings);
  base::Monitor monitor;
  while (tuning.step(monitor)) {
  }
  EXPECT_EQ(tuning.hopeless(), !tuning.best());
  return {measurer.measured, tuning.hopeless()};
}

using Ending = std::pair<std::int64_t, bool>;

TEST(Tuning, ASearchInWhichNothingIsOkEndsAfterItsFirstRound) {
  Folder folder;
  EXPECT_EQ(measured_with(folder.path() / "32", 100, 32, 1000), Ending(32, true));
  EXPECT_EQ(measured_with(folder.path() / "32", 100, 32, 1000), Ending(0, true)) << "it is recorded";
  EXPECT_EQ(measured_with(folder.path() / "8", 100, 8, 1000), Ending(16, true)) << "eight say too little";
  EXPECT_EQ(measured_with(folder.path() / "1", 100, 1, 1000), Ending(16, true));
}

TEST(Tuning, ASearchThatBeginsWithFailuresGoesOn) {
  Folder folder;
  EXPECT_EQ(measured_with(folder.path() / "31", 64, 32, 31), Ending(64, false));
  EXPECT_EQ(measured_with(folder.path() / "15", 64, 8, 15), Ending(64, false));
  EXPECT_EQ(measured_with(folder.path() / "one by one", 32, 1, 15), Ending(32, false));
}

TEST(RunDirectory, AnotherRequestIsRefusedWithKeyAndRemedy) {
  Folder folder;
  { RunDirectory run(folder.path() / "run", request(1), base::Document::map()); }
  try {
    RunDirectory run(folder.path() / "run", request(2), base::Document::map());
    FAIL();
  } catch (const base::UserError& error) {
    EXPECT_NE(std::string(error.what()).find("seed 1, not 2"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("`out`"), std::string::npos) << error.what();
  }
}

TEST(RunDirectory, GoesIntoOneTextAndBack) {
  Folder folder;
  FakeMeasurer measurer;
  tune(folder.path() / "run", measurer, "random", nullptr, 6);
  const std::string packed = packed_run(folder.path() / "run");
  unpack_run(packed, folder.path() / "copy");
  EXPECT_EQ(packed_run(folder.path() / "copy"), packed);
  RunDirectory copy(folder.path() / "copy", request(1), base::Document::map());
  EXPECT_EQ(copy.journal().trials().size(), 6u);
  EXPECT_THROW(unpack_run(R"({"../elsewhere": "x"})", folder.path() / "third"), base::UserError);
}

TEST(RunDirectory, IsLockedWhileItIsOpen) {
  Folder folder;
  RunDirectory run(folder.path() / "run", request(1), base::Document::map());
  EXPECT_THROW(RunDirectory(folder.path() / "run", request(1), base::Document::map()), base::UserError);
}

TEST(RunDirectory, ReadsBackWhatWasAppended) {
  Folder folder;
  base::Stream stream(1, "test");
  const codegen::Candidate candidate = space().sample(stream);
  datasets::Measurement measurement;
  measurement.seconds = {0.5, 0.25};
  {
    RunDirectory run(folder.path() / "run", request(1), base::Document::map());
    run.append({0, candidate, 77, measurement});
  }
  const RunContent content = read_run(folder.path() / "run");
  ASSERT_EQ(content.journal.trials.size(), 1u);
  EXPECT_EQ(codegen::hash(content.journal.trials[0].candidate), codegen::hash(candidate));
  const auto best = best_trial(content.journal.trials, candidate.workload);
  ASSERT_TRUE(best.has_value());
  EXPECT_EQ(datasets::seconds_of(best->measurement), 0.25);
  EXPECT_THROW(read_run(folder.path()), base::UserError);
}

// Three trials of distinct programs, of 3, 1 and 2 seconds.
std::vector<datasets::Trial> three_trials() {
  base::Stream stream(4, "builds");
  std::vector<datasets::Trial> trials;
  for (const double seconds : {3.0, 1.0, 2.0}) {
    datasets::Measurement measurement;
    measurement.seconds = {seconds};
    trials.push_back({std::int64_t(trials.size()), space().sample(stream), 100 + trials.size(), measurement});
  }
  return trials;
}

TEST(BestTrials, AreDistinctOkProgramsFastestFirst) {
  std::vector<datasets::Trial> trials = three_trials();
  trials.push_back(trials[1]);  // the same program again
  trials.back().index = 3;
  trials.push_back(trials[0]);
  trials.back().program_hash = 99;
  trials.back().measurement = {};
  trials.back().measurement.status = datasets::Status::crashed;
  const auto indices = [&](std::size_t count) {
    std::vector<std::int64_t> list;
    for (const datasets::Trial& trial : best_trials(trials, space().workload(), count)) list.push_back(trial.index);
    return list;
  };
  EXPECT_EQ(indices(2), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(indices(9), (std::vector<std::int64_t>{1, 2, 0}));
  EXPECT_TRUE(best_trials(trials, codegen::parse_workload("matmul(m=1,n=2,k=1)"), 9).empty());
}

Build build_of(datasets::Trial trial, const std::string& pipeline, double seconds) {
  trial.measurement.seconds = {seconds};
  return {std::move(trial), pipeline};
}

TEST(BestBuilds, AreTheFastestOkBuildsThenTrials) {
  const std::vector<datasets::Trial> trials = three_trials();
  const codegen::Workload& workload = space().workload();
  const auto best = [&](const std::vector<Build>& builds, std::size_t count) {
    std::vector<std::pair<std::int64_t, std::string>> found;
    for (const Build& build : best_builds(builds, trials, workload, count))
      found.emplace_back(build.trial.index, build.pipeline);
    return found;
  };
  using Found = std::vector<std::pair<std::int64_t, std::string>>;
  EXPECT_EQ(best({}, 1), (Found{{1, ""}}));
  EXPECT_TRUE(best_builds({}, {}, workload, 1).empty());
  // Trial 1 was measured at 1 s, once; that does not count against what was timed side by side.
  std::vector<Build> builds{build_of(trials[1], "search", 2.5), build_of(trials[1], "O3", 2.25),
                            build_of(trials[2], "search", 2.125), build_of(trials[2], "O3", 2)};
  EXPECT_EQ(best(builds, 1), (Found{{2, "O3"}}));
  EXPECT_EQ(best(builds, 9), (Found{{2, "O3"}, {1, "O3"}, {0, ""}}));  // each program once
  EXPECT_EQ(best(builds, 2), (Found{{2, "O3"}, {1, "O3"}}));
  builds.back().trial.measurement = {};
  builds.back().trial.measurement.status = datasets::Status::wrong_result;
  EXPECT_EQ(best(builds, 1), (Found{{2, "search"}}));
  EXPECT_EQ(best({builds.back()}, 1), (Found{{1, ""}}));
}

TEST(RunDirectory, KeepsTheLatestBuilds) {
  Folder folder;
  const std::vector<datasets::Trial> trials = three_trials();
  {
    RunDirectory run(folder.path() / "run", request(1), base::Document::map());
    for (const datasets::Trial& trial : trials) run.append(trial);
    EXPECT_TRUE(run.builds().empty());
    run.record({build_of(trials[0], "search", 0.5)});
    run.record({build_of(trials[1], "O3", 0.25), build_of(trials[2], "search", 0.75)});
  }
  const RunDirectory run(folder.path() / "run", request(1), base::Document::map());
  const RunContent content = read_run(folder.path() / "run");
  for (const std::vector<Build>& builds : {run.builds(), content.builds}) {
    ASSERT_EQ(builds.size(), 2u);
    EXPECT_EQ(builds[0].pipeline, "O3");
    EXPECT_EQ(builds[0].trial.index, 1);
    EXPECT_EQ(builds[0].trial.program_hash, trials[1].program_hash);
    EXPECT_EQ(codegen::hash(builds[0].trial.candidate), codegen::hash(trials[1].candidate));
    EXPECT_EQ(builds[0].trial.measurement.seconds, std::vector<double>{0.25});
  }
}

TEST(RunDirectory, RefusesBuildsOfTrialsThatItDoesNotHave) {
  Folder folder;
  {
    RunDirectory run(folder.path() / "run", request(1), base::Document::map());
    run.append(three_trials()[0]);
    run.record({build_of(three_trials()[2], "search", 0.5)});
  }
  try {
    read_run(folder.path() / "run");
    FAIL();
  } catch (const base::UserError& error) {
    EXPECT_NE(std::string(error.what()).find("builds[0].trial"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("the journal has no trial 2"), std::string::npos) << error.what();
  }
}

// What a round of collect asks for, of a target without vectors and of one with them. Distinct by program, not by
// arguments.
std::int64_t distinct_programs(const codegen::Workload& workload, const codegen::Target& target, std::int64_t enough) {
  const codegen::JudgedSpace space = codegen::judged_space(workload, target);
  base::Stream stream(1, "distinct programs");
  std::set<std::uint64_t> programs;
  for (std::int64_t draw = 0; draw < 4 * enough && std::int64_t(programs.size()) < enough; ++draw) {
    programs.insert(codegen::hash(*codegen::program(space.sample(stream), target)));
  }
  return std::int64_t(programs.size());
}

void expect_distinct_programs(std::int64_t enough) {
  for (const char* platform : {"model:sifive-p450", "native:v3"}) {
    const codegen::Target target = tasks::platform_named(platform).target;
    for (const codegen::Workload& workload : codegen::parse_workloads("suite:shipped")) {
      EXPECT_EQ(distinct_programs(workload, target, enough), enough) << workload.text() << " on " << platform;
    }
  }
}

TEST(ShippedWorkloads, HaveManyPrograms) {
  expect_distinct_programs(40);
}

TEST(ShippedWorkloads, DISABLED_HaveFourHundredPrograms) {
  expect_distinct_programs(400);
}

// Bred programs are among the fast ones, distinct from all others, and the share of them is the one asked for.
TEST(Breeding, FillsTheFastEnd) {
  const auto collected = [](double share) {
    Breeding explorer(space(), 4, {.share = share});
    Scorer scorer(shared_programs(), 1);
    FakeMeasurer measurer;
    base::Monitor monitor;
    std::set<std::uint64_t> seen;
    std::vector<double> first, later, bred;  // seconds; of the first round nothing is known
    for (int round = 0; round < 6; ++round) {
      const auto batch = explorer.propose(32, scorer);
      EXPECT_EQ(batch.size(), 32u);
      std::vector<datasets::Trial> trials;
      for (const codegen::Candidate& candidate : batch) {
        EXPECT_TRUE(seen.insert(codegen::hash(candidate)).second);
        EXPECT_TRUE(space().valid(candidate));
      }
      measurer.measure(
          batch,
          [&](const tasks::Measured& measured) {
            trials.push_back({0, batch[std::size_t(measured.position)], measured.program_hash, measured.measurement});
            (round == 0 ? first : later).push_back(measured.measurement.seconds.front());
            if (round > 0 && measured.position < 16) bred.push_back(measured.measurement.seconds.front());
          },
          monitor);
      explorer.told(trials);
    }
    return std::tuple(base::median(first), base::quantile(later, 0.3), base::median(bred), base::median(later));
  };
  const auto uniform = collected(0), half = collected(0.5);
  EXPECT_EQ(std::get<0>(uniform), std::get<0>(half));  // drawn alike
  EXPECT_LT(std::get<1>(half), std::get<1>(uniform));  // the fast end is fuller
  // The first half of each later round is what makes it so.
  EXPECT_LT(std::get<2>(half), std::get<3>(uniform));
  EXPECT_LT(std::get<2>(half), std::get<3>(half));
}

// Programs of another target's space, some of which this target refuses: proposed in their order, each once.
TEST(Listed, ProposesWhatItWasGiven) {
  codegen::Target wide = small_target();
  wide.vector_bits = 512;
  wide.vector_registers = 32;
  const codegen::JudgedSpace from = codegen::judged_space(codegen::parse_workload("matmul(m=24,n=32,k=16)"), wide);
  base::Stream stream(1, "listed");
  std::vector<codegen::Candidate> candidates;
  for (int i = 0; i < 10; ++i) candidates.push_back(from.sample(stream));
  Listed explorer(candidates);
  Scorer scorer(shared_programs(), 1);
  std::vector<codegen::Candidate> proposed;
  for (const std::size_t expected : {4u, 4u, 2u, 0u}) {
    const auto batch = explorer.propose(4, scorer);
    EXPECT_EQ(batch.size(), expected);
    proposed.insert(proposed.end(), batch.begin(), batch.end());
  }
  ASSERT_EQ(proposed.size(), candidates.size());
  for (std::size_t i = 0; i < proposed.size(); ++i) {
    EXPECT_EQ(codegen::hash(proposed[i]), codegen::hash(candidates[i])) << i;
  }
}

}  // namespace
}  // namespace graft::search
