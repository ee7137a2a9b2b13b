#include "study/flows/tune_all.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/error.h"
#include "codegen/expression/workload.h"
#include "tests/base/support.h"

namespace graft::study {
namespace {

// Two short searches on a modelled board.
TuneAllRequest two_searches(const base::Folder& folder) {
  TuneAllRequest all;
  for (const char* const workload : {"matmul(m=16,n=16,k=16)", "matmul(m=24,n=16,k=16)"}) {
    TuneRequest search;
    search.workload = codegen::parse_workload(workload);
    search.platform = tasks::platform_named("model:haswell");
    search.model = "random";
    search.explorer = "random";
    search.batch = 2;
    search.out = folder / ("run" + std::to_string(all.searches.size()));
    search.command_line = "a test";
    all.searches.push_back(std::move(search));
    all.weights.push_back(1);
  }
  all.trials = 12;
  all.first_trials = 2;
  return all;
}

TEST(TuneAllFlow, WhatIsWeighedAsNothingAfterItsFirstTrialsGetsNoMore) {
  const base::Folder folder;
  base::Monitor monitor;
  TuneAllRequest request = two_searches(folder);
  request.weights = {1, 0};
  std::vector<double> told;
  request.reweigh = [&](const std::vector<double>& best_seconds) {
    told = best_seconds;
    return std::vector<double>{0, 3};
  };
  const TuneAllResult result = tune_all(request, monitor);
  EXPECT_TRUE(result.complete && result.all_begun);
  ASSERT_EQ(told.size(), 2u);
  EXPECT_TRUE(std::isfinite(told[0]) && std::isfinite(told[1]));
  ASSERT_EQ(result.searches.size(), 2u);
  EXPECT_FALSE(result.searches[0].answer.has_value());
  EXPECT_TRUE(result.searches[0].trials.empty());
  ASSERT_TRUE(result.searches[1].answer.has_value());
  EXPECT_EQ(result.searches[1].trials.size(), 10u);
  EXPECT_DOUBLE_EQ(result.weighted_seconds, 3 * result.searches[1].answer->seconds());
}

// Whatever the time, every search has a program, and those that got no more are named.
TEST(TuneAllFlow, EverySearchHasItsFirstProgramWhenTheTimeIsOver) {
  struct Notes : base::Monitor {
    void note(std::string_view line) override { all += line, all += '\n'; }
    std::string all;
  } notes;
  const base::Folder folder;
  TuneAllRequest request = two_searches(folder);
  request.names = {"first (MatMul)", "second (MatMul)"};
  request.deadline = base::Deadline(1e-9);
  const TuneAllResult result = tune_all(request, notes);
  EXPECT_TRUE(result.complete);
  ASSERT_EQ(result.searches.size(), 2u);
  for (const TuneResult& search : result.searches) {
    ASSERT_TRUE(search.answer.has_value()) << search.failure;
    EXPECT_EQ(search.trials.size(), 1u);
  }
  EXPECT_EQ(result.barely, (std::vector<std::size_t>{0, 1}));
  EXPECT_NE(notes.all.find("first (MatMul); second (MatMul)"), std::string::npos) << notes.all;
  // With time, the same request goes on.
  request.deadline = base::Deadline(1e6);
  const TuneAllResult more = tune_all(request, notes);
  EXPECT_TRUE(more.barely.empty());
  EXPECT_EQ(more.searches[0].trials.size() + more.searches[1].trials.size(), 12u);
}

TEST(TuneAllFlow, FewerProgramsAreBuiltAgainOfWhatTakesLessThanAnAveragePart) {
  const base::Folder folder;
  base::Monitor monitor;
  TuneAllRequest request = two_searches(folder);
  request.weights = {1000, 1};
  request.first_trials = 48;
  request.trials = 100;
  for (TuneRequest& search : request.searches) {
    search.platform = tasks::platform_named("native");
    search.rebuild = 4;
    search.batch = 48;
    search.timing.minimum_ms = 0.001;
    search.timing.repetitions = 1;
  }
  std::vector<std::size_t> builds;  // of the second one
  for (const double negligible : {0.0, 1e-9}) {
    request.negligible = negligible;
    builds.push_back(tune_all(request, monitor).searches.at(1).builds.size());
    for (TuneRequest& search : request.searches) search.out += "-again";
  }
  EXPECT_GT(builds[1], 0u);
  EXPECT_LT(builds[1], builds[0]);
}

TEST(TuneAllFlow, SaysWhetherAllHadTheirFirstTrials) {
  const base::Folder folder;
  struct StopsSoon final : base::Monitor {
    int left = 2;
    bool stop_requested() override { return left-- <= 0; }
  } monitor;
  TuneAllRequest request = two_searches(folder);
  int asked = 0;
  request.reweigh = [&](const std::vector<double>&) {
    ++asked;
    return std::vector<double>{1, 1};
  };
  const TuneAllResult result = tune_all(request, monitor);
  EXPECT_FALSE(result.complete);
  EXPECT_FALSE(result.all_begun);
  EXPECT_EQ(asked, 1);
  // Nothing says what a weight of 0 would mean.
  request.reweigh = {};
  request.weights = {1, 0};
  base::Monitor other;
  EXPECT_THROW(tune_all(request, other), base::UserError);
}

}  // namespace
}  // namespace graft::study
