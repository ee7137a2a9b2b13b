#include "search/replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <vector>

#include "base/error.h"
#include "codegen/schedule/candidate_program.h"
#include "datasets/joined_tables.h"
#include "search/explorer.h"
#include "tests/search/support.h"

namespace graft::search {
namespace {

// 120 programs of two sketches and one of a sketch that no rule makes, some of which failed; one was measured twice.
datasets::Dataset dataset_of(const codegen::JudgedSpace& from) {
  datasets::Dataset dataset;
  dataset.platform = "fake";
  dataset.source = "modelled";
  dataset.target = small_target();
  base::Stream stream(6, "recorded");
  FakeMeasurer measurer;
  measurer.fail_every = 10;
  std::vector<codegen::Candidate> candidates;
  std::set<std::uint64_t> programs;
  while (candidates.size() < 120) {
    codegen::Candidate candidate = from.sample(stream);
    if (programs.insert(codegen::hash(*codegen::program(candidate, small_target()))).second)
      candidates.push_back(std::move(candidate));
  }
  candidates.push_back(candidates.front());
  candidates.push_back(
      {from.workload(), std::make_shared<const codegen::Sketch>(codegen::parse_sketch("sketch plain\n", "test")), {}});
  base::Monitor monitor;
  measurer.measure(
      candidates,
      [&](const tasks::Measured& one) {
        dataset.add({0, candidates[std::size_t(one.position)], one.program_hash, one.measurement});
      },
      monitor);
  return dataset;
}

std::vector<std::uint64_t> programs_of(const Replayed& replayed) {
  std::vector<std::uint64_t> programs;
  for (const datasets::Trial& trial : replayed.trials) programs.push_back(trial.program_hash);
  return programs;
}

TEST(Recordings, HoldEachProgramOnceAndNothingElse) {
  const datasets::Dataset dataset = dataset_of(space_of_two_sketches());
  const Recording recording = recorded(dataset, space_of_two_sketches().workload(), shared_programs());
  EXPECT_EQ(recording.trials.size(), 121u);
  EXPECT_EQ(recording.left_out, 1);
  EXPECT_EQ(recording.space.size(), 121);
  EXPECT_EQ(recording.space.sketches().size(), 3u);
  EXPECT_EQ(recording.sorted_seconds().size(), 109u);
  base::Stream stream(1, "sampled");
  std::set<std::uint64_t> known;
  for (const datasets::Trial& trial : recording.trials) known.insert(codegen::hash(trial.candidate));
  for (int i = 0; i < 100; ++i)
    EXPECT_TRUE(known.contains(codegen::hash(recording.space.sample(stream, shared_programs()))));
}

// A table of 8 x 4 rows without three of them; one row twice, the last one counts.
datasets::Dataset table() {
  datasets::Dataset table;
  table.platform = "import:x";
  table.target = small_target();
  const auto sketch = std::make_shared<const codegen::Sketch>(
      codegen::Sketch::of_columns("kernel", {{"block", {}}, {"order", {"ijk", "ikj", "kij", "jik"}}}));
  const codegen::Workload workload("table(name=kernel)");
  const auto add = [&](std::int64_t block, std::int64_t order, double seconds) {
    datasets::Trial trial{0, {workload, sketch, {block, order}}, 0, {}};
    trial.measurement.seconds = {seconds};
    table.add(trial);
  };
  add(16, 2, 1000);
  for (std::int64_t block = 1; block <= 128; block *= 2) {
    for (std::int64_t order = 0; order < 4; ++order) {
      if (block != 8 || order == 3) add(block, order, 1 + std::abs(double(block) - 32) + double(order));
    }
  }
  return table;
}

TEST(Recordings, OfTablesHaveADomainForEveryColumn) {
  const datasets::Dataset dataset = table();
  const Recording recording = recorded(dataset, dataset.workloads.front(), shared_programs());
  EXPECT_EQ(recording.trials.size(), 29u);
  EXPECT_EQ(recording.left_out, 1);
  ASSERT_EQ(recording.space.sketches().size(), 1u);
  const std::vector<codegen::Domain>& domains = recording.space.sketches().front().domains;
  ASSERT_EQ(domains.size(), 2u);
  EXPECT_EQ(domains[0].values.size(), 8u);
  EXPECT_EQ(domains[1].values.size(), 4u);
  EXPECT_EQ(recording.space.size(), 29);
  std::set<std::uint64_t> known;
  for (const datasets::Trial& trial : recording.trials) {
    EXPECT_TRUE(known.insert(trial.program_hash).second);
    EXPECT_NE(trial.measurement.seconds, std::vector<double>{1000});
  }
  EXPECT_THROW(recorded(dataset, space().workload(), shared_programs()), base::UserError);
}

// Every explorer finds the fastest row, none is asked for twice, and all are asked for in the end.
TEST(Replay, SearchesTablesWithEveryExplorer) {
  const datasets::Dataset dataset = table();
  const features::Encoding columns =
      features::made_for(features::encoding_named("columns"), datasets::joined_tables({&dataset, 1}).schema);
  Programs rows(dataset.target, &columns);
  const Recording recording = recorded(dataset, dataset.workloads.front(), rows);
  const NearestRow prior;
  base::Monitor monitor;
  for (const ExplorerEntry& entry : explorers()) {
    TuningSettings settings;
    settings.explorer = entry.name;
    settings.trials = 40;
    settings.batch = 5;
    const Replayed replayed = replay(recording, rows, entry.asks_model ? &prior : nullptr, settings, monitor);
    std::set<std::uint64_t> asked;
    for (const datasets::Trial& trial : replayed.trials) EXPECT_TRUE(asked.insert(trial.program_hash).second);
    EXPECT_GE(asked.size(), 25u) << entry.name;
    EXPECT_DOUBLE_EQ(replayed.curve.back().second, 1) << entry.name;
  }
  EXPECT_EQ(rows.counts().made, 29);  // nothing is made of a row more than once
}

// Scores a row by how far it is from all that it was adapted on.
class Farthest final : public NearestRow {
 public:
  meta::Scores score(const features::Encoded& programs) const override {
    meta::Scores scores{std::vector<float>(std::size_t(programs.rows.rows), INFINITY),
                        std::vector<float>(std::size_t(programs.rows.rows))};
    for (std::int64_t r = 0; r < programs.rows.rows; ++r) {
      for (const meta::Examples& group : known) {
        for (std::int64_t s = 0; s < group.size(); ++s) {
          float distance = 0;
          for (std::int64_t c = 0; c < programs.rows.columns; ++c)
            distance += std::pow(programs.rows.at(r, c) - group.features.rows.at(s, c), 2.0f);
          scores.mean[std::size_t(r)] = std::min(scores.mean[std::size_t(r)], distance);
        }
      }
    }
    return scores;
  }
  std::unique_ptr<meta::CostModel> fitted(std::span<const meta::Examples> examples) const override {
    auto model = std::make_unique<Farthest>();
    model->known.assign(examples.begin(), examples.end());
    return model;
  }
  std::unique_ptr<meta::CostModel> clone() const override { return std::make_unique<Farthest>(*this); }
};

TEST(AskTell, LooksNearTheFastestRowWhateverTheModelThinks) {
  const datasets::Dataset dataset = table();
  const features::Encoding columns =
      features::made_for(features::encoding_named("columns"), datasets::joined_tables({&dataset, 1}).schema);
  Programs rows(dataset.target, &columns);
  const Recording recording = recorded(dataset, dataset.workloads.front(), rows);
  const Farthest prior;
  AskTellSettings settings;
  settings.selection.random_share = 0;
  settings.selection.acquisition = Acquisition::ei;
  std::vector<datasets::Trial> told;
  for (const datasets::Trial& trial : recording.trials) {
    const std::vector<std::int64_t>& arguments = trial.candidate.arguments;
    if (arguments[0] == 32 && arguments[1] < 2) told.push_back(trial);
  }
  ASSERT_EQ(told.size(), 2u);
  const codegen::Candidate fastest = told.front().candidate;  // order 0
  const auto is_near = [&](const codegen::Candidate& each) {
    return recording.space.choices_apart(each, fastest) == 1;
  };
  AskTell search({recording.space, rows, "x"}, &prior, settings);
  search.tell(told);
  const std::vector<codegen::Candidate> batch = search.ask(10);
  EXPECT_EQ(batch.size(), 10u);
  EXPECT_GE(std::count_if(batch.begin(), batch.end(), is_near), 3);
  // One at a time, too.
  AskTell single({recording.space, rows, "x"}, &prior, settings);
  single.tell(told);
  int near = 0;
  for (int i = 0; i < 8; ++i) near += int(is_near(single.ask(1).at(0)));
  EXPECT_GE(near, 2);
}

// Every explorer, with and without a model: recorded programs only, none twice, equal for a seed with any threads.
TEST(Replay, IsTheSameForASeedWithOneThreadAndWithTwo) {
  const datasets::Dataset dataset = dataset_of(space_of_two_sketches());
  const Recording recording = recorded(dataset, space_of_two_sketches().workload(), shared_programs());
  const NearestRow prior;
  base::Monitor monitor;
  for (const ExplorerEntry& entry : explorers()) {
    std::vector<std::uint64_t> first;
    for (const int threads : {1, 2}) {
      TuningSettings settings;
      settings.explorer = entry.name;
      settings.trials = 48;
      settings.batch = 12;
      settings.seed = 4;
      settings.threads = threads;
      const Replayed replayed =
          replay(recording, shared_programs(), entry.asks_model ? &prior : nullptr, settings, monitor);
      EXPECT_TRUE(replayed.complete);
      const std::vector<std::uint64_t> programs = programs_of(replayed);
      EXPECT_EQ(programs.size(), 48u) << entry.name;
      EXPECT_EQ(std::set<std::uint64_t>(programs.begin(), programs.end()).size(), programs.size()) << entry.name;
      ASSERT_FALSE(replayed.curve.empty());
      EXPECT_GE(replayed.curve.back().second, recording.sorted_seconds().front());
      if (threads == 1) first = programs;
      EXPECT_EQ(programs, first) << entry.name;
    }
  }
}

TEST(Replay, EndsWhenAllWasAskedForAndFindsTheBest) {
  const datasets::Dataset dataset = dataset_of(space());
  const Recording recording = recorded(dataset, space().workload(), shared_programs());
  const Oracle prior;
  base::Monitor monitor;
  for (const char* const name : {"evolution", "random", "genetic"}) {
    TuningSettings settings;
    settings.explorer = name;
    settings.trials = 10000;
    settings.batch = 10;
    const Replayed replayed =
        replay(recording, shared_programs(), explorer_named(name).asks_model ? &prior : nullptr, settings, monitor);
    EXPECT_GT(replayed.trials.size(), 100u) << name;
    EXPECT_LE(replayed.trials.size(), recording.trials.size()) << name;
    EXPECT_EQ(replayed.curve.back().second, recording.sorted_seconds().front()) << name;
  }
  // An oracle needs hardly any: what it asks for first is the best that is ok, or one that failed.
  TuningSettings settings;
  settings.trials = 8, settings.batch = 8;
  const Replayed few = replay(recording, shared_programs(), &prior, settings, monitor);
  EXPECT_LE(few.curve.back().second, recording.sorted_seconds()[3]);
}

}  // namespace
}  // namespace graft::search
