#include "search/replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "base/error.h"
#include "search/explorer.h"
#include "tests/search/support.h"

namespace graft::search {
namespace {

// 120 programs of two sketches and one of a sketch that no rule makes, some of which failed; one was measured twice.
datasets::Dataset dataset_of(const codegen::Space& from) {
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
  const Recording recording = recorded(dataset, space_of_two_sketches().workload());
  EXPECT_EQ(recording.trials.size(), 121u);
  EXPECT_EQ(recording.left_out, 1);
  EXPECT_EQ(recording.space.size(), 121);
  EXPECT_EQ(recording.space.sketches().size(), 3u);
  EXPECT_EQ(recording.sorted_seconds().size(), 109u);
  base::Stream stream(1, "sampled");
  std::set<std::uint64_t> known;
  for (const datasets::Trial& trial : recording.trials) known.insert(codegen::hash(trial.candidate));
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(known.contains(codegen::hash(recording.space.sample(stream))));
}

TEST(Recordings, OfTablesAreRefused) {
  datasets::Dataset table;
  table.platform = "import:x";
  table.target = small_target();
  const auto sketch =
      std::make_shared<const codegen::Sketch>(codegen::Sketch::of_columns("kernel", {{"block", {}}, {"unroll", {}}}));
  datasets::Trial trial{0, {space().workload(), sketch, {4, 2}}, 1, {}};
  trial.measurement.seconds = {1};
  table.add(trial);
  EXPECT_THROW(recorded(table, space().workload()), base::UserError);
  EXPECT_THROW(recorded(table, space_of_two_sketches().workload()), base::UserError);
}

// Every explorer, with and without a model: recorded programs only, none twice, equal for a seed with any threads.
TEST(Replay, IsTheSameForASeedWithOneThreadAndWithTwo) {
  const datasets::Dataset dataset = dataset_of(space_of_two_sketches());
  const Recording recording = recorded(dataset, space_of_two_sketches().workload());
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
      const Replayed replayed = replay(recording, entry.asks_model ? &prior : nullptr, &encoding(), settings, monitor);
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
  const Recording recording = recorded(dataset, space().workload());
  const Oracle prior;
  base::Monitor monitor;
  for (const char* const name : {"evolution", "random", "genetic"}) {
    TuningSettings settings;
    settings.explorer = name;
    settings.trials = 10000;
    settings.batch = 10;
    const Replayed replayed =
        replay(recording, explorer_named(name).asks_model ? &prior : nullptr, &encoding(), settings, monitor);
    EXPECT_GT(replayed.trials.size(), 100u) << name;
    EXPECT_LE(replayed.trials.size(), recording.trials.size()) << name;
    EXPECT_EQ(replayed.curve.back().second, recording.sorted_seconds().front()) << name;
  }
  // An oracle needs hardly any: what it asks for first is the best that is ok, or one that failed.
  TuningSettings settings;
  settings.trials = 8, settings.batch = 8;
  const Replayed few = replay(recording, &prior, &encoding(), settings, monitor);
  EXPECT_LE(few.curve.back().second, recording.sorted_seconds()[3]);
}

}  // namespace
}  // namespace graft::search
